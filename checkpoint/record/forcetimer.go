//go:build linux && amd64

package record

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi/ptrace"
	"vplay/checkpoint/record/agent"
)

// forceTimer is the timer that stops a program which makes no system call. It
// sends a signal to the thread, and only while the program runs its own code: a
// signal that lands inside a system call would end it with EINTR. The mutex
// makes "is it in its own code" exact up to the program's own entry into the
// kernel; a signal that loses that race is found at the entry stop (it is still
// among those sent) and drained there before the call starts. One that loses it
// against another stop finds its thread when that has its turn again.
type forceTimer struct {
	ticker  *ticker // nil before it has one
	mu      sync.Mutex
	source  stopSource
	pid     int // of the process and of its thread that runs, or ran last
	tid     int
	running bool               // the program runs its own code
	sent    map[int]sentSignal // ours that are on their way, by the thread that each was sent to
	asked   bool               // force a stop at once, for a snapshot
	hold    time.Time          // force a stop at this time, for held signals; zero is never
	turnEnd time.Time          // likewise, for threads that wait for their turn
	turnAsk time.Time          // from then on the agent is to leave the next call to the recorder, for these
	stuck   bool               // the thread was in a call of the agent's when its turn was over
	every   time.Duration
	last    time.Time     // start of the interval
	cpuFrom time.Duration // CPU time of the program then
	cpuDue  time.Duration // CPU time of the program at which the interval is overdue
	cutDue  time.Duration // likewise, at which it is to end
	shared  agent.Shared  // of the agent that the thread runs under, if it does
	signo   unix.Signal
	stood   int           // looks since the program ran last; from standsFor on the ticker looks no more until it runs
	used    time.Duration // CPU time of the program when it had last used some
	usedAt  time.Time     // when that was seen
}

// sentSignal is what is on its way to a thread.
type sentSignal struct {
	signo  unix.Signal
	n      int  // how often it was sent
	missed bool // it was not in the thread's queue when the timer looked last
	wait   bool // it is to end a call in which the thread waits, and nothing else: no deadline has passed
}

// The reserved signal is the last real-time signal while the program does not
// block it. SIGSTOP, which cannot be blocked, serves otherwise: its stop is
// suppressed at the delivery stop. But a SIGCONT takes it out of the queue.
const reservedSignal = unix.Signal(64)

// everyShare is how many times less CPU time than forceTimer.every an interval has at least. Where the recorder needs longer
// than that for each stop, the program would get nowhere without.
const everyShare = 4

// chaosTick is how often the timer looks when slices are random.
const chaosTick = 500 * time.Microsecond

// ticker has the timers of all groups look at their deadlines.
type ticker struct {
	mu     sync.Mutex
	timers []*forceTimer
	quit   chan struct{}

	resting atomic.Bool   // no timer has a deadline soon
	wake    chan struct{} // ends that
}

// start begins to tick.
func (k *ticker) start(opt Options) {
	tick := max(min(opt.ForceAfter/4, 5*time.Millisecond), time.Millisecond)
	if opt.Chaos {
		tick = min(tick, chaosTick)
	}
	if opt.ForceEvery > 0 {
		tick = max(min(tick, opt.ForceEvery/4), 200*time.Microsecond)
	}
	k.quit, k.wake = make(chan struct{}), make(chan struct{}, 1)
	go k.run(tick)
}

// stop ends it. No timer sends a signal from then on.
func (k *ticker) stop() {
	close(k.quit)
	k.mu.Lock()
	k.timers = nil
	k.mu.Unlock()
}

func (k *ticker) run(tick time.Duration) {
	tk := time.NewTicker(tick)
	defer tk.Stop()
	for {
		select {
		case now := <-tk.C:
			k.check(now)
			// A look wakes several threads of Go's, and most look for nothing: a program that only
			// computes, alone, has no deadline but its CPU time.
			was := k.resting.Swap(true)
			if rest := k.rest(); rest > 2*tick {
				tk.Reset(rest)
				continue
			}
			if k.resting.Store(false); was {
				tk.Reset(tick)
			}
		case <-k.wake:
			k.resting.Store(false)
			tk.Reset(tick)
		case <-k.quit:
			return
		}
	}
}

// rest returns for how long no timer need look, if nothing happens.
func (k *ticker) rest() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	least := longestRest
	for _, p := range k.timers {
		least = min(least, p.rest())
	}
	return least
}

// longestRest bounds how long the ticker rests.
const longestRest = time.Second

// changed ends a rest.
func (k *ticker) changed() {
	if k != nil && k.resting.Load() {
		select {
		case k.wake <- struct{}{}:
		default: // it is about to end
		}
	}
}

