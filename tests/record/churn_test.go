//go:build linux && amd64

package record

import (
	"testing"
	"time"

	recorder "vplay/checkpoint/record"
)

// TestChurn: threads, and processes that share memory, that do by chance what programs do. The guests are for
// finding what no other test has: with other numbers of threads, and other seeds, they found what TestUnmapSignals
// holds, and that pages of a memfd were taken from private views of it.
func TestChurn(t *testing.T) {
	for _, m := range []struct {
		name, guest, threads, rounds string
		opt                          recorder.Options
	}{
		{"threads", "churn", "3", "1500", recorder.Options{}},
		{"threads, agent", "churn", "4", "1500", recorder.Options{Agent: true}},
		{"threads, agent, forced", "churn", "3", "1500", recorder.Options{Agent: true, ForceEvery: 3 * time.Millisecond}},
		{"one thread, agent, forced", "churn", "1", "1500", recorder.Options{Agent: true, ForceEvery: 3 * time.Millisecond}},
		{"threads, agent, chaos", "churn", "4", "1500", recorder.Options{Agent: true, Chaos: true, ChaosSeed: 1}},
		{"processes, forced", "churnshared", "2", "700", recorder.Options{ForceEvery: 3 * time.Millisecond}},
		{"two processes, agent, forced", "churnshared", "2", "1500", recorder.Options{Agent: true, ForceEvery: 3 * time.Millisecond}},
		{"processes, agent, forced", "churnshared", "3", "1500", recorder.Options{Agent: true, ForceEvery: 3 * time.Millisecond}},
	} {
		t.Run(m.name, func(t *testing.T) {
			r := run{args: []string{compile(t, m.guest), m.threads, m.rounds, "7"}, dir: t.TempDir(), opt: m.opt}
			c := guestCase{name: m.guest}
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

// TestBadPointers: calls whose pointers are good, or bad, by chance. A getsockopt that fails has a length that can be
// anything: what lay that far was taken for what the kernel had written, with the agent's memory and its jumps.
func TestBadPointers(t *testing.T) {
	prog := compile(t, "badpointers")
	for _, m := range []struct {
		name string
		opt  recorder.Options
	}{
		{"stops", recorder.Options{}},
		{"agent", recorder.Options{Agent: true}},
		{"agent, forced", recorder.Options{Agent: true, ForceEvery: 3 * time.Millisecond}},
	} {
		t.Run(m.name, func(t *testing.T) {
			r := run{args: []string{prog, "2500", "3"}, dir: t.TempDir(), opt: m.opt}
			c := guestCase{name: "badpointers"}
			c.check(t, &r, outcome{out: "end\n"})
		})
	}
}
