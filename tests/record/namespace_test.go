//go:build linux && amd64

package record

import (
	"strings"
	"testing"

	"vplay/tests/need"
)

// TestFirstOfNamespace records the first process of a PID namespace, as a container has one: it
// outlives signals that would kill another, and dies of its own faults although it is traced.
func TestFirstOfNamespace(t *testing.T) {
	unshare := need.Program(t, "unshare")
	prog := compile(t, "initcrash")
	for _, how := range []string{"abort", "fault", "exit"} {
		t.Run(how, func(t *testing.T) {
			r := run{args: []string{unshare, "--user", "--map-root-user", "--pid", "--fork", prog, how}}
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
