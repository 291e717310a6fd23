//go:build linux && amd64

package ptrace

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"vplay/tests/need"
)

// TestStackMoves makes ptrace calls at every depth of a small stack: at some of
// them the stack grows, and moves, between the place that takes a variable's
// address and the system call that stores to it.
func TestStackMoves(t *testing.T) {
	need.Ptrace(t)
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

// TestWaitAny: of the children of a thread only those that it traces are waited for.
func TestWaitAny(t *testing.T) {
	need.Ptrace(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	other := exec.Command("/bin/true")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, other.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := WaitAny(0); err != unix.ECHILD {
		t.Errorf("without a tracee: %v", err)
	}
	traced := exec.Command("/bin/true")
	traced.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: unix.SIGKILL}
	if err := traced.Start(); err != nil {
		t.Fatal(err)
	}
	pid := traced.Process.Pid
	if err := unix.Kill(pid, unix.SIGKILL); err != nil { // it is at a stop, that nobody has collected
		t.Error(err)
	}
	for {
		tid, ws, err := WaitAny(0)
		if err != nil || tid != pid {
			t.Fatalf("%d, %v; the tracee is %d", tid, err, pid)
		}
		if ws.Signaled() {
			break
		}
	}
	if err := other.Wait(); err != nil {
		t.Errorf("the other child: %v", err)
	}
	_ = traced.Wait() // collected above
}

// TestEventMessage: the message of a stop, and what came with its signal, are not those of the one at which a thread is by now that
// was killed there.
func TestEventMessage(t *testing.T) {
	need.Ptrace(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/bin/sh", "-c", "/bin/true; /bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if _, err := Wait(pid, 0); err != nil {
		t.Fatal(err)
	}
	if err := SetOptions(pid, OptExit|OptFork|OptVfork|OptClone|unix.PTRACE_O_EXITKILL); err != nil {
		t.Fatal(err)
	}
	var made int
	for made == 0 {
		if err := Resume(pid, Cont, 0); err != nil {
			t.Fatal(err)
		}
		ws, err := Wait(pid, 0)
		if err != nil || !ws.Stopped() {
			t.Fatalf("%#x, %v: it makes no child", uint32(ws), err)
		}
		made = Event(ws)
	}
	child, err := EventMessage(pid, made)
	if err != nil || int(child) <= pid {
		t.Errorf("the child of %d is %d, %v", pid, child, err)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if ws, err := Wait(pid, 0); err != nil || Event(ws) != unix.PTRACE_EVENT_EXIT {
		t.Fatalf("killed: %#x, %v", uint32(ws), err)
	}
	if msg, err := EventMessage(pid, made); err != unix.ESRCH {
		t.Errorf("killed: the child is %d, %v", msg, err)
	}
	if err := GetSiginfo(pid, new(Siginfo)); err != unix.ESRCH {
		t.Errorf("killed: what came with its signal can be read: %v", err)
	}
	if msg, err := EventMessage(pid, unix.PTRACE_EVENT_EXIT); err != nil || msg != uint64(unix.SIGKILL) {
		t.Errorf("killed: its end is %d, %v", msg, err)
	}
	for _, tid := range []int{int(child), pid} {
		_ = unix.Kill(tid, unix.SIGKILL)
		for {
			_ = Resume(tid, Cont, 0) // from PTRACE_EVENT_EXIT
			if ws, err := Wait(tid, 0); err != nil || !ws.Stopped() {
				break
			}
		}
	}
	_ = cmd.Wait() // collected above
}
