//go:build linux && amd64

package record

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"vplay/checkpoint"
	recorder "vplay/checkpoint/record"
	"vplay/tests/need"
)

// guestCase is a program of tests/guest/record.
type guestCase struct {
	name    string
	flags   []string
	sorted  bool   // lines come in any order
	refused string // recording ends early for this reason
	opt     func(*recorder.Options)
	page    string // that the kernel must map
	noAgent bool   // it reads its own machine code, which the agent changes (vplayd help record), and HLT for RDTSC does
	prints  string // what it prints by itself on machines that it is for
}

var guestCases = []guestCase{
	{name: "altstack"},
	{name: "bigio"},
	{name: "brk"},
	{name: "deepcwd"},
	{name: "epollblocked"},
	{name: "execkilled"},
	{name: "execmid"},
	{name: "failmem"},
	{name: "failrows"},
	{name: "fdevents"},
	{name: "filegone", opt: func(o *recorder.Options) { o.ForceEvery = 4 * time.Millisecond }},
	{name: "filters"},
	// With lazy binding its first poll, behind the look at the flag, is the linker's first, which takes so long that a signal may come in there.
	{name: "flagpoll", flags: []string{"-Wl,-z,now"}},
	{name: "forkkilled"},
	{name: "hypervisor"},
	{name: "largeread", opt: func(o *recorder.Options) { o.ForceEvery = 3 * time.Millisecond }},
	{name: "listeners", flags: []string{"-pthread"}},
	{name: "longjmp"},
	{name: "madvise"},
	{name: "masks"},
	{name: "memfdexec"},
	{name: "memfdtwice"},
	{name: "mremap"},
	{name: "noexec"},
	{name: "nops"},
	{name: "noclone", opt: func(o *recorder.Options) { o.ForceEvery = 3 * time.Millisecond }},
	{name: "nodump"},
	{name: "noeintr"},
	{name: "orphans", sorted: true},
	{name: "ownmem", opt: func(o *recorder.Options) { o.ForceEvery = 3 * time.Millisecond }},
	{name: "patchback", opt: func(o *recorder.Options) { o.ForceEvery, o.Agent, o.AgentAfter = 3*time.Millisecond, true, -1 }},
	{name: "pwritemap"},
	{name: "queries"},
	{name: "rdtscblocked"},
	{name: "repstores", opt: func(o *recorder.Options) { o.ForceEvery = time.Millisecond }},
	{name: "restart"},
	{name: "rwpid"},
	{name: "selfmod"},
	{name: "servesfiles"},
	{name: "shmdetach"},
	{name: "sigchld"},
	{name: "sandbox"},
	{name: "sigreturnkilled"},
	{name: "sigcontext"},
	{name: "sparsemap"},
	{name: "spawnfail"},
	{name: "stepped", flags: []string{"-pthread"}, opt: func(o *recorder.Options) { o.ForceEvery, o.Agent, o.AgentAfter = 3*time.Millisecond, true, -1 }},
	{name: "stops"},
	{name: "system", flags: []string{"-no-pie"}, prints: "selector 23 "}, // Linux's table of segments, which some hypervisors replace
	{name: "textsum", noAgent: true},
	{name: "thread2"},
	{name: "threadkilled"},
	{name: "timerhalts"},
	{name: "truncatemap"},
	{name: "twosignals"},
	{name: "unlinkmap"},
	{name: "unmaphidden"},
	{name: "untraced"},
	{name: "vfork"},
	{name: "vforkkilled"},
	{name: "vsyscall", opt: func(o *recorder.Options) { o.Vsyscall = true }, page: "[vsyscall]"},
	{name: "wipeonfork"},
	{name: "xinuse"},
	{name: "xsaveloop", flags: []string{"-static"}},
	{name: "xsaveread", flags: []string{"-static"}},
}

// TestGuests runs one guest for each awkward effect: the same results natively
// and recorded, and an exact replay, also with an interval that ends at nearly every call.
func TestGuests(t *testing.T) {
	modes := []struct {
		name string
		opt  recorder.Options
	}{
		{"plain", recorder.Options{}},
		{"short intervals", recorder.Options{Interval: time.Microsecond}},
	}
	for _, c := range guestCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			needPage(t, c.page)
			r := run{args: []string{compile(t, c.name, c.flags...)}, noAgent: c.noAgent}
			want := r.native(t)
			need.Machine(t, "a machine in which RDTSC can be made to fault", !c.noAgent || recorder.TSCFaults())
			need.Machine(t, "a machine where it prints: "+c.prints, strings.Contains(want.out, c.prints))
			for _, m := range modes {
				r.opt = m.opt
				if c.opt != nil {
					c.opt(&r.opt)
				}
				t.Run(m.name, func(t *testing.T) { c.check(t, &r, want) })
			}
		})
	}
}

// needPage wants a mapping of the kernel's in every process.
func needPage(t *testing.T, name string) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	need.Machine(t, "a kernel that maps "+name, strings.Contains(string(maps), name))
}

func (c *guestCase) check(t *testing.T, r *run, want outcome) {
	got, res := r.recorded(t)
	if c.sorted {
		got.out, want.out = sortLines(got.out), sortLines(want.out)
	}
	same(t, got, want)
	if !strings.Contains(res.Reason, c.refused) || c.refused == "" && res.Reason != "" {
		t.Errorf("recording ended early: %q, want %q", res.Reason, c.refused)
	}
	if !res.Recorded {
		t.Fatalf("nothing recorded: %s", res.Reason)
	}
	t.Log(verify(t, res.Path))
}

func sortLines(s string) string {
	l := strings.Split(s, "\n")
	slices.Sort(l)
	return strings.Join(l, "\n")
}

// TestMissing crashes a program that maps more data than is read of an object: the recording
// names what it lacks, and replays as far as the program did not use that.
func TestMissing(t *testing.T) {
	prog := compile(t, "sparsemap")
	for _, c := range []struct {
		mib     string
		missing string
	}{{"10", ""}, {"100", "/memfd:sparse (deleted): 36.0 MiB of what it held"}} {
		r := run{args: []string{prog, c.mib}, opt: recorder.Options{Keep: recorder.KeepCrash}}
		want := r.native(t)
		got, res := r.recorded(t)
		same(t, got, want)
		if !res.Recorded {
			t.Fatalf("nothing recorded: %s", res.Reason)
		}
		rec, err := checkpoint.Open(res.Path)
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(rec.Manifest().Notes, "\n")
		rec.Close()
		if said := strings.Join(res.Missing, "\n"); !strings.Contains(said, c.missing) || !strings.Contains(notes, said) || c.missing == "" && said != "" {
			t.Errorf("%s MiB: said %q, notes %q", c.mib, said, notes)
		}
		verify(t, res.Path)
	}
}
