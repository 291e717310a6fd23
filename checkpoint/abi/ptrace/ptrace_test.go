//go:build linux && amd64

package ptrace

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestStackMoves makes ptrace calls at every depth of a small stack: at some of
// them the stack grows, and moves, between the place that takes a variable's
// address and the system call that stores to it.
func TestStackMoves(t *testing.T) {
	const want = 0x0123456789abc000
	for depth := range 160 {
		done := make(chan uint64)
		go func() {
			defer close(done)
			runtime.LockOSThread()
			cmd := exec.Command("/bin/true")
			cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: unix.SIGKILL}
			err := cmd.Start()
			if err != nil {
				t.Error(err)
				return
			}
			pid := cmd.Process.Pid
			if _, err := Wait(pid, 0); err != nil {
				t.Error(err)
			}
			if err := SetSigmask(pid, want); err != nil {
				t.Error(err)
			}
			var got uint64
			below(depth, func() {
				if got, err = GetSigmask(pid); err != nil {
					t.Error(err)
				}
			})
			_ = unix.Kill(pid, unix.SIGKILL)
			_ = cmd.Wait() // killed
			done <- got
		}()
		if got := <-done; got != want {
			t.Fatalf("at depth %d: the mask of blocked signals is %#x, want %#x", depth, got, uint64(want))
		}
	}
}

// below calls f with depth small frames more on the stack.
//
//go:noinline
func below(depth int, f func()) byte {
	var pad [16]byte
	if depth == 0 {
		f()
	} else {
		pad[depth&15] = below(depth-1, f)
	}
	return pad[0]
}
