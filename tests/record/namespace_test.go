//go:build linux && amd64

package record

import (
	"fmt"
	"strings"
	"testing"
	"time"

	recorder "vplay/checkpoint/record"
	"vplay/tests/need"
)

// TestFirstOfNamespace records the first process of a PID namespace, as a container has one: it
// outlives signals that would kill another, and dies of its own faults although it is traced.
func TestFirstOfNamespace(t *testing.T) {
	unshare := need.Program(t, "unshare")
	prog := compile(t, "initcrash")
	for _, c := range []struct {
		how   string
		force time.Duration // the timer's signals have no sender there
	}{{"abort", 0}, {"fault", 0}, {"exit", 0}, {"abort", time.Millisecond}, {"fault", time.Millisecond}, {"exit", time.Millisecond}} {
		how := c.how
		t.Run(fmt.Sprintf("%s/%v", how, c.force), func(t *testing.T) {
			r := run{args: []string{unshare, "--user", "--map-root-user", "--pid", "--fork", prog, how}, opt: recorder.Options{ForceEvery: c.force}}
			want := r.native(t)
			need.Machine(t, "a kernel that lets anybody make PID namespaces", strings.HasPrefix(want.out, "number 1\n"))
			got, res := r.recorded(t)
			same(t, got, want)
			if res.Reason != "" || !res.Recorded {
				t.Fatalf("result: %+v", res)
			}
			if crashes := how != "exit"; (res.Crashed != nil) != crashes {
				t.Errorf("crashed: %+v", res.Crashed)
			}
			t.Log(verify(t, res.Path))
		})
	}
}

// TestUnshared records a program whose children begin in another PID namespace: the first of them is
// that one's init, whatever copies of the program the recorder has made before.
func TestUnshared(t *testing.T) {
	r := run{args: []string{compile(t, "unshared")}, opt: recorder.Options{ForceEvery: time.Millisecond}}
	r.checkInNamespace(t)
}

// TestReaper records processes to which orphans come: of the recorder's copies of their children none is among these.
func TestReaper(t *testing.T) {
	prog := compile(t, "reaper")
	for _, how := range []string{"namespace", "subreaper"} {
		for _, force := range []time.Duration{0, time.Millisecond} {
			t.Run(fmt.Sprintf("%s/%v", how, force), func(t *testing.T) {
				r := run{args: []string{prog, how}, opt: recorder.Options{ForceEvery: force}}
				r.checkInNamespace(t)
			})
		}
	}
}

// checkInNamespace records a program that makes a PID namespace.
func (r *run) checkInNamespace(t *testing.T) {
	t.Helper()
	want := r.native(t)
	need.Machine(t, "a kernel that lets anybody make PID namespaces", !strings.HasPrefix(want.out, "refused"))
	got, res := r.recorded(t)
	same(t, got, want)
	if res.Reason != "" || !res.Recorded {
		t.Fatalf("result: %+v", res)
	}
	t.Log(verify(t, res.Path))
}
