//go:build linux && amd64

package record

import (
	"testing"
	"time"

	recorder "vplay/checkpoint/record"
)

// TestChurn: threads that do by chance what programs do. The guest is for finding what no other test
// has: with other numbers of threads, and other seeds, it found what TestUnmapSignals holds.
func TestChurn(t *testing.T) {
	prog := compile(t, "churn")
	c := guestCase{name: "churn"}
	for _, m := range []struct {
		name, threads string
		opt           recorder.Options
	}{
		{"plain", "3", recorder.Options{}},
		{"agent", "4", recorder.Options{Agent: true}},
		{"agent, forced", "3", recorder.Options{Agent: true, ForceEvery: 3 * time.Millisecond}},
		{"agent, one thread, forced", "1", recorder.Options{Agent: true, ForceEvery: 3 * time.Millisecond}},
		{"agent, chaos", "4", recorder.Options{Agent: true, Chaos: true, ChaosSeed: 1}},
	} {
		t.Run(m.name, func(t *testing.T) {
			r := run{args: []string{prog, m.threads, "1500", "7"}, dir: t.TempDir(), opt: m.opt}
			c.check(t, &r, outcome{out: "end\n"})
		})
	}
}

// TestUnmapSignals: the agent unmaps memory, and a signal comes before it has taken note of that.
// Where a file was mapped there next, it took that for the same memory, and nothing was recorded.
func TestUnmapSignals(t *testing.T) {
	r := run{args: []string{compile(t, "unmapsignals")}, dir: t.TempDir(), opt: recorder.Options{Agent: true}}
	c := guestCase{name: "unmapsignals"}
	c.check(t, &r, outcome{out: "end\n"})
}
