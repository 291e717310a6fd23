package gdbstub

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"vplay/replay/debug/api"
)

// fakeOther is the second process of a family.
const fakeOther = 0x2345

// fakeFamily is a target of two processes. Each is a fakeTarget of its own.
type fakeFamily struct {
	*fakeTarget
	all []*fakeTarget
}

func newFamily() *fakeFamily {
	f := &fakeFamily{}
	for _, pid := range []int{fakePID, fakeOther} {
		one := newFake()
		one.threads = []api.Thread{{PID: pid, TID: pid, Name: "prog"}, {PID: pid, TID: pid + 1}}
		one.stop.TID = pid
		f.all = append(f.all, one)
	}
	f.fakeTarget = f.all[0]
	return f
}

func (f *fakeTarget) pid() int { return f.threads[0].PID }

func (f *fakeFamily) of(pid int) *fakeTarget {
	i := slices.IndexFunc(f.all, func(t *fakeTarget) bool { return t.pid() == pid })
	if i < 0 {
		return nil
	}
	return f.all[i]
}

func (f *fakeFamily) PIDs() []int { return []int{fakePID, fakeOther} }

func (f *fakeFamily) Select(pid int) error {
	t := f.of(pid)
	if t == nil {
		return fmt.Errorf("there is no process %d", pid)
	}
	f.fakeTarget = t
	return nil
}

// TestProcesses attaches to both processes of a target, and lets packets say which one
// they are about.
func TestProcesses(t *testing.T) {
	f := newFamily()
	c := dial(t, f)
	defer c.hangUp()
	c.ask("qSupported:multiprocess+;swbreak+")
	c.want("!", "OK")
	c.want("?", "W00")
	c.want("qfThreadInfo", "l")
	if got := c.ask("vAttach;1234"); !strings.Contains(got, "thread:p1234.1234;") {
		t.Errorf("attach: %s", got)
	}
	c.want("qfThreadInfo", "mp1234.1234,p1234.1235")
	c.want("Tp2345.2345", "E01")
	c.want("Hgp2345.2345", "E01")
	c.want("vCont;s:p2345.2345", "E01")
	if got := c.ask("vAttach;2345"); !strings.Contains(got, "thread:p2345.2345;") {
		t.Errorf("attach to the second: %s", got)
	}
	c.want("qC", "QCp2345.2345")
	c.want("qfThreadInfo", "mp1234.1234,p1234.1235,p2345.2345,p2345.2346")
	c.want("qXfer:exec-file:read:2345:0,100", "l"+fakeExec)
	c.want("qXfer:exec-file:read:77:0,100", "E01")
	c.want("Hgp1234.1235", "OK")
	c.want("Z0,401005,1", "OK")
	c.want("Hgp2345.2346", "OK")
	c.want("Z0,401024,1", "OK")
	if a, b := f.all[0].breaks, f.all[1].breaks; len(a) != 1 || len(b) != 1 || a[0].Addr != 0x401005 || b[0].Addr != 0x401024 {
		t.Errorf("the breakpoints are %+v and %+v", a, b)
	}
	for i, r := range []struct {
		packets []string
		pid     int
		tid     int
		all     bool
	}{
		{[]string{"vCont;s:p1234.1235;c:p1234.-1"}, fakePID, 0x1235, false},
		{[]string{"vCont;s:p2345.2346;c:p2345.-1"}, fakeOther, 0x2346, false},
		{[]string{"vCont;s:p2345.2346;c"}, fakeOther, 0x2346, true},
		{[]string{"Hcp1234.0", "bs"}, fakePID, 0, false},                                // the last stop was of the other
		{[]string{"Hcp1234.0", "bs"}, fakePID, fakePID, false},                          // and this one of it
		{[]string{"Hcp2345.0", "bc"}, fakeOther, 0, false},                              // named by Hc
		{[]string{"Hc0", "Tp1234.1235", "bs"}, fakePID, 0x1235, true},                   // thread 1.2
		{[]string{"Hc0", "Tp2345.2346", "Hgp1234.1234", "bs"}, fakeOther, 0x2346, true}, // gdb sets breakpoints in both
	} {
		for _, packet := range r.packets {
			c.ask(packet)
		}
		got := f.of(r.pid).resumes
		if len(got) == 0 || got[len(got)-1].TID != r.tid || got[len(got)-1].All != r.all {
			t.Errorf("%d: %v: process %#x is resumed by %+v", i, r.packets, r.pid, got)
		}
		for _, one := range f.all {
			one.resumes = nil
		}
	}
	for packet, alone := range map[string]bool{"vCont;c:p1234.1235": true, "vCont;c:p1234.-1": false, "vCont;s:p1234.1235": false, "vCont;c": false, "vCont;c:p1234.1235;c": false} {
		c.want("qRcmd,"+hexText("seek 0:1"), "OK") // from the end, where a stop may be withheld
		c.want("Tp1234.1235", "OK")
		c.ask(packet)
		if got := f.all[0].resumes; len(got) != 1 || got[0].Alone != alone {
			t.Errorf("%s is %+v", packet, got)
		}
		f.all[0].resumes = nil
	}
	c.want("D;2345", "OK")
	c.want("qfThreadInfo", "mp1234.1234,p1234.1235")
	c.want("D;2345", "OK")
	if a, b := f.all[0].breaks, f.all[1].breaks; len(a) != 1 || len(b) != 0 {
		t.Errorf("with one process left the breakpoints are %+v and %+v", a, b)
	}
	c.want("vKill;1234", "OK")
	c.want("?", "W00")
	if n := f.all[0].detached.Load() + f.all[1].detached.Load(); n != 1 {
		t.Errorf("let go %d times", n)
	}
}

// TestOneProcess is a client of the plain protocol, or one that does not know of processes:
// it sees the first one only, and its user is told once that there is another.
func TestOneProcess(t *testing.T) {
	for _, supported := range []string{"qSupported:multiprocess+", "qSupported"} {
		f := newFamily()
		c := dial(t, f)
		c.ask(supported)
		if got := c.ask("qfThreadInfo"); strings.Contains(got, "2345") {
			t.Errorf("%s: the threads are %s", supported, got)
		}
		c.want("Hg2345", "E01")
		c.want("p10", "1010400000000000")
		if got := c.ask("s"); !strings.HasPrefix(got, "O") || !strings.HasPrefix(c.receive(), "T") {
			t.Errorf("%s: the first step says %s, want a text about the other process", supported, got)
		}
		if got := c.ask("s"); !strings.HasPrefix(got, "T") {
			t.Errorf("%s: the second step says %s", supported, got)
		}
		_ = c.hangUp()
		if f.fakeTarget != f.all[0] {
			t.Errorf("%s: the other process was selected", supported)
		}
	}
}
