package replay

import (
	"sort"
	"sync"

	"vplay/checkpoint"
)

// The chart is what has been learnt of the past: marks to start from, and spans,
// which say what each stretch of execution touched. The cursor, the searches on
// other goroutines and the survey in the background all draw on it and add to
// it, so that whoever goes anywhere shortens the way for those who come later.
//
// Marks are of use for as long as memory lasts; spans are small and stay.

// chart is safe for concurrent use.
type chart struct {
	s         *Session
	intervals []uint32 // in order
	budget    int64    // bytes of guest memory that marks may keep in use
	spacing   uint64   // instructions between the marks of a run

	mu        sync.Mutex
	legs      map[uint32]*leg
	at        checkpoint.Position // the cursor
	marks     int                 // in all legs
	spanBytes int64
}

// leg is what is known of one interval.
type leg struct {
	marks []*Mark // by position
	spans []span  // without holes from the interval's start
	done  bool    // the spans reach the interval's end
	end   *checkpoint.Position
}

// leg returns what is known of interval id. The caller holds mu.
func (c *chart) leg(id uint32) *leg {
	l := c.legs[id]
	if l == nil {
		l = &leg{}
		c.legs[id] = l
	}
	return l
}

// close gives all marks back.
func (c *chart) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.legs {
		for _, k := range l.marks {
			k.Release()
		}
	}
	c.legs, c.marks = map[uint32]*leg{}, 0
}

// nearest returns the last mark at or before p, making the start of p's
// interval one if there is none. The caller releases it.
func (c *chart) nearest(p checkpoint.Position) (*Mark, error) {
	if k := c.before(p); k != nil {
		return k, nil
	}
	k, err := c.s.Start(p.Interval)
	if err != nil {
		return nil, err
	}
	c.add(k.hold())
	return k, nil
}

// before returns the last mark at or before p, nil when there is none in p's
// interval. The caller releases it.
func (c *chart) before(p checkpoint.Position) *Mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	ms := c.leg(p.Interval).marks
	i := sort.Search(len(ms), func(i int) bool { return ms[i].Pos.Compare(p) > 0 })
	if i == 0 {
		return nil
	}
	return ms[i-1].hold()
}

// has reports whether there is a mark at p.
func (c *chart) has(p checkpoint.Position) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ms := c.leg(p.Interval).marks
	i := sort.Search(len(ms), func(i int) bool { return ms[i].Pos.Compare(p) >= 0 })
	return i < len(ms) && ms[i].Pos == p
}

// add takes over a mark, and drops others when memory is over budget.
func (c *chart) add(k *Mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.leg(k.Pos.Interval)
	i := sort.Search(len(l.marks), func(i int) bool { return l.marks[i].Pos.Compare(k.Pos) >= 0 })
	if i < len(l.marks) && l.marks[i].Pos == k.Pos {
		k.Release()
		return
	}
	l.marks = append(l.marks, nil)
	copy(l.marks[i+1:], l.marks[i:])
	l.marks[i] = k
	c.marks++
	c.thin()
}

// moved says where the cursor is, near which marks are kept longest.
func (c *chart) moved(p checkpoint.Position) {
	c.mu.Lock()
	c.at = p
	c.mu.Unlock()
}

// foundEnd notes where an interval ends.
func (c *chart) foundEnd(p checkpoint.Position) {
	c.mu.Lock()
	c.leg(p.Interval).end = &p
	c.mu.Unlock()
}

// endOf returns the end of interval id, if it is known.
func (c *chart) endOf(id uint32) (p checkpoint.Position, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.leg(id)
	if l.end != nil {
		return *l.end, true
	}
	if n := len(l.marks); n > 0 && l.marks[n-1].atEnd() {
		return l.marks[n-1].Pos, true
	}
	return p, false
}

// nearby is the distance from the cursor, in instructions, within which marks
// are as valuable as at the cursor itself.
const nearby = 1 << 16

// markBytes is about what a mark takes besides guest memory.
const markBytes = 4096

// leastMarks is how many marks stay in any case, the starts of intervals apart:
// those around the cursor, without which no step back would be quick.
const leastMarks = 32

// thin drops marks while memory is over budget: first those whose absence
// makes the way to a place the least longer, measured by how far that place is
// from the cursor. So marks are dense around the cursor and their distance grows
// with its distance from it. The start of an interval always stays.
func (c *chart) thin() {
	for c.s.Pool.InUse()+int64(c.marks)*markBytes > c.budget {
		type cheap struct {
			k    *Mark
			cost float64
		}
		var all []cheap
		for _, l := range c.legs {
			for i := 1; i < len(l.marks); i++ {
				k := l.marks[i]
				to := k.Pos.Instr + 1
				if i+1 < len(l.marks) {
					to = l.marks[i+1].Pos.Instr
				}
				gap := float64(to - l.marks[i-1].Pos.Instr)
				all = append(all, cheap{k, gap / (nearby + c.distance(k.Pos))})
			}
		}
		n := min((len(all)+7)/8, len(all)-leastMarks)
		if n <= 0 {
			return
		}
		sort.Slice(all, func(i, j int) bool { return all[i].cost < all[j].cost })
		drop := map[*Mark]bool{}
		for _, x := range all[:n] {
			drop[x.k] = true
		}
		c.marks -= n
		for _, l := range c.legs {
			l.drop(drop)
		}
	}
}

// drop releases the marks that are in the set.
func (l *leg) drop(set map[*Mark]bool) {
	kept := l.marks[:0]
	for _, k := range l.marks {
		if set[k] {
			k.Release()
		} else {
			kept = append(kept, k)
		}
	}
	clear(l.marks[len(kept):])
	l.marks = kept
}

// intervalLength is how many instructions an interval is taken to have where
// only the order of magnitude matters.
const intervalLength = 1 << 27

// distance estimates how many instructions lie between p and the cursor.
func (c *chart) distance(p checkpoint.Position) float64 {
	d := float64(p.Instr) - float64(c.at.Instr) + intervalLength*(float64(p.Interval)-float64(c.at.Interval))
	return max(d, -d)
}