// check has each timer look.
func (k *ticker) check(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.timers {
		p.check(now)
	}
}

// add begins to look at a timer.
func (k *ticker) add(p *forceTimer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p.ticker = k
	k.timers = append(k.timers, p)
	k.changed()
}

// remove ends that.
func (k *ticker) remove(p *forceTimer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timers = slices.DeleteFunc(k.timers, func(o *forceTimer) bool { return o == p })
}

// check sends the signal when one of the deadlines has passed.
func (p *forceTimer) check(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running || p.signo == 0 || p.sent[p.tid].n > 0 && !p.lost() {
		return
	}
	due := p.asked || !p.hold.IsZero() && now.After(p.hold) || !p.turnEnd.IsZero() && now.After(p.turnEnd)
	if !due && p.cpuDue > 0 {
		if cpu, err := cpuTime(p.pid); err == nil {
			due = cpu >= p.cpuDue || p.every > 0 && now.Sub(p.last) >= p.every && cpu-p.cpuFrom >= p.every/everyShare
			if p.shared != nil && cpu >= p.cutDue {
				p.shared.Attend(true)
			}
		}
	}
	if p.shared != nil && !p.turnAsk.IsZero() && now.After(p.turnAsk) {
		p.shared.Attend(true)
	}
	if due && p.shared != nil && p.shared.Phase() != agent.None {
		p.shared.Attend(true)
		waits := p.asked && p.shared.Phase() == agent.Waits // and may do so for ever
		if stuck := p.stuck; !stuck && !waits {
			p.stuck = !p.turnEnd.IsZero() && now.After(p.turnEnd)
			return // it is in a call, which a signal would end
		} // the call waits, perhaps for a thread that waits for the turn
	}
	if due {
		p.send(false)
	}
}

// send sends the signal to the thread that runs, to end a wait and nothing else if wait is set.
func (p *forceTimer) send(wait bool) {
	signo := p.signo
	if p.shared != nil { // it may change the mask
		p.shared.Attend(true)
		signo = signalFor(p.shared.Closed())
	}
	if p.source.send(p.pid, p.tid, signo) != nil {
		return
	}
	if p.sent == nil {
		p.sent = map[int]sentSignal{}
	}
	n := 1
	if s := p.sent[p.tid]; s.signo == signo { // else what was sent before is lost
		n += s.n
	}
	p.sent[p.tid] = sentSignal{signo: signo, n: n, wait: wait}
}

// endWait ends a call of the agent's in which the thread that has the turn waits, and has it wait in no other: another
// thread is ready. It reports whether there was such a call.
func (p *forceTimer) endWait() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running || p.signo == 0 || p.shared == nil {
		return false
	}
	p.shared.Patient(false)
	if p.shared.Phase() != agent.Waits || p.sent[p.tid].n > 0 {
		return false
	}
	p.send(true)
	return true
}

// How long no timer looks at a program that uses no CPU time. A look costs 0.3 ms, for Go's runtime looks about itself when it is woken.
const (
	standsFor = 8                      // looks at one that stands, as in a call, until it is waited for: most go on at once
	waitsFor  = 250 * time.Millisecond // and at most this for one that waits under the agent: it can go on unseen
	littleCPU = time.Millisecond       // is nothing
)

// rest returns for how long check need not be called, if no other method is: as long as the program can run before its
// interval is to end, or is overdue; longer where it does not run.
func (p *forceTimer) rest() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.signo == 0 || len(p.sent) > 0 || p.asked || p.every > 0 || p.cpuDue == 0 || !p.hold.IsZero() || !p.turnEnd.IsZero() || !p.turnAsk.IsZero() {
		return 0
	}
	if !p.running {
		if p.stood++; p.stood >= standsFor {
			return longestRest
		}
		return 0
	}
	cpu, err := cpuTime(p.pid)
	if err != nil {
		return 0
	}
	left := p.cpuDue - cpu
	if cpu < p.cutDue {
		left = p.cutDue - cpu
	}
	if now := time.Now(); cpu-p.used > littleCPU || cpu < p.used {
		p.used, p.usedAt = cpu, now
	} else if waits := now.Sub(p.usedAt); p.shared != nil && waits > littleCPU {
		left = max(left, min(waits, waitsFor))
	}
	return left
}

// lost reports whether a SIGCONT has taken away what was sent to the running thread. It was not
// in the queue twice: once, it may just be about to stop the thread.
func (p *forceTimer) lost() bool {
	s := p.sent[p.tid]
	if s.signo != unix.SIGSTOP {
		return false
	}
	before := s.missed
	s.missed = !p.source.stopQueued(p.tid)
	p.sent[p.tid] = s
	return before && s.missed
}

