//go:build linux && amd64

package record

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi/ptrace"
	"vplay/tests/need"
)

// counting starts a program that counts its signals, and that job control has stopped, and the
// relay for it. counted has it go on and returns the counts. Nobody traces it.
func counting(t *testing.T) (r *relay, pid int, counted func() string) {
	t.Helper()
	prog := filepath.Join(t.TempDir(), "sigcount")
	if b, err := exec.Command(need.Program(t, "gcc"), "-o", prog, filepath.Join("..", "..", "tests", "guest", "record", "sigcount.c")).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, b)
	}
	cmd := exec.Command(prog)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid = cmd.Process.Pid
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	lines.Scan()
	for call := []byte(nil); !bytes.HasPrefix(call, []byte("130 ")); time.Sleep(time.Millisecond) { // rt_sigsuspend(2)
		if call, err = os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid)); err != nil {
			t.Fatal(err)
		}
	}
	_ = unix.Kill(pid, unix.SIGSTOP)
	for stateOf(pid) != 'T' {
		time.Sleep(time.Millisecond)
	}
	r = &relay{queue: make(chan arrival, 1), noted: make(chan struct{}, 1), pid: pid, own: newOwnSignals()}
	return r, pid, func() string {
		_ = unix.Kill(pid, unix.SIGCONT)
		_ = unix.Kill(pid, 64)
		lines.Scan()
		return strings.TrimSpace(strings.Replace(lines.Text(), "18:1 ", "", 1))
	}
}

// TestOwnCopyPending: what waits in the program's queue is not sent once more, be it a real-time
// signal; but what waits there because the relay has sent it is no copy of the next.
func TestOwnCopyPending(t *testing.T) {
	r, pid, counted := counting(t)
	for _, sig := range []unix.Signal{unix.SIGHUP, 34, 40} { // to the group
		_ = unix.Kill(pid, sig)
		if !r.pass(sig) {
			t.Errorf("signal %d waits", sig)
		}
	}
	for range 3 { // to the recorder
		r.pass(41)
	}
	if got := counted(); got != "1:1 34:1 40:1 41:3" {
		t.Error(got)
	}
}

// TestOwnCopyMerged: of a standard signal that waits in the program's queue the kernel keeps one. Whatever it
// turns out to be when the program gets it, what comes to the recorder meanwhile is one with it, and what goes to the group
// later is not.
func TestOwnCopyMerged(t *testing.T) {
	const kill, timer = 0, -2 // SI_USER, SI_TIMER
	for name, c := range map[string]struct {
		sent bool // by the relay, else by the program's timer
		code int32
	}{"the relay's": {true, kill}, "the program's": {false, timer}} {
		r, pid, counted := counting(t)
		th := &thread{session: &session{}, proc: &process{pid: pid}}
		th.session.first = th.proc
		get := func(sig unix.Signal, code int32, sender int) {
			var si ptrace.Siginfo
			binary.LittleEndian.PutUint32(si[0:], uint32(sig))
			binary.LittleEndian.PutUint32(si[8:], uint32(code))
			binary.LittleEndian.PutUint32(si[16:], uint32(sender))
			r.delivered(th, &si)
		}
		if !c.sent {
			_ = unix.Kill(pid, unix.SIGALRM)
		}
		for range 3 { // to the recorder
			r.pass(unix.SIGALRM)
		}
		if got := counted(); got != "14:1" {
			t.Errorf("%s: %s", name, got)
		}
		get(unix.SIGALRM, c.code, os.Getpid())
		for n := range 3 { // to the group
			get(unix.SIGALRM, kill, 1)
			if len(r.own.seen) != 1 {
				t.Errorf("%s: %d: seen %v", name, n, r.own.seen)
			}
			if !r.pass(unix.SIGALRM) || len(r.own.seen) != 0 || r.own.relayed[unix.SIGALRM] != 0 {
				t.Errorf("%s: %d: %+v", name, n, r.own)
			}
		}
	}
}

// TestForGroup: which signals may have gone to the recorder as well.
func TestForGroup(t *testing.T) {
	const siKill, siQueue, siTimer, pollIn, segvMaperr, cldExited = 0, -1, -2, 1, 1, 1
	for _, c := range []struct {
		sig  unix.Signal
		code int32
		may  bool
	}{
		{unix.SIGUSR1, siKill, true},
		{40, siQueue, true},
		{unix.SIGINT, siKernel, true}, // from a terminal
		{unix.SIGHUP, siKernel, true},
		{unix.SIGIO, siKernel, true}, // fcntl(2), F_SETOWN
		{unix.SIGIO, pollIn, true},   // F_SETSIG
		{unix.SIGUSR1, pollIn, true},
		{40, pollIn, true},
		{unix.SIGALRM, siKernel, false}, // setitimer(2)
		{unix.SIGIO, siTkill, false},
		{unix.SIGUSR1, siTkill, false},
		{40, siTimer, false},
		{unix.SIGSEGV, segvMaperr, false},
		{unix.SIGCHLD, cldExited, false},
	} {
		r := &relay{queue: make(chan arrival, 1), noted: make(chan struct{}, 1), own: newOwnSignals()}
		th := &thread{session: &session{}, proc: &process{}}
		th.session.first = th.proc
		var si ptrace.Siginfo
		binary.LittleEndian.PutUint32(si[0:], uint32(c.sig))
		binary.LittleEndian.PutUint32(si[8:], uint32(c.code))
		r.delivered(th, &si)
		if got := len(r.own.seen) == 1; got != c.may {
			t.Errorf("signal %d, code %d: %t", c.sig, c.code, got)
		}
	}
}

