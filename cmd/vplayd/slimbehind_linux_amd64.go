package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// The process that record leaves behind to slim a recording is nobody's concern:
// it has a session of its own, so that no terminal's signal reaches it and no
// shell waits for it; it holds no descriptor of record's, so that who reads
// record's output sees its end; it gives way to everything else that wants a CPU,
// a disk or memory; and it ends when the file is moved or deleted. ps shows it as
// "vplayd slim --background ... FILE". When it is killed the file stays as it was,
// and nothing is left behind.

// slimAtOnce slims a new recording. Whatever becomes of that, the recording is
// there and record's exit status is the program's.
func slimAtOnce(c *cobra.Command, path string, f recordFlags) {
	ctx := c.Context()
	err := ctx.Err() // the Ctrl-C that ended the program
	var e engine
	if err == nil {
		e, err = chooseEngine(c)
	}
	if err == nil {
		err = slim(ctx, path, slimFlags{time: f.slimTime, quiet: f.quiet, engine: e.maker})
	}
	switch {
	case errors.Is(err, context.Canceled):
		if !f.quiet {
			fmt.Fprintf(stderr, "vplayd: %s: slimming was stopped, the recording is complete; vplayd slim %s makes it smaller\n", path, path)
		}
	case err != nil:
		printError(err)
	}
}

// slimBehind starts the process that slims a new recording, and says so.
func slimBehind(path string, f recordFlags) {
	pid, err := startSlimming(path, f.slimTime)
	switch {
	case f.quiet:
	case err != nil:
		fmt.Fprintf(stderr, "vplayd: %s is not made smaller: %v; vplayd slim %s does it\n", path, err, path)
	default:
		fmt.Fprintf(stderr, "vplayd: it can be used now; process %d makes it smaller in the background, for at most %v (or now: vplayd slim %s)\n", pid, f.slimTime, path)
	}
}

// startSlimming starts the process, and returns its process id.
func startSlimming(path string, limit time.Duration) (pid int, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	if _, err := os.Stat(self); err != nil {
		self = "/proc/self/exe" // vplayd was replaced since
	}
	cmd := exec.Command(self, "slim", "--background", "--time", limit.String(), "--", path)
	cmd.Args[0] = "vplayd"
	cmd.Dir = "/" // no file system is kept from being unmounted
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := keepDescriptors(); err != nil {
		return 0, err
	}
	done := make(chan error)
	go func() {
		// What is set for this thread is inherited by the process, and ends with it.
		runtime.LockOSThread()
		ownSlack()
		giveWay()
		done <- cmd.Start()
	}()
	if err := <-done; err != nil {
		return 0, err
	}
	pid = cmd.Process.Pid
	return pid, cmd.Process.Release()
}

// keepDescriptors makes sure that no descriptor of this process passes to others:
// those that it inherited would.
func keepDescriptors() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// idlePriority is IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0) (linux/ioprio.h).
const idlePriority = 3 << 13

// giveWay lets everybody else have the CPU and the disk first. What is refused
// is done without.
func giveWay() {
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 19)
	const ofProcess = 1 // IOPRIO_WHO_PROCESS
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ofProcess, 0, idlePriority)
}

// slimInBackground is what the process does. It says nothing: nobody listens.
func slimInBackground(c *cobra.Command, path string, f slimFlags) error {
	if err := limitMemory(); err != nil {
		return err
	}
	was, err := os.Stat(path)
	if err != nil {
		return exitError{exitFailed}
	}
	if err := sandboxSlim(c, path); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	go func() {
		for ; ctx.Err() == nil; time.Sleep(time.Second) {
			if now, err := os.Stat(path); err != nil || !os.SameFile(was, now) {
				cancel()
			}
		}
	}()
	f.jobs, f.quiet = 1, true
	return slim(ctx, path, f)
}

// limitMemory bounds what this process may take to a quarter of the machine's, and
// makes it the first to go when memory gets low.
func limitMemory() error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return err
	}
	var si unix.Sysinfo_t
	if err := unix.Sysinfo(&si); err != nil {
		return err
	}
	quarter := uint64(si.Totalram) * uint64(si.Unit) / 4
	debug.SetMemoryLimit(int64(quarter / 2))
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &was); err != nil {
		return err
	}
	want := unix.Rlimit{Cur: min(quarter, was.Max), Max: was.Max}
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &want); err != nil {
		return fmt.Errorf("bounding memory: %w", err)
	}
	return nil
}
