package record

import (
	"slices"
	"testing"
	"time"
)

// made is a stretch of a made-up schedule: who ran, from when and how long.
type made struct {
	tid    int
	at     time.Duration
	length time.Duration
	forced bool
}

// schedule has threads 1 to n share the turn for a while. All are always ready but the one
// that runs; calls come every callEvery. Where nobody may run, tid is 0 for a millisecond.
func schedule(c scheduler, n int, callEvery, long time.Duration) []made {
	var list []made
	start := time.Unix(1000, 0)
	now := start
	for tid := 1; tid <= n; tid++ {
		c.started(tid, now)
	}
	ready := make([]int, n)
	for i := range ready {
		ready[i] = i + 1
	}
	for now.Sub(start) < long {
		i := c.next(ready, now)
		if i < 0 {
			list = append(list, made{at: now.Sub(start), length: time.Millisecond})
			now = now.Add(time.Millisecond)
			continue
		}
		tid := ready[i]
		l := c.turn(tid, now)
		took := (l.slice/callEvery + 1) * callEvery // to the first call behind the slice
		forced := took > l.force
		if forced {
			took = l.force
		}
		list = append(list, made{tid, now.Sub(start), took, forced})
		now = now.Add(took)
		c.over(tid)
		ready = append(slices.Delete(ready, i, i+1), tid)
	}
	return list
}

// TestChaosSeed: the same seed decides the same, and another one does not.
func TestChaosSeed(t *testing.T) {
	of := func(seed uint64) []made { return schedule(newChaos(seed), 4, 100*time.Microsecond, 3*time.Second) }
	if !slices.Equal(of(7), of(7)) {
		t.Error("one seed, two schedules")
	}
	if slices.Equal(of(7), of(8)) {
		t.Error("two seeds, one schedule")
	}
}

// longestWait returns how long the thread has waited at most without running.
func longestWait(list []made, tid int) (longest time.Duration) {
	var last time.Duration
	for _, m := range list {
		if m.tid == tid {
			longest = max(longest, m.at-last)
			last = m.at + m.length
		}
	}
	return longest
}

// TestChaosStarves: under some seeds each thread waits for 100 ms and more, and in the end
// each of them runs; with the fair scheduler nobody waits for so long.
func TestChaosStarves(t *testing.T) {
	const threads = 3
	starved := map[int]int{}
	for seed := range uint64(40) {
		list := schedule(newChaos(seed), threads, 100*time.Microsecond, 5*time.Second)
		for tid := 1; tid <= threads; tid++ {
			if !slices.ContainsFunc(list, func(m made) bool { return m.tid == tid }) {
				t.Errorf("seed %d: thread %d has never run", seed, tid)
			}
			if longestWait(list, tid) >= 100*time.Millisecond {
				starved[tid]++
			}
		}
	}
	for tid := 1; tid <= threads; tid++ {
		if starved[tid] < 10 {
			t.Errorf("thread %d waits for long under %d of 40 seeds", tid, starved[tid])
		}
		if w := longestWait(schedule(fair{}, threads, 100*time.Microsecond, 5*time.Second), tid); w > threads*fairLimits.slice+time.Millisecond {
			t.Errorf("thread %d waits for %v in a fair schedule", tid, w)
		}
	}
}

// TestChaosStandsStill: a single thread is never held back, and a program of which one thread
// is ready stands still for a fifth of its time, about: that one may be low.
func TestChaosStandsStill(t *testing.T) {
	for seed := range uint64(20) {
		for _, m := range schedule(newChaos(seed), 1, time.Millisecond, 5*time.Second) {
			if m.tid == 0 {
				t.Fatalf("seed %d: the only thread is held back", seed)
			}
		}
	}
	var still, all time.Duration
	for seed := range uint64(100) {
		c := newChaos(seed)
		now := time.Unix(1000, 0)
		c.started(1, now)
		c.started(2, now) // waits in a call, and is never ready
		for end := now.Add(10 * time.Second); now.Before(end); now = now.Add(time.Millisecond) {
			if all += time.Millisecond; c.next([]int{1}, now) < 0 {
				still += time.Millisecond
			}
		}
	}
	if share := float64(still) / float64(all); share < 0.01 || share > 0.1 {
		t.Errorf("a thread is held back for %.3f of the time", share) // a fifth, of a quarter of the threads
	}
}

// TestChaosSlices: turns end at the next call, within a millisecond, and later, with and
// without calls; and forced ends keep their distance.
func TestChaosSlices(t *testing.T) {
	var atCall, short, long, forced int
	last := -forceSpacing
	for _, m := range schedule(newChaos(1), 4, 10*time.Microsecond, 20*time.Second) {
		switch {
		case m.tid == 0:
		case m.length <= 10*time.Microsecond:
			atCall++
		case m.length <= time.Millisecond:
			short++
		default:
			long++
		}
	}
	if all := atCall + short + long; atCall < all/8 || short < all/8 || long < all/4 {
		t.Errorf("%d turns end at the next call, %d are short, %d long", atCall, short, long)
	}
	for _, m := range schedule(newChaos(1), 4, time.Hour, 20*time.Second) { // no calls
		if !m.forced && m.tid != 0 {
			t.Fatalf("a turn of %v ends where there is no call", m.length)
		}
		if m.forced && m.length < fairLimits.force {
			if forced++; m.length < forceFloor || m.at-last < forceSpacing {
				t.Fatalf("an end is forced after %v, %v after the one before", m.length, m.at-last)
			}
			last = m.at
		}
	}
	if forced < 100 {
		t.Errorf("%d slices end by force in 20 s", forced)
	}
}

// TestChaosManyThreads: a program that makes a thread after the other is not held back at
// each, and threads that have gone are forgotten.
func TestChaosManyThreads(t *testing.T) {
	c := newChaos(3)
	now := time.Unix(1000, 0)
	began, still := now, time.Duration(0)
	c.started(1, now)
	for tid := 2; tid < 5000; tid++ {
		c.started(tid, now)
		for c.next([]int{tid}, now) < 0 {
			now, still = now.Add(time.Millisecond), still+time.Millisecond
		}
		now = now.Add(time.Millisecond)
		c.gone(tid)
	}
	if len(c.draws) != 1 {
		t.Errorf("%d threads are known", len(c.draws))
	}
	if took := now.Sub(began); still > took/2 {
		t.Errorf("of %v the threads were held back for %v", took, still)
	}
}
