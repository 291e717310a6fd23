package record

import (
	"fmt"
	"slices"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay/mem/rangemap"
)

// The recorder keeps the program's memory map by itself, one change for each system call
// that makes one, because the log must say what each call changed and parsing
// /proc/PID/maps after each would cost more than the call. At every cut the kernel's list
// replaces the model, so an error here cannot live longer than an interval.
//
// Here is the model alone: it asks nobody, and builds and is tested everywhere.

// Advice and flags that a fork does not honour (man 2 madvise); kept per range.
type forkAdvice uint8

const (
	wipeOnFork forkAdvice = 1 << iota
	dontFork
)

// mapping is a range of the model: what the recording holds, and what the
// recorder needs besides.
type mapping struct {
	checkpoint.Mapping
	advice forkAdvice
}

// private reports whether stores stay in the process.
func (m *mapping) private() bool { return m.Flags&checkpoint.MapShared == 0 }

// Bounds implements rangemap.Value.
func (m mapping) Bounds() (start, end uint64) { return m.Start, m.End }

// Cut implements rangemap.Value.
func (m mapping) Cut(start, end uint64) mapping { return m.part(start, end) }

func (m *mapping) cutFront(addr uint64) {
	if m.Object != 0 {
		m.Offset += addr - m.Start
	}
	m.Start = addr
}

// mapModel is the map as the recorder believes it to be: disjoint ranges, by
// address.
type mapModel struct {
	tree   rangemap.Map[mapping]
	list   []mapping // of the tree listed; see all
	listed rangemap.Map[mapping]
	viewed *objectViews      // see space.views
	where  map[fileID]uint64 // an address where the file was mapped; see space.isMapped
}

// newMapModel returns the model of a sorted list of disjoint ranges.
func newMapModel(list []mapping) mapModel { return mapModel{tree: rangemap.Of(list)} }

// all returns the ranges in order. The list must not be changed; it is made anew
// after a change of the map.
func (m *mapModel) all() []mapping {
	if m.list == nil || m.listed != m.tree {
		m.list, m.listed = m.tree.All(), m.tree
	}
	return m.list
}

// at returns the range that holds addr, or nil. It must not be changed.
func (m *mapModel) at(addr uint64) *mapping { return m.tree.Find(addr) }

// overlap returns the ranges that meet [start,end), uncut.
func (m *mapModel) overlap(start, end uint64) []mapping {
	var out []mapping
	for r := range m.tree.From(start) {
		if r.Start >= end {
			break
		}
		out = append(out, *r)
	}
	return out
}

// anyIn reports whether f holds for a range that meets [start,end).
func (m *mapModel) anyIn(start, end uint64, f func(*mapping) bool) bool {
	for r := range m.tree.From(start) {
		if r.Start >= end {
			break
		}
		if f(r) {
			return true
		}
	}
	return false
}

// change cuts the ranges at start and end and changes those between.
func (m *mapModel) change(start, end uint64, f func(*mapping)) {
	in := m.tree.Inside(start, end)
	for i := range in {
		f(&in[i])
	}
	m.tree = m.tree.Replace(start, end, in...)
}

func (m *mapModel) advise(start, end uint64, set, unset forkAdvice) {
	m.change(start, end, func(r *mapping) { r.advice = r.advice&^unset | set })
}

// apply changes the model as the kernel changed the map.
func (m *mapModel) apply(op *checkpoint.MapOp) {
	switch op.Kind {
	case checkpoint.MapOpMap:
		x := mapping{Mapping: op.Map}
		x.Start, x.End = op.Start, op.End
		x = m.joined(x)
		m.tree = m.tree.Replace(x.Start, x.End, x)
	case checkpoint.MapOpUnmap:
		m.tree = m.tree.Replace(op.Start, op.End)
	case checkpoint.MapOpProtect:
		m.change(op.Start, op.End, func(r *mapping) { r.Prot = op.Prot })
	case checkpoint.MapOpMove:
		m.move(op)
	case checkpoint.MapOpDrop: // The content goes, the map stays.
	}
}

// joined returns a new range with its neighbours that are memory of the same kind: the kernel makes one of them, too. A heap that grows
// by a few pages each time would be many ranges, and what is read into it lie in two.
func (m *mapModel) joined(x mapping) mapping {
	if x.Object != 0 {
		return x
	}
	if p := m.at(x.Start - 1); p != nil && p.sameKind(x) {
		x.Start = p.Start
	}
	if n := m.at(x.End); n != nil && n.sameKind(x) {
		x.End = n.End
	}
	return x
}

// sameKind reports whether two ranges differ in where they are and in nothing else.
func (m *mapping) sameKind(o mapping) bool {
	o.Start, o.End = m.Start, m.End
	return *m == o
}

// move is mremap: the ranges keep what they map; the last one grows or is cut.
func (m *mapModel) move(op *checkpoint.MapOp) {
	moved := m.tree.Inside(op.Start, op.End)
	m.tree = m.tree.Replace(op.Start, op.End)
	if len(moved) == 0 {
		return
	}
	var there []mapping
	for k, x := range moved {
		x.End = x.End - op.Start + op.New
		x.Start = x.Start - op.Start + op.New
		if k == len(moved)-1 && op.NewEnd > x.End {
			x.End = op.NewEnd
		}
		if x.Start >= op.NewEnd {
			break
		}
		x.End = min(x.End, op.NewEnd)
		there = append(there, x)
	}
	m.tree = m.tree.Replace(op.New, op.NewEnd, there...)
}

// mappings returns a copy of the ranges as the recording holds them.
func (m *mapModel) mappings() []checkpoint.Mapping {
	out := make([]checkpoint.Mapping, 0, m.tree.Len())
	for r := range m.tree.From(0) {
		out = append(out, r.Mapping)
	}
	return out
}

