package replay

import (
	"math"
	"sort"
	"sync"

	"vplay/checkpoint"
)

// The index is what has been learnt of the past: snapshots to start from, and segments,
// which say what each stretch of execution touched. The cursor, the searches on
// other goroutines and the indexer in the background all draw on it and add to
// it, so that whoever goes anywhere shortens the way for those who come later.
//
// Snapshots are of use for as long as memory lasts; segments are small and stay.

// index is safe for concurrent use.
type index struct {
	s         *Session
	infos     []checkpoint.IntervalInfo
	intervals []uint32            // their IDs, in order
	begin     checkpoint.Position // the first settled position
	budget    int64               // bytes of guest memory that snapshots may keep in use
	spacing   uint64              // instructions between the snapshots of a run

	mu           sync.Mutex
	known        map[uint32]*intervalIndex
	cursors      map[*runner]checkpoint.Position // where they are
	snapshots    int                             // in all known
	dropped      float64                         // the highest cost of those that thin dropped last
	segmentBytes int64
	idle         []*worker // between searches; see park

	closing sync.RWMutex // read-locked by each close under way; see later
}

// intervalIndex is what is known of one interval.
type intervalIndex struct {
	snapshots []*Snapshot // by position
	segments  []segment   // without holes from the interval's start
	done      bool        // the segments reach the interval's end
	end       *checkpoint.Position
}

// closeLater closes a machine that nobody uses any more, while others go on: to give its code and its memory back may
// take a millisecond, for which no answer waits.
func (x *index) closeLater(m *Machine) { x.later(m.Close) }

// later calls f while others go on.
func (x *index) later(f func()) {
	x.closing.RLock()
	go func() {
		defer x.closing.RUnlock()
		f()
	}()
}

// awaitClosed waits until what closeLater and park were given before is closed or waits, so that new machines find its code and memory.
func (x *index) awaitClosed() {
	x.closing.Lock()
	defer x.closing.Unlock()
}

// next returns the interval after id, ok false when it is the last.
func (x *index) next(id uint32) (uint32, bool) {
	i := sort.Search(len(x.intervals), func(i int) bool { return x.intervals[i] > id })
	if i == len(x.intervals) {
		return 0, false
	}
	return x.intervals[i], true
}

// previous returns the interval before id, ok false when it is the first.
func (x *index) previous(id uint32) (uint32, bool) {
	i := sort.Search(len(x.intervals), func(i int) bool { return x.intervals[i] >= id })
	if i == 0 {
		return 0, false
	}
	return x.intervals[i-1], true
}

// last returns the last interval.
func (x *index) last() uint32 { return x.intervals[len(x.intervals)-1] }

// isLast reports whether id is the last interval.
func (x *index) isLast(id uint32) bool { return x.last() == id }

// of returns what is known of interval id. The caller holds mu.
func (x *index) of(id uint32) *intervalIndex {
	l := x.known[id]
	if l == nil {
		l = &intervalIndex{}
		x.known[id] = l
	}
	return l
}

// close gives all snapshots back.
func (x *index) close() {
	x.awaitClosed()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range x.known {
		for _, k := range l.snapshots {
			k.Release()
		}
	}
	x.known, x.snapshots = map[uint32]*intervalIndex{}, 0
	for _, w := range x.idle {
		w.m.Close()
	}
	x.idle = nil
}

// nearest returns the last snapshot at or before p, making the start of p's
// interval one if there is none. The caller releases it.
func (x *index) nearest(p checkpoint.Position) (*Snapshot, error) {
	if k := x.before(p); k != nil {
		return k, nil
	}
	k, err := x.s.Start(p.Interval)
	if err != nil {
		return nil, err
	}
	x.add(k.hold())
	return k, nil
}

// before returns the last snapshot at or before p, nil when there is none in p's
// interval. The caller releases it.
func (x *index) before(p checkpoint.Position) *Snapshot {
	x.mu.Lock()
	defer x.mu.Unlock()
	ms := x.of(p.Interval).snapshots
	i := sort.Search(len(ms), func(i int) bool { return ms[i].Pos.Compare(p) > 0 })
	if i == 0 {
		return nil
	}
	return ms[i-1].hold()
}

// has reports whether there is a snapshot at p.
func (x *index) has(p checkpoint.Position) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	ms, i := x.from(p)
	return i < len(ms) && ms[i].Pos == p
}

// from returns the snapshots of p's interval, and the number of the first at or behind p. The caller holds mu.
func (x *index) from(p checkpoint.Position) ([]*Snapshot, int) {
	ms := x.of(p.Interval).snapshots
	return ms, sort.Search(len(ms), func(i int) bool { return ms[i].Pos.Compare(p) >= 0 })
}

