package record

import (
	"math/rand/v2"
	"slices"
	"testing"

	"vplay/checkpoint"
)

// TestRanges compares the set with a plain map.
func TestRanges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const space = 64
	random := func() (ranges, [space]bool) {
		var set ranges
		var plain [space]bool
		for p := uint64(0); p < space; p++ {
			if r.IntN(3) == 0 {
				set.add(p, p+1)
				plain[p] = true
			}
		}
		return set, plain
	}
	for range 2000 {
		a, pa := random()
		b, pb := random()
		or, and, not := a.union(b), a.intersect(b), a.minus(b)
		for p := range uint64(space) {
			if or.has(p) != (pa[p] || pb[p]) || and.has(p) != (pa[p] && pb[p]) || not.has(p) != (pa[p] && !pb[p]) {
				t.Fatalf("page %d of %v and %v: %v, %v, %v", p, a, b, or, and, not)
			}
		}
		for _, s := range []ranges{or, and, not} {
			for i := 1; i < len(s); i++ {
				if s[i].lo <= s[i-1].hi {
					t.Fatalf("not canonical: %v", s)
				}
			}
		}
	}
}

// TestMapModel checks the model's changes against a page by page map.
func TestMapModel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const pages = 40
	type page struct {
		mapped bool
		prot   uint8
		object uint32
		off    uint64
	}
	for range 300 {
		var m mapModel
		var plain [pages + 1]page
		for range 30 {
			lo := uint64(1 + r.IntN(pages-2))
			hi := lo + 1 + uint64(r.IntN(int(pages-lo)))
			op := checkpoint.MapOp{Start: lo << 12, End: hi << 12, Prot: uint8(r.IntN(8))}
			switch op.Kind = checkpoint.MapOpKind(1 + r.IntN(3)); op.Kind {
			case checkpoint.MapOpMove, checkpoint.MapOpDrop: // Not among those drawn.
			case checkpoint.MapOpMap:
				op.Map = checkpoint.Mapping{Prot: op.Prot, Object: uint32(r.IntN(3)), Offset: 1 << 20}
				if op.Map.Object == 0 {
					op.Map.Offset = 0
				}
				for p := lo; p < hi; p++ {
					plain[p] = page{true, op.Prot, op.Map.Object, op.Map.Offset}
					if op.Map.Object != 0 {
						plain[p].off += (p - lo) << 12
					}
				}
			case checkpoint.MapOpUnmap:
				for p := lo; p < hi; p++ {
					plain[p] = page{}
				}
			case checkpoint.MapOpProtect:
				for p := lo; p < hi; p++ {
					plain[p].prot = op.Prot
				}
			}
			m.apply(&op)
			for p := range uint64(pages) {
				x := m.at(p << 12)
				if (x != nil) != plain[p].mapped {
					t.Fatalf("page %d mapped: %v", p, x != nil)
				}
				if x == nil {
					continue
				}
				off := x.Offset
				if x.Object != 0 {
					off += p<<12 - x.Start
				}
				if x.Prot != plain[p].prot || x.Object != plain[p].object || off != plain[p].off {
					t.Fatalf("page %d: %+v, want %+v", p, x, plain[p])
				}
			}
		}
	}
}

// TestChangesTo: the changes that are found between the model and a list of the kernel's
// make the model that list.
func TestChangesTo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() mapModel {
		var m mapModel
		for range 12 {
			lo := uint64(1 + r.IntN(40))
			hi := lo + 1 + uint64(r.IntN(8))
			op := checkpoint.MapOp{Kind: checkpoint.MapOpMap, Start: lo << 12, End: hi << 12}
			op.Map = checkpoint.Mapping{Prot: uint8(r.IntN(4)), Object: uint32(r.IntN(3))}
			if op.Map.Object != 0 {
				op.Map.Offset = uint64(r.IntN(3)) << 12
				op.Map.Flags = []uint8{0, checkpoint.MapShared}[r.IntN(2)]
			}
			m.apply(&op)
		}
		return m
	}
	for round := range 500 {
		m, kernel := random(), random()
		changes := m.changesTo(kernel.all())
		if round > 0 && len(changes) == 0 && m.differs(kernel.all()) != "" {
			t.Fatal("different maps, and no change")
		}
		for i := range changes {
			m.apply(&changes[i])
		}
		if d := m.differs(kernel.all()); d != "" {
			t.Fatalf("round %d: %s", round, d)
		}
		if again := m.changesTo(kernel.all()); len(again) != 0 {
			t.Fatalf("round %d: still %v", round, again)
		}
	}
}

// TestAdopt: the kernel's list replaces the model, and what the list does not show stays.
func TestAdopt(t *testing.T) {
	m := newMapModel([]mapping{{Mapping: checkpoint.Mapping{Start: 0x1000, End: 0x5000, Prot: 3, Flags: checkpoint.MapGrowsDown}}})
	m.advise(0x2000, 0x3000, wipeOnFork, 0)
	m.adopt([]mapping{
		{Mapping: checkpoint.Mapping{Start: 0x1000, End: 0x2000, Prot: 3}},
		{Mapping: checkpoint.Mapping{Start: 0x2000, End: 0x3000, Prot: 3}},
		{Mapping: checkpoint.Mapping{Start: 0x8000, End: 0x9000, Prot: 1}},
	})
	for _, c := range []struct {
		addr   uint64
		mapped bool
		advice forkAdvice
		grows  bool
	}{
		{0x1800, true, 0, true}, {0x2800, true, wipeOnFork, true}, {0x3800, false, 0, false}, {0x8000, true, 0, false},
	} {
		r := m.at(c.addr)
		if (r != nil) != c.mapped {
			t.Errorf("%#x mapped: %v", c.addr, r != nil)
			continue
		}
		if r != nil && (r.advice != c.advice || r.Flags&checkpoint.MapGrowsDown != 0 != c.grows) {
			t.Errorf("%#x: %+v", c.addr, *r)
		}
	}
}

// TestModelJoins: memory that grows piece by piece is one range, as the kernel has it; what differs in anything is not.
func TestModelJoins(t *testing.T) {
	const page = checkpoint.PageSize
	heap := checkpoint.Mapping{Prot: checkpoint.ProtRead | checkpoint.ProtWrite, Flags: checkpoint.MapHeap, Name: "[heap]"}
	code := heap
	code.Prot |= checkpoint.ProtExec
	file := checkpoint.Mapping{Prot: checkpoint.ProtRead, Object: 1}
	var m mapModel
	put := func(from, to uint64, as checkpoint.Mapping) {
		as.Start, as.End = from*page, to*page
		m.apply(&checkpoint.MapOp{Kind: checkpoint.MapOpMap, Start: as.Start, End: as.End, Map: as})
	}
	put(1, 2, heap)
	put(2, 3, heap)
	put(5, 6, heap)
	put(3, 5, heap)   // between both
	put(2, 4, heap)   // in the midst
	put(6, 7, code)   // behind
	put(7, 8, file)   // a file
	put(8, 9, file)   // and what is not its next page
	put(11, 12, heap) // not behind
	m.advise(11*page, 12*page, wipeOnFork, 0)
	put(12, 13, heap)
	var got []uint64
	for _, r := range m.all() {
		got = append(got, r.Start/page, r.End/page)
	}
	want := []uint64{1, 6, 6, 7, 7, 8, 8, 9, 11, 12, 12, 13}
	if !slices.Equal(got, want) {
		t.Errorf("ranges %d, want %d", got, want)
	}
}
