//go:build linux && amd64

package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// The program is started by a helper, this same executable with a hidden verb,
// which waits until the recorder has attached to it and then becomes the
// program. PTRACE_SEIZE before execve, unlike PTRACE_TRACEME, keeps job
// control working. The execve must be made by the process's first thread, the
// one that was seized, which is why this package locks it at start.

// LaunchVerb is the hidden verb of the default launcher.
const LaunchVerb = "__launch"

func init() {
	if len(os.Args) > 1 && os.Args[1] == LaunchVerb {
		runtime.LockOSThread()
	}
}

// Launch is the hidden verb: args are FD PROG ARGS... . It says on the socket
// FD that it runs, waits there for the signals that PROG inherits, ignored and
// blocked, and executes PROG, a path, with PROG's argument vector ARGS (ARGS[0]
// included). When PROG cannot be executed it tells
// the recorder the number of the error and returns nil; other failures are returned.
//
// Preconditions: called on the main goroutine, first thing in main.
func Launch(args []string) error {
	if len(args) < 3 {
		return errors.New("record: launcher: needs FD PROG ARGS")
	}
	fd, err := strconv.Atoi(args[0])
	if err != nil || fd < 3 {
		return fmt.Errorf("record: launcher: descriptor %q", args[0])
	}
	var b [1]byte
	if _, err := syscall.Write(fd, b[:]); err != nil {
		return errors.New("record: launcher: the recorder has gone")
	}
	var state [inheritanceSize]byte
	for {
		n, err := syscall.Read(fd, state[:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n != len(state) {
			return errors.New("record: launcher: the recorder has gone")
		}
		break
	}
	syscall.CloseOnExec(fd)
	decodeInheritance(state[:]).apply()
	why := syscall.Exec(args[1], args[2:], meantFor(os.Environ(), os.Getppid(), os.Getpid()))
	var errno syscall.Errno
	errors.As(why, &errno) // it is one
	if _, err := syscall.Write(fd, binary.LittleEndian.AppendUint32(nil, uint32(errno))); err != nil {
		return fmt.Errorf("record: execve %s: %w", args[1], why)
	}
	return nil
}

// whyNot reads why the launcher could not execute the program; "" when it has not said so.
func whyNot(r io.Reader) string {
	var errno [4]byte
	if _, err := io.ReadFull(r, errno[:]); err != nil {
		return ""
	}
	return syscall.Errno(binary.LittleEndian.Uint32(errno[:])).Error()
}

// launchFD returns what the launcher is told of its descriptor. With a sign before it the launcher
// is Go: an executable may have another one in front of Go's runtime, which starts
// faster, and leaves the environment as it is (cmd/vplayd/entry_linux_amd64.s).
func launchFD(fd int, env []string) string {
	own := strconv.Itoa(os.Getpid())
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if value == own && slices.Contains(namesProcess, name) {
			return "+" + strconv.Itoa(fd)
		}
	}
	return strconv.Itoa(fd)
}

// namesProcess are the variables by which a service manager says which process something is meant
// for (sd_listen_fds(3), sd_watchdog_enabled(3), systemd.exec(5)): a program ignores its sockets and its watchdog when
// they name another.
var namesProcess = []string{"LISTEN_PID", "WATCHDOG_PID", "SYSTEMD_EXEC_PID"}

// meantFor returns an environment in which what names the recorder names the program, which stands in
// its place. LISTEN_PIDFDID, which says the same of the recorder by another number, is left out then.
func meantFor(env []string, recorder, program int) []string {
	listens := false
	out := slices.Clone(env)
	for i, e := range out {
		name, value, _ := strings.Cut(e, "=")
		if value == strconv.Itoa(recorder) && slices.Contains(namesProcess, name) {
			out[i] = name + "=" + strconv.Itoa(program)
			listens = listens || name == "LISTEN_PID"
		}
	}
	return slices.DeleteFunc(out, func(e string) bool { return listens && strings.HasPrefix(e, "LISTEN_PIDFDID=") })
}

// lookProgram finds the program as a shell would.
func lookProgram(name, dir string) (string, error) {
	fail := func(code int, err error, hint string) error {
		return &StartError{Program: name, Code: code, Err: err, Hint: hint}
	}
	if name == "" {
		return "", fail(127, errors.New("no program given"), "")
	}
	path := name
	if !strings.Contains(name, "/") {
		found, err := exec.LookPath(name)
		if err != nil && !errors.Is(err, exec.ErrDot) {
			if errors.Is(err, os.ErrPermission) {
				return "", fail(126, os.ErrPermission, "")
			}
			return "", fail(127, errors.New("command not found"), "give the path, or check PATH")
		}
		path = found
	}
	at := path
	if dir != "" && !strings.HasPrefix(path, "/") {
		at = dir + "/" + path
	}
	fi, err := os.Stat(at)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fail(127, errors.New("no such file"), "is the path right?")
	case err != nil:
		return "", fail(126, err, "")
	case fi.IsDir():
		return "", fail(126, errors.New("is a directory"), "name a program in it")
	case fi.Mode()&0o111 == 0:
		return "", fail(126, os.ErrPermission, "chmod +x makes it executable")
	}
	if why, hint := unrecordable(at); why != "" {
		return "", fail(126, errors.New(why), hint)
	}
	return path, nil
}
