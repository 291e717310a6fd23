//go:build linux && amd64

package record

import (
	"testing"
	"time"

	recorder "vplay/checkpoint/record"
	"vplay/tests/need"
)

// TestMasks: a program changes its signal mask in all ways, most of them by the agent. What a change unblocks is delivered right there, what is blocked is
// not, and ends are forced in a program that blocks all signals.
func TestMasks(t *testing.T) {
	prog := compile(t, "masks")
	period := "300" // us between signals
	if need.DearPages() {
		period = "2500" // a handler takes the recorder nearly as long as that on such a machine: the program would not get on
	}
	for name, c := range map[string]struct {
		args []string
		opt  recorder.Options
	}{
		"plain":    {[]string{"300", "2000"}, recorder.Options{Agent: true}},
		"often":    {[]string{"1000", period}, recorder.Options{Agent: true}},
		"forced":   {[]string{"1000", "2000"}, recorder.Options{Agent: true, ForceEvery: 3 * time.Millisecond}},
		"at once":  {[]string{"300", "700"}, recorder.Options{Agent: true, ForceEvery: time.Millisecond}},
		"many":     {[]string{"300", "2000"}, recorder.Options{Agent: true, Interval: time.Millisecond}},
		"chaos":    {[]string{"100", "2000"}, recorder.Options{Agent: true, Chaos: true, ChaosSeed: 3}},
		"no agent": {[]string{"300", "2000"}, recorder.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := run{args: append([]string{prog}, c.args...), opt: c.opt}
			r.opt.AgentAfter, r.opt.Keep = -1, recorder.KeepAlways
			want := r.native(t)
			got, res := r.recorded(t)
			same(t, got, want)
			t.Logf("%d of %d calls by the agent, %d forced ends; %v", res.Stats.AgentCalls, res.Stats.Calls, res.Stats.ForcedEnds, verify(t, res.Path))
			// Those stop that unblock a signal which waits, and the timer's come as often as the machine is slow.
			if stopped := res.Stats.Stopped[14]; name == "plain" && stopped > res.Stats.Calls/10 {
				t.Errorf("%d changes of the mask have stopped", stopped)
			}
		})
	}
}

// TestMaskLogs: what the agent logs of all this is what is logged without it.
func TestMaskLogs(t *testing.T) {
	r := run{args: installed(t, []string{"setarch", "-R", compile(t, "masks"), "0"})}
	r.opt.Agent, r.opt.AgentAfter = true, -1
	_, with := r.recorded(t)
	if with.Stats.AgentCalls < 100 {
		t.Errorf("%d calls by the agent", with.Stats.AgentCalls)
	}
	r.noAgent, r.opt.Agent = true, false
	_, without := r.recorded(t)
	equalLogs(t, logOf(t, with.Path), logOf(t, without.Path))
}