// adopt replaces the model by the kernel's list and keeps the advice and flags
// that the list does not show.
func (m *mapModel) adopt(list []mapping) {
	old := *m
	for i := range list {
		x := &list[i]
		for _, o := range old.overlap(x.Start, x.End) {
			x.advice |= o.advice
			x.Flags |= o.Flags & checkpoint.MapGrowsDown
		}
	}
	*m = newMapModel(list)
}

// differs describes the first difference between the model and the kernel's
// list, or returns "". Neighbours with the same attributes count as one range
// (the kernel merges when it can), and a stack may have grown.
func (m *mapModel) differs(list []mapping) string {
	a, b := merged(m.all()), merged(list)
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if y.Flags&checkpoint.MapGrowsDown != 0 && y.Start < x.Start {
			x.Start = y.Start
		}
		if x.Start != y.Start || x.End != y.End || x.Prot != y.Prot || x.Object != y.Object {
			return fmt.Sprintf("model %x-%x prot %d object %d, kernel %x-%x prot %d object %d",
				x.Start, x.End, x.Prot, x.Object, y.Start, y.End, y.Prot, y.Object)
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("model has %d ranges, kernel %d", len(a), len(b))
	}
	return ""
}

func merged(list []mapping) []mapping {
	var out []mapping
	for _, x := range list {
		x.Flags &= checkpoint.MapShared | checkpoint.MapGrowsDown
		if n := len(out); n > 0 {
			p := &out[n-1]
			if p.End == x.Start && p.Prot == x.Prot && p.Flags&checkpoint.MapShared == x.Flags&checkpoint.MapShared &&
				p.Object == x.Object && (x.Object == 0 || p.Offset+(p.End-p.Start) == x.Offset) {
				p.End = x.End
				continue
			}
		}
		out = append(out, x)
	}
	return out
}

// changesTo returns the changes that make the model's map the given one, which
// is the kernel's. Stacks that have grown are no change: replay grows them.
func (m *mapModel) changesTo(list []mapping) []checkpoint.MapOp {
	kernel := newMapModel(list)
	var out []checkpoint.MapOp
	edges := m.edges(list)
	for i := 1; i < len(edges); i++ {
		lo, hi := edges[i-1], edges[i]
		was, now := m.at(lo), kernel.at(lo)
		switch {
		case lo >= abi.TaskSize: // The vsyscall page, which no call changes.
		case now == nil && was != nil:
			out = appendOp(out, checkpoint.MapOp{Kind: checkpoint.MapOpUnmap, Start: lo, End: hi})
		case now == nil:
		case was == nil && m.isGrowth(now):
		case was == nil || !was.showsSame(now, lo):
			op := checkpoint.MapOp{Kind: checkpoint.MapOpMap, Start: lo, End: hi, Map: now.part(lo, hi).Mapping}
			out = appendOp(out, op)
		case was.Prot != now.Prot:
			out = appendOp(out, checkpoint.MapOp{Kind: checkpoint.MapOpProtect, Start: lo, End: hi, Prot: now.Prot})
		}
	}
	return out
}

// edges returns where ranges of the model or of list start or end, in order.
func (m *mapModel) edges(list []mapping) []uint64 {
	var out []uint64
	for _, l := range [][]mapping{m.all(), list} {
		for i := range l {
			out = append(out, l[i].Start, l[i].End)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// isGrowth reports whether now is a stack of the model that has grown.
func (m *mapModel) isGrowth(now *mapping) bool {
	was := m.at(now.End - 1)
	return was != nil && was.Flags&checkpoint.MapGrowsDown != 0 && was.End == now.End && was.Start > now.Start
}

// showsSame reports whether both ranges map the same thing at addr.
func (m *mapping) showsSame(o *mapping, addr uint64) bool {
	if m.Object != o.Object || m.private() != o.private() {
		return false
	}
	return m.Object == 0 || addr-m.Start+m.Offset == addr-o.Start+o.Offset
}

// part returns the part [start,end) of the range.
func (m *mapping) part(start, end uint64) mapping {
	p := *m
	p.cutFront(start)
	p.End = end
	return p
}

// appendOp appends op, or widens the last change where op continues it.
func appendOp(ops []checkpoint.MapOp, op checkpoint.MapOp) []checkpoint.MapOp {
	if n := len(ops); n > 0 {
		p := &ops[n-1]
		same := p.End == op.Start && p.Kind == op.Kind && p.Prot == op.Prot
		if op.Kind == checkpoint.MapOpMap {
			a, b := mapping{Mapping: p.Map}, mapping{Mapping: op.Map}
			same = same && a.Prot == b.Prot && a.Flags == b.Flags && a.Name == b.Name && a.showsSame(&b, op.Start)
		}
		if same {
			p.End, p.Map.End = op.End, op.Map.End
			return ops
		}
	}
	return append(ops, op)
}

// fileID is a file, as stat names it.
type fileID struct{ dev, inode uint64 }

// objectViews is the mappings of each object.
type objectViews struct {
	of      rangemap.Map[mapping]
	list    map[uint32][]*mapping // by address
	objects map[fileID][]uint32   // the objects that are mapped
	shared  map[uint32]*rangemap.Overlaps[*mapping]
}

// sharing returns the shared mappings of an object, by their offset in it.
func (v *objectViews) sharing(object uint32) *rangemap.Overlaps[*mapping] {
	o, ok := v.shared[object]
	if !ok {
		var list []*mapping
		for _, m := range v.list[object] {
			if !m.private() {
				list = append(list, m)
			}
		}
		o = rangemap.NewOverlaps(list, func(m *mapping) (start, end uint64) { return m.Offset, m.Offset + (m.End - m.Start) })
		v.shared[object] = o
	}
	return o
}
