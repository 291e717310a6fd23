package replay

import (
	"fmt"
	"testing"

	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/mem/rangemap"
)

type noSource struct{}

func (noSource) PageAt(uint64, *mem.Page, *mem.Mask) (mem.Content, bool) { return mem.Zero, true }
func (noSource) ObjectPage(uint32, uint64, *mem.Page, *mem.Mask) mem.Content {
	return mem.Zero
}

// TestThin adds snapshots that keep more memory than there is: what stays is in
// budget, dense around each cursor, on both sides of it, sparse far away, and has
// the start of the interval.
func TestThin(t *testing.T) {
	for _, cursors := range [][]uint64{{1000}, {300, 1500}} {
		t.Run(fmt.Sprint(cursors), func(t *testing.T) { thinned(t, cursors) })
	}
}

// snapshotsApart is the distance of the snapshots in TestThin.
const snapshotsApart = 1 << 21

// thinned is TestThin with cursors at these snapshots.
func thinned(t *testing.T, cursors []uint64) {
	pool := mem.NewPool()
	space := mem.NewSpace(pool, noSource{})
	const pages = 16
	space.Map(mem.Region{Start: 0x10000, End: 0x10000 + pages*mem.PageSize, Prot: mem.ProtRead | mem.ProtWrite, Fresh: true})
	c := &index{s: &Session{Pool: pool}, intervals: []uint32{0}, budget: 32 << 20, known: map[uint32]*intervalIndex{}, cursors: map[*runner]checkpoint.Position{}}
	for _, at := range cursors {
		c.moved(&runner{}, checkpoint.Position{Instr: at * snapshotsApart})
	}
	gone := &runner{}
	c.moved(gone, checkpoint.Position{})
	c.left(gone)
	for i := range uint64(2000) {
		for p := range uint64(pages) {
			space.Write(0x10000+p*mem.PageSize, []byte{byte(i), byte(i >> 8)})
		}
		k := &Snapshot{Pos: checkpoint.Position{Instr: i * snapshotsApart}, mem: space.Snapshot()}
		k.refs.Store(1)
		c.add(k)
	}
	snapshots := c.of(0).snapshots
	if used := pool.InUse() + int64(len(snapshots))*snapshotBytes; used > c.budget || used < c.budget/2 {
		t.Errorf("%d bytes in use of %d", used, c.budget)
	}
	if len(snapshots) != c.snapshots || snapshots[0].Pos.Instr != 0 {
		t.Errorf("%d snapshots, counted %d, the first at %s", len(snapshots), c.snapshots, snapshots[0].Pos)
	}
	near, worst := uint64(0), uint64(0)
	for i := 1; i < len(snapshots); i++ {
		gap := snapshots[i].Pos.Instr - snapshots[i-1].Pos.Instr
		for _, at := range cursors {
			if d := int64(snapshots[i].Pos.Instr) - int64(at*snapshotsApart); max(d, -d) < 20*snapshotsApart {
				near = max(near, gap)
			}
		}
		worst = max(worst, gap)
	}
	if near > 2*snapshotsApart || worst < 4*near {
		t.Errorf("%d snapshots: %d instructions between those near a cursor, up to %d elsewhere", len(snapshots), near, worst)
	}
	c.close()
	space.Close()
	if n := pool.InUse(); n != 0 {
		t.Errorf("%d bytes of pages are still referenced", n)
	}
}

// TestSegmentTouches: ranges, aliases and remapped segments.
func TestSegmentTouches(t *testing.T) {
	pool := mem.NewPool()
	t.Cleanup(func() { _ = pool.Close() })
	shared := mem.Region{Start: 0x40000, End: 0x42000, Shared: true, Object: 5, Offset: 0x1000}
	alias := mem.Region{Start: 0x80000, End: 0x82000, Shared: true, Object: 5, Offset: 0x1000}
	s := segment{regions: rangemap.Of([]mem.Region{{Start: 0x10000, End: 0x20000}, shared, alias})}
	keys := []uint64{0x11000, pool.KeyIn(s.regions, 0x41000)}
	for _, c := range []struct {
		a, n uint64
		want bool
	}{
		{0x11000, 1, true},
		{0x11ffc, 8, true},
		{0x10ffc, 8, true},
		{0x10ffc, 4, false},
		{0x12000, 0x1000, false},
		{0x41008, 8, true},
		{0x81008, 8, true}, // by the other address
		{0x80008, 8, false},
		{0x10000, 1 << 40, true},
		{0x12000, 0x2000, false},
		{mem.MaxUser - 4, 8, true}, // not an address of the program's: not told apart
	} {
		if got := s.touches(pool, c.a, c.n, keys); got != c.want {
			t.Errorf("%d bytes at %#x: %t, want %t", c.n, c.a, got, c.want)
		}
	}
	s.remapped = true
	if !s.touches(pool, 0x12000, 1, keys) {
		t.Error("a remapped segment is held to touch nothing")
	}
}

// TestCode notes ranges that touch and overlap, and asks for every byte.
func TestCode(t *testing.T) {
	var s codeSet
	want := map[uint64]bool{}
	for _, r := range [][2]uint64{{0x1ff0, 0x2010}, {0x100, 0x108}, {0x108, 0x110}, {0x104, 0x10c}, {0x3000, 0x3001}} {
		s.add(r[0], r[1])
		for a := r[0]; a < r[1]; a++ {
			want[a] = true
		}
	}
	c := s.code()
	if len(c) != 3 {
		t.Errorf("%d ranges: %x", len(c), c)
	}
	for a := range uint64(0x4000) {
		if c.has(a) != want[a] {
			t.Fatalf("%#x: %t", a, c.has(a))
		}
	}
	if p := c.pages(); len(p) != 4 || p[0] != 0 || p[1] != 0x1000 || p[2] != 0x2000 || p[3] != 0x3000 {
		t.Errorf("pages %#x", p)
	}
	d := code{{0x4000, 0x4001}}
	if u := c.union(d); !u.has(0x4000) || !u.has(0x100) || len(u) != 4 {
		t.Errorf("union %x", u)
	}
}
