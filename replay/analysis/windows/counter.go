package windows

import "math"

// What is traced with a bound T: the costs of all windows that end now, the shortest
// path to now, and the placements that are chosen on the way. Time here is in slots of so
// many instructions; cuts are between slots.

// Counts is what has to be traced with one bound on replay. Sizes are in bytes.
type Counts struct {
	// Bound is T as it was asked for, Length the greatest length of a window that is
	// made of whole slots of Grain; all in instructions.
	Bound  uint64 `json:"bound"`
	Length uint64 `json:"length"`
	Grain  uint64 `json:"grain"`
	// Fixed are windows of Length, one behind the other (M = 0); Scanned looks back over
	// Scan instructions, Unbounded over the whole window; Optimal is the cheapest placement
	// there is, and of those the one with the fewest windows.
	Scan      uint64    `json:"scan"`
	Fixed     Placement `json:"fixed"`
	Scanned   Placement `json:"scanned"`
	Unbounded Placement `json:"unbounded"`
	Optimal   Placement `json:"optimal"`
	// UniqueWrites are the bytes written in each fixed window, each once: an incremental
	// checkpoint of bytes. PagesRead are the pages that a fixed window has spanning reads of, PagesWritten those
	// that the program wrote to in it.
	UniqueWrites uint64 `json:"unique_writes"`
	PagesRead    uint64 `json:"pages_read"`
	PagesWritten uint64 `json:"pages_written"`
}

// Placement is what a choice of windows costs.
type Placement struct {
	Bytes   uint64 `json:"bytes"`   // of unique spanning reads
	Windows uint64 `json:"windows"` // each needs the registers of all threads besides
}

// less reports whether p is cheaper than q.
func (p Placement) less(q Placement) bool {
	return p.Bytes < q.Bytes || p.Bytes == q.Bytes && p.Windows < q.Windows
}

// plus is p with a window of so many bytes.
func (p Placement) plus(bytes uint64) Placement { return Placement{p.Bytes + bytes, p.Windows + 1} }

// counter counts for one bound.
type counter struct {
	Counts
	k     uint32 // slots in a window of the greatest length
	ratio uint32 // ticks in a slot

	slot  uint32   // now
	start uint32   // of the fixed window that now is in
	reads []uint64 // bytes read in this slot, by how many slots ago they were accessed last: 1 to k, k also for longer
	any   bool     // reads has something

	// Rings over the last slots. costs[b][a] is c(a, b) for a cut a in front of slot a and b behind
	// slot b, both modulo k; best[a] is the shortest path to the cut a, modulo k+1.
	costs []uint64
	best  []Placement
	scans [2]scan // Scanned and Unbounded
}

// scan is a placement that is chosen on the way.
type scan struct {
	back  uint32 // slots that it looks back
	start uint32 // of the window under way
	sum   Placement
}

// newCounter returns the counter of a bound; tick is the length of a tick, and points the
// number of cuts that a window should have.
// Preconditions: bound >= tick >= 1, points >= 1.
func newCounter(bound, tick, points uint64, s Scan) *counter {
	grain := max(bound/points, 1)
	grain -= grain % tick
	grain = max(grain, tick)
	k := bound / grain
	c := &counter{k: uint32(k), ratio: uint32(min(grain/tick, math.MaxUint32))}
	c.Bound, c.Length, c.Grain = bound, k*grain, grain
	c.Scan = min(s.of(bound), c.Length)
	c.reads = make([]uint64, k+1)
	c.costs = make([]uint64, k*k)
	c.best = make([]Placement, k+1)
	c.scans = [2]scan{{back: uint32(c.Scan / grain)}, {back: c.k}}
	return c
}

// advance makes slot the present one.
func (c *counter) advance(slot uint32) {
	for c.slot < slot {
		c.close()
		c.cut()
		c.slot++
	}
}

// read counts n bytes of a page that are read in the present slot and were accessed last at
// tick last, 0 for none. It reports whether that is a spanning read of the fixed window.
func (c *counter) read(last uint32, n uint64) bool {
	ago := c.k
	if last != 0 {
		slot := (last - 1) / c.ratio
		if slot == c.slot {
			return false
		}
		ago = min(c.slot-slot, c.k)
		c.reads[ago] += n
		c.any = true
		return slot < c.start
	}
	c.reads[ago] += n
	c.any = true
	return true
}

// written reports whether a byte that is written now, and was last at tick last, was not yet in
// the fixed window.
func (c *counter) written(last uint32) bool {
	return last == 0 || (last-1)/c.ratio < c.start
}

// close ends the present slot: the costs of all windows that end behind it are known.
func (c *counter) close() {
	k, s := int(c.k), int(c.slot)
	row := c.costs[s%k*k : s%k*k+k]
	if s > 0 {
		copy(row, c.costs[(s-1)%k*k:(s-1)%k*k+k])
	}
	row[s%k] = 0
	oldest := max(0, s-k+1)
	if c.any {
		sum := c.reads[k]
		// The window [a, s] is s-a slots older than now: what was accessed longer ago than that is traced.
		for ago := k - 1; ago >= 0; ago-- {
			if a := s - ago; a >= oldest {
				row[a%k] += sum
			}
			sum += c.reads[ago]
		}
		clear(c.reads)
		c.any = false
	}
	c.shortest(row, oldest)
}

// cut ends windows that are full behind the present slot; the program goes on.
func (c *counter) cut() {
	if end := c.slot + 1; end-c.start == c.k {
		c.Fixed = c.Fixed.plus(c.cost(c.start, end))
		c.start = end
	}
	for i := range c.scans {
		c.look(&c.scans[i])
	}
}

// shortest finds the shortest path to the cut behind the present slot, of whose costs row is.
func (c *counter) shortest(row []uint64, oldest int) {
	k, s := int(c.k), int(c.slot)
	least := Placement{Bytes: math.MaxUint64}
	for a := oldest; a <= s; a++ {
		if p := c.best[a%(k+1)].plus(row[a%k]); p.less(least) {
			least = p
		}
	}
	c.best[(s+1)%(k+1)] = least
}

// cost returns c(a, b) for a window of at most k slots that ended at most k slots ago.
func (c *counter) cost(a, b uint32) uint64 { return c.costs[(b-1)%c.k*c.k+a%c.k] }

// look cuts where a window is full: at the cut, of the last back slots, where the window that ends there has
// the fewest bytes for each instruction, the latest of several.
func (c *counter) look(s *scan) {
	end := c.slot + 1
	if end-s.start < c.k {
		return
	}
	at := end
	least := float64(c.cost(s.start, end)) / float64(c.k)
	for b := end - 1; b > s.start && end-b <= s.back; b-- {
		if rate := float64(c.cost(s.start, b)) / float64(b-s.start); rate < least {
			at, least = b, rate
		}
	}
	s.sum = s.sum.plus(c.cost(s.start, at))
	s.start = at
}

// finish ends the last slot, if it has an instruction, and returns what was counted.
func (c *counter) finish(hasSlot bool) Counts {
	end := c.slot
	if hasSlot {
		c.close()
		end++
	}
	rest := func(start uint32, p Placement) Placement {
		if start < end {
			p = p.plus(c.cost(start, end))
		}
		return p
	}
	c.Fixed = rest(c.start, c.Fixed)
	c.Scanned = rest(c.scans[0].start, c.scans[0].sum)
	c.Unbounded = rest(c.scans[1].start, c.scans[1].sum)
	c.Optimal = c.best[end%(c.k+1)]
	return c.Counts
}

// window returns the number of the fixed window that now is in, from 1.
func (c *counter) window() uint32 { return c.start/c.k + 1 }