// isOfUse reports whether a run that comes by p had better leave a snapshot there. While memory is scarce it is to be of more use than
// those that were dropped last: the machine copies each page that it stores to from there on.
func (x *index) isOfUse(p checkpoint.Position) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	ms, i := x.from(p)
	return i == 0 || p.Instr-ms[i-1].Pos.Instr >= sparse*x.spacing || x.inUse() <= x.budget/4*3 || x.cost(ms[i-1].Pos, p, ms[i:]) > x.dropped
}

// sparse is how many times spacing lie between two snapshots that are taken on the way in any case: to what is found there one goes
// again at once.
const sparse = 8

// add takes over a snapshot, and drops others when memory is over budget.
func (x *index) add(k *Snapshot) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.of(k.Pos.Interval)
	ms, i := x.from(k.Pos)
	if i < len(ms) && ms[i].Pos == k.Pos {
		k.Release()
		return
	}
	l.snapshots = append(l.snapshots, nil)
	copy(l.snapshots[i+1:], l.snapshots[i:])
	l.snapshots[i] = k
	x.snapshots++
	x.thin()
}

// moved says where a cursor is, near which snapshots are kept longest.
func (x *index) moved(r *runner, p checkpoint.Position) {
	x.mu.Lock()
	x.cursors[r] = p
	x.mu.Unlock()
}

// left says that there is a cursor less.
func (x *index) left(r *runner) {
	x.mu.Lock()
	delete(x.cursors, r)
	x.mu.Unlock()
}

// foundEnd notes where an interval ends.
func (x *index) foundEnd(p checkpoint.Position) {
	x.mu.Lock()
	x.of(p.Interval).end = &p
	x.mu.Unlock()
}

// endOf returns the end of interval id, if it is known.
func (x *index) endOf(id uint32) (p checkpoint.Position, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.of(id)
	if l.end != nil {
		return *l.end, true
	}
	if n := len(l.snapshots); n > 0 && l.snapshots[n-1].atEnd() {
		return l.snapshots[n-1].Pos, true
	}
	return p, false
}

// nearby is the distance from a cursor, in instructions, within which snapshots
// are as valuable as at the cursor itself.
const nearby = 1 << 16

// snapshotBytes is about what a snapshot takes besides guest memory.
const snapshotBytes = 4096

// leastSnapshots is how many snapshots stay in any case, the starts of intervals apart:
// those around the cursors, without which no step back would be quick.
const leastSnapshots = 32

// inUse is what snapshots and the machines have in memory, in bytes.
func (x *index) inUse() int64 { return x.s.Pool.InUse() + int64(x.snapshots)*snapshotBytes }

// cost is how much longer the way to a place gets without the snapshot at p, where the one before it is at from and behind come those of
// next, measured by how far that place is from the cursors.
func (x *index) cost(from, p checkpoint.Position, next []*Snapshot) float64 {
	to := p.Instr + 1
	if len(next) > 0 {
		to = next[0].Pos.Instr
	}
	return float64(to-from.Instr) / (nearby + x.distance(p))
}

// thin drops snapshots while memory is over budget, those of the least cost first. So snapshots are dense around the cursors and
// their distance grows with the distance from them. The start of an interval always stays.
func (x *index) thin() {
	for x.inUse() > x.budget {
		type cheap struct {
			k    *Snapshot
			cost float64
		}
		var all []cheap
		for _, l := range x.known {
			for i := 1; i < len(l.snapshots); i++ {
				k := l.snapshots[i]
				all = append(all, cheap{k, x.cost(l.snapshots[i-1].Pos, k.Pos, l.snapshots[i+1:])})
			}
		}
		n := min((len(all)+7)/8, len(all)-leastSnapshots)
		if n <= 0 {
			return
		}
		sort.Slice(all, func(i, j int) bool { return all[i].cost < all[j].cost })
		x.dropped = all[n-1].cost
		drop := map[*Snapshot]bool{}
		for _, x := range all[:n] {
			drop[x.k] = true
		}
		x.snapshots -= n
		for _, l := range x.known {
			l.drop(drop)
		}
	}
}

// drop releases the snapshots that are in the set.
func (l *intervalIndex) drop(set map[*Snapshot]bool) {
	kept := l.snapshots[:0]
	for _, k := range l.snapshots {
		if set[k] {
			k.Release()
		} else {
			kept = append(kept, k)
		}
	}
	clear(l.snapshots[len(kept):])
	l.snapshots = kept
}

// intervalLength is how many instructions an interval is taken to have where
// only the order of magnitude matters.
const intervalLength = 1 << 27

// distance estimates how many instructions lie between p and the nearest cursor.
func (x *index) distance(p checkpoint.Position) float64 {
	nearest := math.Inf(1)
	for _, at := range x.cursors {
		d := float64(p.Instr) - float64(at.Instr) + intervalLength*(float64(p.Interval)-float64(at.Interval))
		nearest = min(nearest, max(d, -d))
	}
	if len(x.cursors) == 0 {
		return 0
	}
	return nearest
}
