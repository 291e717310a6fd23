package record

import "time"

// How the threads of a group share their turns: who is next, and for how long. These are the
// decisions alone, on numbers and times that the caller gives, so that they can be tested
// without a program. Who is ready, and where a turn can end, is in turns.go.

// scheduler decides which thread has the turn, and for how long. Threads are known by their
// number, and now never goes back.
type scheduler interface {
	// started takes note of a new thread, gone of one that has ended.
	started(tid int, now time.Time)
	gone(tid int)
	// next returns the index in ready of the thread that has the next turn. ready is not
	// empty, and the one that has waited longest is first. -1 says that all are to wait
	// although the turn is free: then it is asked again.
	next(ready []int, now time.Time) int
	// turn returns the limits of the turn that the thread begins now.
	turn(tid int, now time.Time) turnLimits
	// over is told that the thread gives up its turn though it could run on.
	over(tid int)
}

// turnLimits say how long a thread keeps its turn while others are ready. The turn ends after
// slice at the first place that the log can name: a call's exit, a signal's frame. Where none
// comes, an end of the interval is forced after force.
type turnLimits struct{ slice, force time.Duration }

// fairLimits are those of a turn when nothing is tried out. A forced end costs a shadow, so
// slices alone never force one.
var fairLimits = turnLimits{slice: 3 * time.Millisecond, force: 50 * time.Millisecond}

// fair gives the turn to the thread that has waited longest.
type fair struct{}

func (fair) started(int, time.Time)         {}
func (fair) gone(int)                       {}
func (fair) next([]int, time.Time) int      { return 0 }
func (fair) turn(int, time.Time) turnLimits { return fairLimits }
func (fair) over(int)                       {}
