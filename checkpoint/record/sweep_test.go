//go:build linux && amd64

package record

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSweepSparesOthers has a child of the thread that is none of the tracer's.
func TestSweepSparesOthers(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	new(session).sweep()
	if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if s := cmd.ProcessState; s == nil || s.Sys().(syscall.WaitStatus).Signal() != unix.SIGTERM {
		t.Errorf("the child ended otherwise: %v", s)
	}
}
