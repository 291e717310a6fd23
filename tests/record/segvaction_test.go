//go:build linux && amd64

package record

import (
	"testing"
	"time"

	recorder "vplay/checkpoint/record"
)

// TestSegvAction: a program does not see that the kernel has another action for SIGSEGV than its own as long as it is recorded, and
// ends by each kind of SIGSEGV, or handles it, as by itself.
func TestSegvAction(t *testing.T) {
	prog := compile(t, "segvaction")
	for _, action := range []string{"default", "handled", "back", "ignored"} {
		for _, way := range []string{"null", "noncanonical", "raise", "kill", "queue", "blocked", "faultblocked", "overflow", "jump", "incall", "shares", "none"} {
			if action == "ignored" && (way == "kill" || way == "queue" || way == "incall") {
				continue // which wait for the signal
			}
			for _, opt := range []recorder.Options{{}, {Agent: true}, {Agent: true, ForceEvery: time.Millisecond}} {
				name := action + "/" + way
				if opt.Agent {
					name += "/agent"
				}
				if opt.ForceEvery != 0 {
					name += ", forced"
				}
				t.Run(name, func(t *testing.T) {
					r := run{args: []string{prog, action, way}, dir: t.TempDir(), opt: opt}
					want := r.native(t)
					got, res := r.recorded(t)
					same(t, got, want)
					verify(t, res.Path)
				})
			}
		}
	}
}
