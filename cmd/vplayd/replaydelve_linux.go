package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Before it starts rr, dlv looks at a sysctl that opens the performance counters to rr.
// vplay needs no counters, and changing the sysctl takes root. So dlv is started in
// a mount namespace of its own, in which the file says what dlv wants to read. That takes no
// privilege where users may make namespaces (man 7 user_namespaces).

// paranoidFile is the sysctl, and paranoidMost the greatest value with which dlv starts rr.
const (
	paranoidFile = "/proc/sys/kernel/perf_event_paranoid"
	paranoidMost = 1
)

// delveVerb is the hidden verb that becomes dlv: __dlv FILE DLV ARGUMENTS..., FILE being
// what dlv shall read instead of paranoidFile.
const delveVerb = "__dlv"

// allowRR makes dlv start rr, whatever the sysctl says. dir takes a file.
func allowRR(cmd *exec.Cmd, self, dir string) error {
	b, err := os.ReadFile(paranoidFile)
	n, bad := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || bad != nil || n <= paranoidMost {
		return nil //nolint:nilerr // dlv, too, goes on where there is no such file
	}
	file := filepath.Join(dir, "paranoid")
	if err := os.WriteFile(file, []byte(strconv.Itoa(paranoidMost)+"\n"), 0o600); err != nil {
		return err
	}
	cmd.Args = append([]string{self, delveVerb, file, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = self
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		uid, gid := os.Geteuid(), os.Getegid()
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWNS | unix.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN}, // in the namespace
		}
	}
	return nil
}

// becomeDelve becomes dlv when the arguments say so.
func becomeDelve(args []string) bool {
	if len(args) < 4 || args[1] != delveVerb {
		return false
	}
	printError(execDelve(args[2], args[3:]))
	os.Exit(exitMachine)
	return true
}

func execDelve(file string, args []string) error {
	fail := func(what string, err error) error {
		return withHint(fmt.Errorf("%s: %w", what, err), exitMachine, "%s", hintRR)
	}
	runtime.LockOSThread() // rights are a thread's
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fail("a mount namespace", err)
	}
	if err := unix.Mount(file, paranoidFile, "", unix.MS_BIND, ""); err != nil {
		return fail("mount over "+paranoidFile, err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fail("prctl", err)
	}
	return fail(args[0], unix.Exec(args[0], args, os.Environ()))
}
