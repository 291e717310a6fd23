package gdbstub

import (
	"context"
	"slices"
	"strings"
	"testing"

	"vplay/replay/debug/api"
)

// fakeMeeting is a target whose other thread comes to a breakpoint first, unless one thread
// is resumed alone.
type fakeMeeting struct {
	*fakeTarget
	enters bool // the thread enters a system call by its step
	ends   bool // the recording ends before that
	asked  []api.Resume
}

func (f *fakeMeeting) Resume(_ context.Context, r api.Resume) (api.Stop, error) {
	f.asked = append(f.asked, r)
	f.stop = api.Stop{Kind: api.StopBreakpoint, TID: fakePID + 1}
	switch {
	case r.Alone:
		f.stop = api.Stop{Kind: api.StopStep, TID: r.TID}
	case f.ends:
		f.stop = api.Stop{Kind: api.StopReplayEnd, TID: r.TID}
	case f.enters:
		f.pos-- // where RIP is another
	}
	return f.stop, nil
}

// TestStepAlone steps a thread alone where another one comes to a breakpoint first. gdb is
// told that the thread waits. What it does then says whether the breakpoint counts.
func TestStepAlone(t *testing.T) {
	const alone, waits, done, other = "vCont;s:1234", "T24", "T05 thread:1234", "T05 thread:1235 swbreak"
	for _, test := range []struct {
		name    string
		enters  bool
		packets []string // and what each is answered
		alone   []bool   // how the target is asked
	}{
		{"locked", false, []string{alone, waits, "vCont;S24:1234", done}, []bool{false, true}},
		{"over a breakpoint", false, []string{alone, waits, "vCont;C24:1234;c", other, "vCont;c", other}, []bool{false, false}},
		{"over a breakpoint, locked", false, []string{alone, waits, "vCont;C24:1234", done}, []bool{false, true}},
		{"a call", true, []string{alone, done, "vCont;c", other}, []bool{false}},
		{"a call, locked", true, []string{alone, done, alone, done}, []bool{false, true}},
		{"of two threads", false, []string{alone, waits, "vCont;s:1236", "T24 thread:1236", "vCont;c", other}, []bool{false}},
		{"of the one that stops", false, []string{alone, waits, "vCont;s:1235", "T05 thread:1235"}, []bool{false, true}},
		{"a monitor command between", false, []string{alone, waits, "qRcmd," + hexText("seek 0:1"), "OK", "vCont;c", other}, []bool{false, false}},
		{"backward between", false, []string{alone, waits, "bc", other, "vCont;c", other}, []bool{false, false, false}},
		{"the recording's end", false, []string{alone, waits, "vCont;c", "replaylog:end"}, []bool{false}},
		{"a step of all", false, []string{"vCont;s:1234;c", other}, []bool{false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &fakeMeeting{fakeTarget: newFake(), enters: test.enters, ends: test.name == "the recording's end"}
			for _, tid := range []int{fakePID + 1, fakePID + 2} {
				f.threads = append(f.threads, api.Thread{PID: fakePID, TID: tid})
			}
			c := dial(t, f)
			defer c.hangUp()
			c.ask("qSupported:swbreak+")
			c.converse(test.packets)
			f.wasAsked(t, test.alone)
		})
	}
}

// converse sends packets, and expects the words of what follows each in its answer.
func (c *client) converse(packets []string) {
	for i := 0; i < len(packets); i += 2 {
		got := c.ask(packets[i])
		for _, part := range strings.Fields(packets[i+1]) {
			if !strings.Contains(got, part) {
				c.t.Errorf("%s: %s, want %s", packets[i], got, packets[i+1])
			}
		}
	}
}

// wasAsked expects the target to have been asked to resume so often, alone or not.
func (f *fakeMeeting) wasAsked(t *testing.T, want []bool) {
	t.Helper()
	var how []bool
	for _, r := range f.asked {
		how = append(how, r.Alone)
	}
	if !slices.Equal(how, want) {
		t.Errorf("the target is asked to resume alone: %v, want %v", how, want)
	}
}

// TestStepAtExit steps a thread alone at the SYSCALL with which it ends. gdb is asked first, and
// resumes all, or the thread once more.
func TestStepAtExit(t *testing.T) {
	const alone, waits = "vCont;s:1234", "T24 thread:1234"
	for _, test := range []struct {
		name    string
		rax     uint64
		packets []string // and what each is answered
		alone   []bool   // how the target is asked
	}{
		{"over a breakpoint", sysExit, []string{alone, waits, "vCont;C24:1234;c", "T05 thread:1235 swbreak"}, []bool{false}},
		{"locked", sysExit, []string{alone, waits, "vCont;S24:1234", "T24", alone, "T05 thread:1234"}, []bool{false, true}},
		{"another call", sysExit + 1, []string{alone, waits, alone, "T05 thread:1234"}, []bool{false, true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &fakeMeeting{fakeTarget: newFake()}
			f.threads = append(f.threads, api.Thread{PID: fakePID, TID: fakePID + 1})
			f.regs[f.pos].GPR[0] = test.rax
			for i, c := range []byte{0x0f, 0x05} {
				f.mem[f.regs[f.pos].RIP+uint64(i)] = c
			}
			c := dial(t, f)
			defer c.hangUp()
			c.ask("qSupported:swbreak+;no-resumed+")
			c.converse(test.packets)
			f.wasAsked(t, test.alone)
		})
	}
}
