//go:build linux && amd64

package record

import (
	"testing"
	"time"

	"vplay/checkpoint"
	recorder "vplay/checkpoint/record"
)

// treeCases are the cases of trees.c that end well, and whether a random schedule can
// change what they do: not where there is one process at a time.
var treeCases = []struct {
	name  string
	chaos bool
}{
	{"fork", false},
	{"chain", false},
	{"many", false},
	{"vfork", false},
	{"vforkfails", true},
	{"spawn", false},
	{"shells", false},
	{"clonevm", true},
	{"clonevmexec", true},
	{"forklocked", true},
	{"forkthread", true},
	{"forkexecthread", true},
	{"pipes", false},
	{"mutexes", true},
	{"conds", true},
	{"sems", true},
	{"spins", true},
	{"remaps", true},
	{"remapsnamed", true},
	{"later", true},
	{"semopen", true},
	{"robust", true},
	{"sysv", true},
	{"daemon", false},
	{"killed", false},
	{"killedvm", true},
	{"handler", false},
	{"stops", false},
	{"stopshared", true},
	{"stopwrite", true},
	{"sessions", false},
	{"again", false},
	{"lwps", true},
	{"execloops", false},
	{"spinturns", true},
	{"pwrites", true},
	{"remote", true},
	{"namespaces", false},
	{"tracer", false},
	{"attach", false},
}

// TestTrees runs programs of several processes, each one thing that recording must get
// right: the same results natively and recorded, and an exact replay of every process, also
// with an end forced every 3 ms, with an interval at nearly every call, and under random
// schedules.
func TestTrees(t *testing.T) {
	prog := compile(t, "trees")
	for _, tc := range treeCases {
		t.Run(tc.name, func(t *testing.T) {
			c := guestCase{name: tc.name, sorted: true}
			r := run{args: []string{prog, tc.name}}
			want := r.native(t)
			modes := []struct {
				name string
				opt  recorder.Options
			}{
				{"plain", recorder.Options{}},
				{"forced", recorder.Options{ForceEvery: 3 * time.Millisecond}},
				{"short", recorder.Options{Interval: time.Microsecond}},
				{"chaos", recorder.Options{Chaos: true, ChaosSeed: 1}},
			}
			for _, m := range modes {
				if m.opt.Chaos && !tc.chaos {
					continue
				}
				r.opt = m.opt
				t.Run(m.name, func(t *testing.T) { c.check(t, &r, want) })
			}
		})
	}
}

// TestTreeTurns: a process that spins without a call on what another is to store gives up its
// turn to that one, however long intervals are.
func TestTreeTurns(t *testing.T) {
	prog := compile(t, "trees")
	for _, name := range []string{"spinturns", "later"} {
		t.Run(name, func(t *testing.T) {
			c := guestCase{name: name}
			r := run{args: []string{prog, name}, opt: recorder.Options{Interval: time.Hour}}
			c.check(t, &r, r.native(t))
		})
	}
}

// TestUntraced: children that ask not to be traced are recorded as others are, and get the registers that they have without a
// recorder, recorded or not.
func TestUntraced(t *testing.T) {
	prog := compile(t, "untraced")
	for follow, processes := range map[recorder.Follow]int{recorder.FollowAll: 3, recorder.FollowNone: 1} {
		t.Run(string(follow), func(t *testing.T) {
			c := guestCase{name: "untraced"}
			r := run{args: []string{prog}, opt: recorder.Options{Follow: follow}}
			c.check(t, &r, r.native(t))
			_, res := r.recorded(t)
			numbers := map[int32]bool{}
			eachInterval(t, res.Path, func(_ *checkpoint.Recording, iv *checkpoint.Interval) { numbers[iv.PID] = true })
			if len(numbers) != processes {
				t.Errorf("%d processes are recorded, want %d", len(numbers), processes)
			}
		})
	}
}

// TestVforkFlags: the log says how a child was made that shares memory. vfork(2) has no
// arguments, so nothing in the registers is flags or an address.
func TestVforkFlags(t *testing.T) {
	const vforkFlags = 0x4100 // CLONE_VM|CLONE_VFORK, linux/sched.h
	r := run{args: []string{compile(t, "trees"), "vfork"}}
	_, res := r.recorded(t)
	started := 0
	eachInterval(t, res.Path, func(_ *checkpoint.Recording, iv *checkpoint.Interval) {
		for _, e := range iv.Events {
			switch {
			case e.Kind != checkpoint.EventThread:
			case e.Thread == checkpoint.ThreadStart:
				if started++; e.Flags != vforkFlags {
					t.Errorf("thread %d starts with flags %#x", e.TID, e.Flags)
				}
			case len(e.Writes) > 0:
				t.Errorf("the end of thread %d writes %d words", e.TID, len(e.Writes))
			}
		}
	})
	if started != 3 {
		t.Errorf("%d children, want 3", started)
	}
}

// TestVforkThreads: processes that share memory are made by threads while others run, and intervals end by force
// meanwhile.
func TestVforkThreads(t *testing.T) {
	r := run{args: []string{compile(t, "agenttrees"), "threads", t.TempDir()}, opt: recorder.Options{ForceEvery: time.Millisecond}}
	c := guestCase{sorted: true}
	want := r.native(t)
	for range 3 {
		c.check(t, &r, want)
	}
}