// enter is called before a thread is resumed, leave after it has stopped.
func (p *forceTimer) enter(t *thread, user bool) {
	p.mu.Lock()
	other := p.pid != t.proc.pid
	p.pid, p.tid, p.running, p.shared, p.stuck = t.proc.pid, t.tid, user, nil, false
	if t.agent {
		p.shared = t.block.shared
	}
	other = other || p.stood >= standsFor
	p.stood = 0
	p.mu.Unlock()
	if other {
		p.ticker.changed()
	}
}

func (p *forceTimer) leave() {
	p.mu.Lock()
	p.running = false
	p.mu.Unlock()
}

// arrived is seen for a signal whose sender is known: the program may send itself the same. In
// another PID namespace the recorder has no number, and is 0.
func (p *forceTimer) arrived(tid, sig int, si *ptrace.Siginfo) (ours, wait bool) {
	if from := int(si.PID()); si.Code() != siTkill || from != unix.Getpid() && from != 0 {
		return false, false
	}
	return p.seen(tid, unix.Signal(sig))
}

// comes reports whether a signal of the timer is on its way to the thread, which is at a stop.
func (p *forceTimer) comes(t *thread) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.sent[t.tid]
	if s.signo == unix.SIGSTOP && t.pending()&(1<<(unix.SIGSTOP-1)) == 0 {
		delete(p.sent, t.tid)
		return false
	}
	return ok
}

// gone forgets what was sent to a thread that has ended, or that is about to take it. It
// reports whether there was something.
func (p *forceTimer) gone(tid int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.sent[tid]
	delete(p.sent, tid)
	return ok
}

// seen takes note that a thread has stopped for a signal, and says whether it was one of ours, and one that was only
// to end a call in which the thread waits.
func (p *forceTimer) seen(tid int, sig unix.Signal) (ours, wait bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.sent[tid]
	if !ok || s.signo != sig {
		return false, false
	}
	if s.n--; s.n == 0 {
		delete(p.sent, tid)
	} else {
		p.sent[tid] = s
	}
	return true, s.wait
}

// turn chooses the signal for the thread that gets its turn.
func (p *forceTimer) turn(t *thread) {
	p.mu.Lock()
	off := p.signo == 0
	p.mu.Unlock()
	if !off {
		p.blocked(t.sig.mask)
	}
}

// holdUntil sets or, with the zero time, clears the deadline of held signals.
func (p *forceTimer) holdUntil(at time.Time) {
	p.mu.Lock()
	p.hold = at
	p.mu.Unlock()
	p.ticker.changed()
}

// ask has the thread that runs its own code stop as soon as the timer looks, or not any more.
func (p *forceTimer) ask(on bool) {
	p.mu.Lock()
	p.asked = on
	p.mu.Unlock()
	p.ticker.changed()
}

// turnEnds sets or, with the zero time, clears the time at which the turn ends because others
// wait for it, and that from which on it may end at a call.
func (p *forceTimer) turnEnds(ask, at time.Time) {
	p.mu.Lock()
	p.turnAsk, p.turnEnd = ask, at
	p.mu.Unlock()
	p.ticker.changed()
}

// interval tells the timer that an interval starts now, at the program's CPU time from; it is to end when that
// reaches cut, and overdue when it reaches due.
func (p *forceTimer) interval(from, cut, due time.Duration) {
	p.mu.Lock()
	p.last, p.cpuFrom, p.cutDue, p.cpuDue = time.Now(), from, cut, due
	p.mu.Unlock()
	p.ticker.changed()
}

// blocked chooses the signal by the program's mask.
func (p *forceTimer) blocked(mask uint64) {
	p.mu.Lock()
	p.signo = signalFor(blocksReserved(mask))
	p.mu.Unlock()
}

// blocksReserved reports whether a mask blocks the reserved signal.
func blocksReserved(mask uint64) bool { return mask&(1<<(reservedSignal-1)) != 0 }

// signalFor returns the signal for a thread that blocks the reserved one, or does not.
func signalFor(blocked bool) unix.Signal {
	if blocked {
		return unix.SIGSTOP
	}
	return reservedSignal
}

// off stops the timer from interrupting: nothing is recorded any more.
func (p *forceTimer) off() {
	p.mu.Lock()
	p.signo = 0
	p.mu.Unlock()
}

// cpuTime returns the CPU time of all threads of a process
// (clock_getcpuclockid(3): the clock of process P is ~P<<3 | 2).
func cpuTime(pid int) (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &ts); err != nil {
		return 0, err
	}
	return time.Duration(ts.Nano()), nil
}
