//go:build linux && amd64

package record

import (
	"testing"
	"time"

	recorder "vplay/checkpoint/record"
)

// TestManyTSC: RDTSC and RDTSCP that are executed often lead to the agent, where a jump can, and wherever a thread is found then it is
// before the instruction, or behind it.
func TestManyTSC(t *testing.T) {
	prog := compile(t, "manytsc", "-pthread")
	for name, c := range map[string]struct {
		args  []string
		opt   recorder.Options
		stops bool // they lead nowhere
	}{
		"often":     {[]string{"40000", "0"}, recorder.Options{}, false},
		"signals":   {[]string{"20000", "300"}, recorder.Options{}, false},
		"runs":      {[]string{"20000", "1000"}, recorder.Options{TSCAfter: -1}, false},
		"files":     {[]string{"20000", "1000"}, recorder.Options{NoTrapTSC: true, NoFSGSBase: true}, false},
		"forced":    {[]string{"20000", "1000"}, recorder.Options{ForceEvery: time.Millisecond}, false},
		"many":      {[]string{"20000", "1000"}, recorder.Options{Interval: time.Millisecond}, false},
		"many runs": {[]string{"20000", "1000"}, recorder.Options{Interval: time.Millisecond, TSCAfter: -1}, false},
		"chaos":     {[]string{"4000", "20000"}, recorder.Options{Chaos: true, ChaosSeed: 3}, false},
		"no agent":  {[]string{"2000", "20000"}, recorder.Options{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := run{args: append([]string{prog}, c.args...), opt: c.opt}
			r.opt.Agent, r.opt.AgentAfter, r.opt.Keep = !c.stops, 1, recorder.KeepAlways
			got, res := r.recorded(t)
			if want := "0 back, 0 wrong, thread 0, child 0\n"; got.out != want {
				t.Errorf("output\n%swant\n%s", got.out, want)
			}
			t.Logf("%d of %d by the agent; %s", res.Stats.AgentInstrs, res.Stats.Instrs, verify(t, res.Path))
			if signals := c.args[1] != "0"; signals != (res.Stats.Signals > 0) {
				t.Errorf("%d signals", res.Stats.Signals)
			}
			if stops := res.Stats.AgentInstrs == 0; stops != c.stops || name == "often" && res.Stats.AgentInstrs < res.Stats.Instrs/2 {
				t.Errorf("%d of %d by the agent", res.Stats.AgentInstrs, res.Stats.Instrs)
			}
		})
	}
}

// TestTSCAlone: a program that does nothing but RDTSC has intervals no longer than others, though hardly any of them stops.
func TestTSCAlone(t *testing.T) {
	r := run{args: []string{compile(t, "manytsc", "-pthread"), "1500000", "alone"}}
	r.opt.Agent, r.opt.Keep, r.opt.Interval = true, recorder.KeepAlways, time.Hour
	got, res := r.recorded(t)
	if got.out != "0 back\n" {
		t.Errorf("output %q", got.out)
	}
	const most = 400_000 // events, of an interval: the recorder ends those with more than 200,000
	if res.Stats.Events < 1_500_000 || res.Stats.Events/res.Stats.Intervals > most {
		t.Errorf("%d events in %d intervals", res.Stats.Events, res.Stats.Intervals)
	}
	t.Log(verify(t, res.Path))
}

// TestTSCTogether: threads that compute with RDTSC in a loop end their turns behind it, and make room there for the jump that another one
// is to go by.
func TestTSCTogether(t *testing.T) {
	prog := compile(t, "manytsc", "-pthread")
	for name, opt := range map[string]recorder.Options{
		"often": {}, "runs": {TSCAfter: -1}, "forced": {ForceEvery: 3 * time.Millisecond}, "many": {Interval: time.Millisecond}, "chaos": {Chaos: true, ChaosSeed: 5},
	} {
		t.Run(name, func(t *testing.T) {
			n := "100000"
			if opt.Chaos { // without the agent
				n = "10000"
			}
			r := run{args: []string{prog, n, "together"}, opt: opt}
			r.opt.Agent, r.opt.AgentAfter, r.opt.Keep = true, 1, recorder.KeepAlways
			got, res := r.recorded(t)
			if got.out != "0 back\n" {
				t.Errorf("output %q", got.out)
			}
			t.Logf("%d of %d by the agent; %s", res.Stats.AgentInstrs, res.Stats.Instrs, verify(t, res.Path))
			if !opt.Chaos && res.Stats.AgentInstrs < res.Stats.Instrs*3/4 {
				t.Errorf("%d of %d by the agent", res.Stats.AgentInstrs, res.Stats.Instrs)
			}
		})
	}
}