// TestOwnCopyDelivered: what was delivered to the program is not sent once more.
func TestOwnCopyDelivered(t *testing.T) {
	r, _, counted := counting(t)
	for _, sig := range []unix.Signal{unix.SIGUSR1, 40} {
		r.own.took(sig, false, true)
		if !r.pass(sig) {
			t.Errorf("signal %d waits", sig)
		}
	}
	if got := counted(); got != "" || len(r.own.seen) != 0 {
		t.Error(got, r.own.seen)
	}
}

// TestOwnCopyUnseen: a stop that the tracer has not looked at may be for the signal, however long that takes.
func TestOwnCopyUnseen(t *testing.T) {
	runtime.LockOSThread() // the tracer
	defer runtime.UnlockOSThread()
	r, pid, counted := counting(t)
	if err := ptrace.Seize(pid, 0); err != nil {
		t.Fatal(err)
	}
	_ = unix.Kill(pid, unix.SIGCONT)
	for _, sig := range []unix.Signal{unix.SIGUSR1, 40} {
		_ = unix.Kill(pid, sig)
		for { // job control's stop ends first
			ws, err := ptrace.Wait(pid, 0)
			if err != nil {
				t.Fatal(err)
			}
			if ptrace.StopSignal(ws) == sig {
				break
			}
			_ = ptrace.Resume(pid, ptrace.Cont, 0)
		}
		r.own.marks[pid] = isRunning
		if r.pass(sig) {
			t.Errorf("signal %d does not wait", sig)
		}
		r.own.took(sig, false, true)
		r.own.marks[pid] = hasLooked
		if !r.pass(sig) {
			t.Errorf("signal %d waits", sig)
		}
		r.own.marks[pid] = isWaiting // as in rt_sigtimedwait(2), where it sleeps
		_ = ptrace.Resume(pid, ptrace.Cont, 0)
	}
	for taskState(pid, pid) != 'S' {
		time.Sleep(time.Millisecond)
	}
	if r.own.anyUnseen(pid) {
		t.Error("a thread that sleeps may have taken a signal")
	}
	_ = unix.Kill(pid, unix.SIGWINCH)
	for taskState(pid, pid) != 't' {
		time.Sleep(time.Millisecond)
	}
	if !r.own.anyUnseen(pid) {
		t.Error("a thread that has stopped cannot have taken a signal")
	}
	_, _ = ptrace.Wait(pid, 0)
	if err := ptrace.Resume(pid, ptrace.Detach, 0); err != nil {
		t.Fatal(err)
	}
	if got := counted(); got != "" {
		t.Error(got)
	}
}

// TestHandlersAreDone ends where a thread blocks all signals that Go's runtime does not unblock, as all do
// when the recorder was started so.
func TestHandlersAreDone(t *testing.T) {
	runtime.LockOSThread() // never unlocked, so it goes with the test
	all := unix.Sigset_t{}
	for i := range all.Val {
		all.Val[i] = ^uint64(0)
	}
	for _, sig := range []unix.Signal{unix.SIGCHLD, unix.SIGPROF} {
		all.Val[0] &^= 1 << (sig - 1)
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil); err != nil {
		t.Fatal(err)
	}
	handlersAreDone(nil)
}

// TestForgetOld: what was delivered to the program is kept for as long as what was sent at that time is on its
// way through the recorder, and no longer.
func TestForgetOld(t *testing.T) {
	r, pid, counted := counting(t)
	r.interrupt = func() {}
	defer r.start()()
	r.program(pid)
	forgotten := func() {
		for left := 1; left > 0; time.Sleep(time.Millisecond) {
			r.mu.Lock()
			left = len(r.own.seen)
			r.mu.Unlock()
		}
	}
	for range 50 {
		for _, sig := range []unix.Signal{unix.SIGHUP, unix.SIGUSR1, unix.SIGWINCH, 33, 34, 40, 63} { // to both
			r.mu.Lock()
			_ = unix.Kill(os.Getpid(), sig)
			r.own.took(sig, false, true)
			r.wake()
			r.mu.Unlock()
		}
		forgotten()
	}
	for _, sig := range []unix.Signal{unix.SIGUSR2, 34, 41} {
		r.mu.Lock()
		r.own.took(sig, false, true) // to the program
		r.wake()
		r.mu.Unlock()
		forgotten()
		_ = unix.Kill(os.Getpid(), sig) // to the recorder
		for {
			status, err := statusOf(pid)
			if err != nil {
				t.Fatal(err)
			}
			if has(status.Mask("ShdPnd"), sig) {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	if got := counted(); got != "12:1 34:1 41:1" {
		t.Error(got)
	}
}
