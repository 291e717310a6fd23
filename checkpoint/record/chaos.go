package record

import (
	"math/rand/v2"
	"slices"
	"time"
)

// The scheduler that looks for races. A race that a fair schedule hides needs one of three
// things, and chaos tries each of them now and then:
//
//   - A thread that does not run for long, while others do what usually comes later. So some
//     threads are low, and for a while none of these runs, even when nobody else can. How
//     long it takes is not known: every length from 1 to 512 ms, in powers of two, is as
//     likely as another.
//   - A switch at one place of few. So some turns end at the next call, others are short.
//   - A switch in the midst of computing. So some turns end by force after their slice: not
//     more than one in forceSpacing, because each costs a shadow.
//
// Which of the threads that are ready has the turn is a matter of priorities. They are drawn
// again every 200 ms or earlier, and a thread draws its own again when its slice is over or
// it yields. Who is low is drawn again after each time in which the low ones did not run. A
// new thread that is low is held back at once: that it has run when its maker goes on is what
// programs take for granted most.
//
// Two published ideas are joined here: times in which low threads do not run, of a length
// that is guessed, at most a fifth of the time (R. O'Callahan on rr's chaos mode,
// robert.ocallahan.org/2016_02_01_archive.html), and random priorities that change at random
// points (Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler with
// Probabilistic Guarantees of Finding Bugs, ASPLOS 2010).
//
// All decisions come from one generator. The same seed gives the same numbers; what they
// decide depends on when the program's threads come to their stops, which no seed repeats.

// The distributions that chaos draws from.
const (
	oneInLow    = 4                      // threads are low
	shortest    = time.Millisecond       // that low threads do not run, and longest: powers of two
	lengths     = 10                     // of them: 512 ms
	priorities  = 200 * time.Millisecond // are drawn again by then
	leadFactor  = 8                      // before that time there is up to so many times it: a fifth of the time, on average
	manyTurns   = 8                      // of so many turns
	endAtCall   = 2                      // end at the next call
	areShort    = 2                      // last up to a millisecond
	sliceLong   = 6                      // and the others one of so many powers of two, from a millisecond: 32 ms
	oneInForced = 2                      // turns end by force after their slice
	forceFloor  = 200 * time.Microsecond // at the earliest, so that the thread comes to run
	// forceSpacing is the time from one turn that ends by force to the next.
	forceSpacing = 20 * time.Millisecond
)

// chaos is the scheduler that looks for races.
type chaos struct {
	rng    *rand.Rand
	draws  []draw // of the threads, in the order in which they came
	length time.Duration
	from   time.Time // low threads do not run from here
	until  time.Time // to here, where who is low is drawn again
	again  time.Time // the priorities are drawn again here
	forced time.Time // the last turn that may end by force began
	began  time.Time
	atOnce time.Duration // for which threads were held back at their start, in all
}

// draw is what a thread has drawn.
type draw struct {
	tid      int
	priority uint64
	low      bool
}

// newChaos returns a scheduler that draws from a generator with this seed.
func newChaos(seed uint64) *chaos {
	return &chaos{rng: rand.New(rand.NewPCG(seed, 0))}
}

// oneIn is true once in n times.
func (c *chaos) oneIn(n int) bool { return c.rng.IntN(n) == 0 }

// drawAgain draws again what is due.
func (c *chaos) drawAgain(now time.Time) {
	if !now.Before(c.again) {
		c.again = now.Add(time.Duration(c.rng.Int64N(int64(priorities))))
		for i := range c.draws {
			c.draws[i].priority = c.rng.Uint64()
		}
	}
	if now.Before(c.until) {
		return
	}
	if c.began.IsZero() {
		c.began = now
	}
	c.length = shortest << c.rng.IntN(lengths)
	c.from = now.Add(time.Duration(c.rng.Int64N(int64(leadFactor * c.length))))
	c.until = c.from.Add(c.length)
	for i := range c.draws {
		c.draws[i].low = c.oneIn(oneInLow)
	}
}

// of returns what a thread has drawn. One that is not known draws now.
func (c *chaos) of(tid int) *draw {
	i := slices.IndexFunc(c.draws, func(d draw) bool { return d.tid == tid })
	if i < 0 {
		i = len(c.draws)
		c.draws = append(c.draws, draw{tid, c.rng.Uint64(), c.oneIn(oneInLow)})
	}
	return &c.draws[i]
}

// started implements scheduler.
func (c *chaos) started(tid int, now time.Time) {
	c.drawAgain(now)
	d := c.of(tid)
	// A program that makes threads all the time is not to stand still for as long.
	allowed := c.length + now.Sub(c.began)/5
	if d.low && now.Before(c.from) && c.atOnce <= allowed {
		c.from, c.until = now, now.Add(c.length)
		c.atOnce += c.length
	}
}

// gone implements scheduler.
func (c *chaos) gone(tid int) {
	c.draws = slices.DeleteFunc(c.draws, func(d draw) bool { return d.tid == tid })
}

// holdsBack reports whether the low threads do not run now. Where all are low, none is.
func (c *chaos) holdsBack(now time.Time) bool {
	return !now.Before(c.from) && slices.ContainsFunc(c.draws, func(d draw) bool { return !d.low })
}

// next implements scheduler.
func (c *chaos) next(ready []int, now time.Time) int {
	c.drawAgain(now)
	for _, tid := range ready {
		c.of(tid)
	}
	holds, best := c.holdsBack(now), -1
	var priority uint64
	for i, tid := range ready {
		if d := c.of(tid); !(holds && d.low) && (best < 0 || d.priority > priority) {
			best, priority = i, d.priority
		}
	}
	return best
}

// turn implements scheduler.
func (c *chaos) turn(tid int, now time.Time) turnLimits {
	c.drawAgain(now)
	c.of(tid)
	l := fairLimits
	switch n := c.rng.IntN(manyTurns); {
	case n < endAtCall:
		l.slice = 0
	case n < endAtCall+areShort:
		l.slice = time.Duration(c.rng.Int64N(int64(time.Millisecond)))
	default:
		l.slice = time.Millisecond << c.rng.IntN(sliceLong)
	}
	if l.slice > 0 && now.Sub(c.forced) >= forceSpacing && c.oneIn(oneInForced) {
		l.force, c.forced = max(l.slice, forceFloor), now
	}
	return l
}

// over implements scheduler.
func (c *chaos) over(tid int) { c.of(tid).priority = c.rng.Uint64() }
