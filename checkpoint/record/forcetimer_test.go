//go:build linux && amd64

package record

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/record/agent"
)

// computing returns the timer of a program that only computes, and that is overdue in an hour of
// CPU time.
func computing(k *ticker) *forceTimer {
	p := &forceTimer{pid: os.Getpid(), tid: os.Getpid(), running: true, signo: reservedSignal}
	k.add(p)
	p.interval(0, time.Hour, time.Hour)
	return p
}

// looks has the ticker look n times.
func looks(p *forceTimer, n int) {
	for range n {
		p.rest()
	}
}

// TestRest: the timers rest only where no deadline but that of CPU time is set.
func TestRest(t *testing.T) {
	soon := time.Now()
	for name, c := range map[string]struct {
		set   func(p *forceTimer)
		rests bool
	}{
		"computes":          {func(*forceTimer) {}, true},
		"holds a signal":    {func(p *forceTimer) { p.holdUntil(soon) }, false},
		"is asked":          {func(p *forceTimer) { p.ask(true) }, false},
		"its turn ends":     {func(p *forceTimer) { p.turnEnds(time.Time{}, soon) }, false},
		"its turn may end":  {func(p *forceTimer) { p.turnEnds(soon, time.Time{}) }, false},
		"is overdue":        {func(p *forceTimer) { p.interval(0, 1, 1) }, false},
		"has no interval":   {func(p *forceTimer) { p.cpuDue = 0 }, false},
		"is forced often":   {func(p *forceTimer) { p.every = time.Hour }, false},
		"stands":            {func(p *forceTimer) { p.leave() }, false},
		"is off":            {func(p *forceTimer) { p.off() }, false},
		"gets a signal":     {func(p *forceTimer) { p.sent = map[int]sentSignal{1: {n: 1}} }, false},
		"stands for long":   {func(p *forceTimer) { p.leave(); looks(p, standsFor) }, true},
		"has an agent":      {func(p *forceTimer) { p.shared = agent.Shared{} }, true},
		"has gone":          {func(p *forceTimer) { p.pid = 1 << 22 }, false},
		"holds none":        {func(p *forceTimer) { p.holdUntil(soon); p.holdUntil(time.Time{}) }, true},
		"is asked no more":  {func(p *forceTimer) { p.ask(true); p.ask(false) }, true},
		"nobody else waits": {func(p *forceTimer) { p.turnEnds(soon, soon); p.turnEnds(time.Time{}, time.Time{}) }, true},
	} {
		k := &ticker{}
		first, second := computing(k), computing(k)
		if got := k.rest(); got != longestRest {
			t.Errorf("%s: rests for %v before", name, got)
		}
		c.set(second)
		if got := k.rest(); got > 0 != c.rests {
			t.Errorf("%s: rests for %v", name, got)
		}
		if c.set(first); k.rest() > 0 != c.rests {
			t.Errorf("%s: both: rests for %v", name, k.rest())
		}
	}
}

// TestRestWaiting: while a program waits under the agent the timer looks at it seldom, though its interval is overdue, but at least
// four times a second. One that computes is looked at.
func TestRestWaiting(t *testing.T) {
	p := computing(&ticker{})
	p.interval(0, 1, 1)
	p.shared = agent.Shared{}
	looks(p, 1)
	for waits, want := range map[time.Duration]time.Duration{0: 0, 20 * time.Millisecond: 20 * time.Millisecond, time.Hour: waitsFor} {
		cpu, err := cpuTime(p.pid)
		if err != nil {
			t.Fatal(err)
		}
		p.used, p.usedAt = cpu, time.Now().Add(-waits)
		if got := max(p.rest(), 0); got < want || got > want+10*time.Millisecond {
			t.Errorf("it has waited %v: rests for %v, want %v", waits, got, want)
		}
		p.used = 0
		if got := p.rest(); got > 0 {
			t.Errorf("it has computed, and rests for %v", got)
		}
	}
}

// TestRestEnds: what sets a deadline ends a rest, and then it is kept.
func TestRestEnds(t *testing.T) {
	f, th := newFake(t, Options{})
	th.proc.pid = os.Getpid() // whose CPU time can be asked for
	for name, set := range map[string]func(p *forceTimer){
		"hold":     func(p *forceTimer) { p.holdUntil(time.Now()) },
		"ask":      func(p *forceTimer) { p.ask(true) },
		"turn":     func(p *forceTimer) { p.turnEnds(time.Time{}, time.Now()) },
		"interval": func(p *forceTimer) { p.interval(0, 1, 1) },
		"process":  func(p *forceTimer) { p.pid++; p.enter(th, true) },
		"program":  func(p *forceTimer) { p.ticker.add(&forceTimer{}) },
		"runs":     func(p *forceTimer) { p.leave(); looks(p, standsFor); p.enter(th, true) },
	} {
		k := &ticker{wake: make(chan struct{}, 1)}
		p := computing(k)
		k.resting.Store(true)
		p.enter(th, true)
		p.leave()
		p.enter(th, true)
		if len(k.wake) != 0 {
			t.Errorf("%s: the rest ends with nothing new", name)
		}
		if set(p); len(k.wake) != 1 {
			t.Errorf("%s: the rest goes on", name)
		}
	}

	k := &ticker{}
	p := computing(k)
	p.source = f
	k.start(Options{ForceAfter: time.Millisecond})
	for !k.resting.Load() {
		time.Sleep(time.Millisecond)
	}
	p.ask(true)
	for came := false; !came; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		came = p.sent[p.tid].n == 1
		p.mu.Unlock()
	}
	k.stop()
	if len(f.sent) != 1 || f.sent[0] != unix.Signal(reservedSignal) {
		t.Errorf("sent %v", f.sent)
	}
}

// TestTimerSignal: under the agent the timer's signal is by what the thread blocks now. One of another
// kind that was sent before is lost.
func TestTimerSignal(t *testing.T) {
	f, _ := newFake(t, Options{})
	p := computing(&ticker{})
	p.source, p.shared = f, agent.Shared(make([]byte, agent.Size))
	for _, closed := range []bool{true, true, false, true} {
		p.shared.Together(together, closed)
		p.send(false)
		want := signalFor(closed)
		if got := f.sent[len(f.sent)-1]; got != want || p.sent[p.tid].signo != want {
			t.Errorf("%v was sent, %v is noted, want %v", got, p.sent[p.tid].signo, want)
		}
	}
	if n := p.sent[p.tid].n; n != 1 {
		t.Errorf("%d are on their way", n)
	}
}

// TestEvery: an interval that ends so often has run for a share of that time, however long the recorder needs for each stop.
func TestEvery(t *testing.T) {
	f, _ := newFake(t, Options{})
	p := computing(&ticker{})
	p.source, p.every = f, time.Second
	cpu, err := cpuTime(p.pid)
	if err != nil {
		t.Fatal(err)
	}
	soon, late := p.last.Add(p.every/2), p.last.Add(time.Hour)
	p.cpuFrom = cpu // it has not run
	p.check(late)
	p.cpuFrom = cpu - p.every // it has run, and the time is not over
	if p.check(soon); len(f.sent) > 0 {
		t.Errorf("sent %v too early", f.sent)
	}
	if p.check(late); len(f.sent) != 1 {
		t.Errorf("sent %v, want one signal", f.sent)
	}
}
