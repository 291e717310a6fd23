package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fatRecording records a program that takes some seconds to slim.
func fatRecording(t *testing.T) (g *guest, path string, content []byte) {
	t.Helper()
	g = compile(t, "slimmed", "-O1", "-DSPIN=100")
	path = g.record(t, "--interval", "8ms", "--slim", "never")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return g, path, content
}

// awaitOpen waits until a process has a file open.
func awaitOpen(t *testing.T, pid int, path string) {
	t.Helper()
	await(t, fmt.Sprintf("process %d to open %s", pid, path), func() bool {
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		return slices.ContainsFunc(fds, func(fd string) bool {
			to, err := os.Readlink(fd)
			return err == nil && to == path
		})
	})
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// onlyFile checks that a file has its content still and that the names beside it
// that slimming could have made are not there.
func onlyFile(t *testing.T, path string, want []byte) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the recording is not what it was: %v", err)
	}
	if hidden, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(hidden) > 0 {
		t.Errorf("left behind: %v", hidden)
	}
}

// TestSlimStopped stops slimming by signals: the recording stays as it was.
func TestSlimStopped(t *testing.T) {
	t.Parallel()
	g, path, was := fatRecording(t)
	for sig, want := range map[syscall.Signal]struct {
		code int
		said string
	}{
		syscall.SIGINT:  {130, "slimming was stopped; the file stays as it was\nvplayd: interrupted\n"},
		syscall.SIGTERM: {143, "slimming was stopped; the file stays as it was\nvplayd: terminated\n"},
		syscall.SIGKILL: {-1, ""},
	} {
		cmd := exec.CommandContext(limited(t, patience), vplayd, "slim", path)
		var out bytes.Buffer
		cmd.Stderr = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		awaitOpen(t, cmd.Process.Pid, path)
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // its code is asked below
		if got := cmd.ProcessState.ExitCode(); got != want.code || !strings.HasSuffix(out.String(), want.said) || strings.Contains(out.String(), "context") {
			t.Errorf("after %v it ends with %d and says %q", sig, got, out.String())
		}
		onlyFile(t, path, was)
	}

	// Record's exit status is the program's, whatever becomes of slimming.
	next := filepath.Join(g.dir, "next.vplay")
	cmd := exec.CommandContext(limited(t, patience), vplayd, "record", "--slim", "now", "--interval", "8ms", "-o", next, "--", filepath.Join(g.dir, "symbols", g.name))
	var out bytes.Buffer
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitOpen(t, cmd.Process.Pid, next)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it ends as the guest does
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != syscall.SIGSEGV ||
		!strings.Contains(out.String(), "slimming was stopped, the recording is complete") || strings.Contains(out.String(), "error") {
		t.Errorf("record ends with %v and says %q", cmd.ProcessState, out.String())
	}
	if sizes := openRecording(t, next).Sizes(); sizes.Slim != 0 {
		t.Errorf("the recording has %+v", sizes)
	}
}

var inBackground = regexp.MustCompile(`process (\d+) makes it smaller in the background`)

// TestSlimInBackground holds what the process that record leaves behind is: nobody
// waits for it, it holds nothing of record's, it gives way, and it leaves nothing
// when it is killed, or when the recording is moved or deleted.
func TestSlimInBackground(t *testing.T) {
	t.Parallel()
	short, long := compile(t, "slimmed", "-O1"), compile(t, "slimmed", "-O1", "-DSPIN=50")
	for name, act := range map[string]func(pid int, path string) error{
		"killed":  func(pid int, _ string) error { return syscall.Kill(pid, syscall.SIGKILL) },
		"stopped": func(pid int, _ string) error { return syscall.Kill(pid, syscall.SIGTERM) },
		"moved":   func(_ int, path string) error { return os.Rename(path, path+".moved") },
		"deleted": func(_ int, path string) error { return os.Remove(path) },
		"left":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "rec.vplay")
			if name == "left" {
				pid, fat := recordBehind(t, short.bin, path)
				awaitEnd(t, pid)
				if sizes := openRecording(t, path).Sizes(); sizes.Fat != 0 || sizes.File >= int64(len(fat)) {
					t.Errorf("the recording has %+v", sizes)
				}
				return
			}
			pid, fat := recordBehind(t, long.bin, path) // it is looked at while it goes on
			args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if want := "vplayd\x00slim\x00--background\x00--time\x001m0s\x00--\x00" + path + "\x00"; err != nil || string(args) != want {
				t.Fatalf("the process is %q, %v", args, err)
			}
			lookBehind(t, pid, path)
			if err := act(pid, path); err != nil {
				t.Fatal(err)
			}
			awaitEnd(t, pid)
			switch name {
			case "killed", "stopped":
				onlyFile(t, path, fat)
			case "moved":
				onlyFile(t, path+".moved", fat)
				fallthrough
			case "deleted":
				if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the recording is there again: %v", err)
				}
			}
		})
	}
}

// recordBehind records a program and returns the process that goes on, and the
// recording as it was written. That record ends though the process goes on is seen
// by the end of a pipe that both could hold.
func recordBehind(t *testing.T, bin, path string) (pid int, fat []byte) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.CommandContext(limited(t, patience), vplayd, "record", "--interval", "8ms", "-o", path, "--", bin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &out, &out, []*os.File{w}
	err = cmd.Run() // reads its output to the end
	w.Close()
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatal(err)
	}
	if fat, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	m := inBackground.FindStringSubmatch(out.String())
	if m == nil {
		t.Fatalf("record says %q, %v", out.String(), err)
	}
	pid, err = strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return pid, fat
}

// awaitEnd waits until a process that is not the test's child has ended.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	await(t, "the process to end", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || bytes.Contains(stat, []byte(") Z "))
	})
}

// lookBehind checks what kind of process goes on.
func lookBehind(t *testing.T, pid int, path string) {
	t.Helper()
	awaitOpen(t, pid, path)
	if sid, err := unix.Getsid(pid); err != nil || sid != pid {
		t.Errorf("its session is %d, %v", sid, err)
	}
	if nice, err := unix.Getpriority(unix.PRIO_PROCESS, pid); err != nil || nice != 1 { // 20 minus the niceness
		t.Errorf("its niceness is %d, %v", 20-nice, err)
	}
	if cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err != nil || cwd != "/" {
		t.Errorf("its folder is %s, %v", cwd, err)
	}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && (strings.HasPrefix(to, "pipe:") || strings.HasPrefix(to, "/dev/pts")) {
			t.Errorf("descriptor %s is %s", filepath.Base(fd), to)
		}
	}
}
