//go:build linux && amd64

package record

import "time"

// Waiting under the agent. A thread that makes a call that may wait gives up its turn, which takes two stops. Where
// no other thread is ready, of the process or of those that share its memory, there is nobody to give it to: then the agent makes the call as it is, and the thread keeps its turn while
// it waits. As soon as another thread is ready the call is ended by the timer's signal (forceTimer.endWait),
// and made once more with two stops. For a server, most of whose threads sleep, that is rare; threads that wait for each
// other in turn would pay a signal for each call, so a thread whose calls are ended does without for a time.

// patience says whether a thread may wait under the agent.
type patience struct {
	until time.Time     // not before
	pause time.Duration // how long it does without
}

// The pauses of a thread whose calls are ended.
const (
	leastPause = time.Millisecond
	mostPause  = 100 * time.Millisecond
)

// lose is called when a call of the thread's was ended at a time.
func (p *patience) lose(now time.Time) {
	if now.Sub(p.until) > mostPause {
		p.pause = 0
	}
	p.pause = min(max(2*p.pause, leastPause), mostPause)
	p.until = now.Add(p.pause)
}

// mayWait reports whether the thread, which has the turn, may wait under the agent.
func (t *thread) mayWait() bool {
	g := t.group()
	return g.chooseNext() < 0 && !g.othersReady() && time.Now().After(t.patience.until)
}

// hopeLasts is how long a turn lasts, at least, in which the thread may wait for a little under the agent though another process that
// shares its memory is ready.
const hopeLasts = time.Millisecond

// hopesUntil returns, by CLOCK_MONOTONIC, until when that is so, 0 for threads of a process that shares no memory. To pass the turn to another process
// and back takes three stops each and a look at what was stored, as long as a client needs to ask again.
func (t *thread) hopesUntil() int64 {
	c := t.group().sharers
	if c == nil {
		return 0
	}
	return monotonic() + int64(time.Until(c.since.Add(c.lasts(hopeLasts))))
}
