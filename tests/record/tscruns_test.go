//go:build linux && amd64

package record

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	recorder "vplay/checkpoint/record"
	"vplay/tests/need"
)

// TestTSCRuns: RDTSC runs in a program whose code is known, and is in the log all the same. Where one may be that is in no
// function, it faults.
func TestTSCRuns(t *testing.T) {
	need.Machine(t, "a CPU or virtual machine in which RDTSC can be made to fault", recorder.TSCFaults())
	known, bare := compile(t, "tscruns"), compile(t, "tscruns", "-DBARE")
	for name, c := range map[string]struct {
		prog string
		opt  recorder.Options
		runs bool
	}{
		"often":  {known, recorder.Options{}, true},
		"once":   {known, recorder.Options{TSCAfter: -1}, true},
		"forced": {known, recorder.Options{TSCAfter: -1, ForceEvery: 3 * time.Millisecond}, true},
		"many":   {known, recorder.Options{TSCAfter: -1, Interval: time.Millisecond}, true},
		"bare":   {bare, recorder.Options{TSCAfter: -1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := run{args: []string{c.prog}, opt: c.opt}
			native := r.native(t)
			r.opt.Agent, r.opt.AgentAfter, r.opt.Keep = true, -1, recorder.KeepAlways
			got, res := r.recorded(t)
			if got.out != native.out {
				t.Errorf("output\n%swant\n%s", got.out, native.out)
			}
			if runs := res.Stats.TSCRuns > 0; runs != c.runs {
				t.Errorf("RDTSC was let run %d times", res.Stats.TSCRuns)
			}
			t.Log(verify(t, res.Path))
		})
	}
}

// TestTrapsInFiles: where RDTSC cannot be made to fault it is found in the program's files: with an unwind table, and without
// one in Go's. The agent then does without FSGSBASE, too, as in the oldest CPUs.
func TestTrapsInFiles(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"blocked": {compile(t, "rdtscblocked")},
		"clocks":  {compile(t, "manyclocks"), "500", "2000"},
		"shell":   {"bash", "-c", "for i in 1 2 3; do echo $i | cat; done; /bin/true"},
		// All go commands count their uses in one file of the user's, in memory that they share: this one has its own.
		"go": {"env", "XDG_CONFIG_HOME=" + t.TempDir(), goTool, "version"},
	} {
		for _, agent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/agent %v", name, agent), func(t *testing.T) {
				r := run{args: args, opt: recorder.Options{Agent: agent, AgentAfter: -1, NoTrapTSC: true, NoFSGSBase: true, Keep: recorder.KeepAlways}}
				want := r.native(t)
				got, res := r.recorded(t)
				same(t, got, want)
				t.Log(verify(t, res.Path))
				if res.Stats.Instrs == 0 {
					t.Errorf("no RDTSC in the log")
				}
			})
		}
	}
}

// TestClocks: where RDTSC runs the agent reads clocks by the vDSO, in which a thread may be found at any time.
func TestClocks(t *testing.T) {
	prog := compile(t, "manyclocks")
	for name, c := range map[string]struct {
		args []string
		opt  recorder.Options
	}{
		"often":    {[]string{"20000", "2000"}, recorder.Options{}},
		"once":     {[]string{"20000", "2000"}, recorder.Options{TSCAfter: -1}},
		"forced":   {[]string{"10000", "2000"}, recorder.Options{TSCAfter: -1, ForceEvery: time.Millisecond}},
		"chaos":    {[]string{"500", "20000"}, recorder.Options{TSCAfter: -1, Chaos: true, ChaosSeed: 7}}, // in which all takes long
		"many":     {[]string{"5000", "3000"}, recorder.Options{TSCAfter: -1, Interval: time.Millisecond}},
		"no agent": {[]string{"100", "20000"}, recorder.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := run{args: append([]string{prog}, c.args...), opt: c.opt}
			r.opt.Agent, r.opt.AgentAfter, r.opt.Keep = name != "no agent", -1, recorder.KeepAlways
			got, res := r.recorded(t)
			if want := "errors right\nerrors right\n0 times back, the child 0\n"; got.out != want {
				t.Errorf("output\n%swant\n%s", got.out, want)
			}
			t.Log(verify(t, res.Path))
		})
	}
}
