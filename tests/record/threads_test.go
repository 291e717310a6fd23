//go:build linux && amd64

package record

import (
	"flag"
	"fmt"
	"testing"
	"time"

	recorder "vplay/checkpoint/record"
)

// threadCases are the cases of programs with threads. Where many threads print, lines come in any order.
var threadCases = []struct {
	program string
	names   []string
}{
	{"threads", []string{
		"locks", "yields", "conds", "pipes", "leader", "robust", "cancel", "alarms", "kills", "exec", "leaderexec", "spin", "forks", "many", "ends", "epoll", "raises", "crash",
	}},
	{"threadsignals", []string{
		"leadercrash", "cancels", "handlerwrites", "jumps", "nested", "blocked", "storm", "vectors", "spinlocks", "safepoints", "overrun",
	}},
}

var chaosSeeds = flag.Uint64("chaos-seeds", 1, "how many random schedules TestThreads records each program under")

// TestThreads runs programs with threads, each one thing that recording must get right: the
// same results natively and recorded, and an exact replay, also with an end forced every
// 3 ms, with an interval at nearly every call, and under random schedules.
func TestThreads(t *testing.T) {
	for _, p := range threadCases {
		prog := compile(t, p.program)
		for _, name := range p.names {
			t.Run(name, func(t *testing.T) {
				c := guestCase{name: name, sorted: true}
				c.checkSchedules(t, run{args: []string{prog, name}})
			})
		}
	}
}

// checkSchedules records a program at the default settings, with forced ends, with short
// intervals, and under random schedules.
func (c *guestCase) checkSchedules(t *testing.T, r run) {
	want := r.native(t)
	for _, m := range []struct {
		name string
		opt  recorder.Options
	}{
		{"plain", recorder.Options{}},
		{"forced", recorder.Options{ForceEvery: 3 * time.Millisecond}},
		{"short", recorder.Options{Interval: time.Microsecond}},
	} {
		r.opt = m.opt
		t.Run(m.name, func(t *testing.T) { c.check(t, &r, want) })
	}
	for seed := range *chaosSeeds {
		r.opt = recorder.Options{Chaos: true, ChaosSeed: 1 + seed}
		t.Run(fmt.Sprintf("chaos%d", 1+seed), func(t *testing.T) { c.check(t, &r, want) })
	}
}

// TestThreadsMemory: threads that map and unmap memory of their own all the time, and by chance.
func TestThreadsMemory(t *testing.T) {
	prog := compile(t, "ownmem")
	c := guestCase{name: "ownmem"}
	for name, opt := range map[string]recorder.Options{"plain": {}, "forced": {ForceEvery: 3 * time.Millisecond}, "chaos": {Chaos: true, ChaosSeed: 1}} {
		t.Run(name, func(t *testing.T) {
			r := run{args: []string{prog, "4"}, opt: opt}
			c.check(t, &r, r.native(t))
		})
	}
}
