//go:build linux && amd64

package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	recorder "vplay/checkpoint/record"
)

// bigCrash is a run of tests/guest/record/bigcrash.c with much memory to read at its end.
func bigCrash(t *testing.T, how ...string) run {
	t.Helper()
	return run{args: append([]string{compile(t, "bigcrash", "-pthread")}, how...), opt: recorder.Options{Keep: recorder.KeepCrash, Interval: time.Microsecond}}
}

// TestBigCrash has a program with much memory killed by a signal: what it has written last is read by
// a helper that it makes, where it can have one, and it dies as it would have.
func TestBigCrash(t *testing.T) {
	for _, c := range []struct {
		how     string
		sig     syscall.Signal
		readers uint64
	}{
		{"fault", syscall.SIGSEGV, 1},
		{"abort", syscall.SIGABRT, 1},
		{"wait", syscall.SIGTERM, 1},
		{"child", 0, 1},
		{"fault threads", syscall.SIGSEGV, 1},
		{"abort threads", syscall.SIGABRT, 1},
		{"fault filter", syscall.SIGSEGV, 0},
		{"fault limit", syscall.SIGSEGV, 0},
		{"abort limit", syscall.SIGABRT, 0},
		{"late limit", syscall.SIGSEGV, 0},
	} {
		t.Run(c.how, func(t *testing.T) {
			r := bigCrash(t, strings.Fields(c.how)...)
			want := r.native(t)
			got, res := r.recorded(t)
			same(t, got, want)
			if got.sig != int(c.sig) || !res.Recorded {
				t.Fatalf("killed by %d, recorded: %t %s", got.sig, res.Recorded, res.Reason)
			}
			if res.Stats.CrashReaders != c.readers || c.readers > 0 && res.Stats.Scans == 0 {
				t.Errorf("%d readers of the memory at a crash, %d scans", res.Stats.CrashReaders, res.Stats.Scans)
			}
			t.Log(verify(t, res.Path))
		})
	}
}

// TestBigCrashKilled: a program that is killed while the helper reads its memory is gone, and the helper, too.
func TestBigCrashKilled(t *testing.T) {
	for hit := 0; hit < 5; {
		r := bigCrash(t, "fault")
		helper := make(chan int, 1)
		r.kick = func(pid int) { helper <- killBeside(pid) }
		got, _ := r.recorded(t)
		pid := <-helper
		if pid == 0 {
			continue // it was over before
		}
		hit++
		if got.sig != int(syscall.SIGKILL) && got.sig != int(syscall.SIGSEGV) {
			t.Errorf("killed by %d", got.sig)
		}
		if unix.Access(fmt.Sprintf("/proc/%d", pid), unix.F_OK) == nil {
			t.Errorf("helper %d is left", pid)
		}
	}
}

// killBeside kills a process when there is a child of this one that shares its memory, and returns that; 0 when the
// process ends before.
func killBeside(pid int) int {
	const vm = 1 // KCMP_VM, linux/kcmp.h
	for unix.Kill(pid, 0) == nil {
		lists, _ := filepath.Glob("/proc/self/task/*/children")
		for _, name := range lists {
			list, _ := os.ReadFile(name) // a thread may have gone
			for _, f := range strings.Fields(string(list)) {
				child, _ := strconv.Atoi(f)
				if child == pid {
					continue
				}
				if r, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(pid), uintptr(child), vm, 0, 0, 0); errno == 0 && r == 0 {
					_ = unix.Kill(pid, unix.SIGKILL)
					return child
				}
			}
		}
	}
	return 0
}

// TestBigCrashAttached: the helper of a program that was attached to is that one's child, and nobody sees it.
func TestBigCrashAttached(t *testing.T) {
	args := []string{compile(t, "bigcrash", "-pthread"), "fault", "attached"}
	want := startAlive(t, args...).finish("go")
	p := startAlive(t, args...)
	a := attach(t, p.pid(), attachOptions{Keep: recorder.KeepCrash})
	same(t, p.finish("go"), want)
	if r := a.result(); !r.Recorded || r.Signal != int(syscall.SIGSEGV) || r.Error != "" {
		t.Fatalf("the end: %+v", r)
	}
	t.Log(verify(t, a.path))
}
