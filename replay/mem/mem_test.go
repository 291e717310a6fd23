package mem

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"
)

// patterned is a source whose page at address a is filled with byte a>>12,
// whose object pages with 0x80 + index, and which knows nothing of pages whose
// number ends in 0xf and half of those that end in 0xe.
type patterned struct{}

func (patterned) PageAt(a uint64, page *Page, mask *Mask) (Content, bool) {
	switch n := a >> 12; n & 0xf {
	case 0xf:
		return NotCaptured, true
	case 0xe:
		for i := range PageSize / 2 {
			page[i] = byte(n)
			mask[i/8] |= 1 << (i % 8)
		}
		return Partial, true
	case 0xd:
		return Zero, false // no record: the object's, or zero
	default:
		for i := range page {
			page[i] = byte(n)
		}
		return Captured, true
	}
}

func (patterned) ObjectPage(object uint32, off uint64, page *Page, _ *Mask) Content {
	if object == 9 {
		return NotCaptured
	}
	for i := range page {
		page[i] = 0x80 + byte(off>>12)
	}
	return Captured
}

func newTestSpace(t *testing.T) *Space {
	t.Helper()
	p := NewPool()
	s := NewSpace(p, patterned{})
	t.Cleanup(func() {
		s.Close()
		if n := p.InUse(); n != 0 {
			t.Errorf("%d bytes of pages are still referenced", n)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func read(t *testing.T, s *Space, a uint64, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	if f := s.Read(a, b); f.Kind != FaultNone {
		t.Fatalf("read of %d bytes at %#x: fault %+v", n, a, f)
	}
	return b
}

func TestContentOrder(t *testing.T) {
	s := newTestSpace(t)
	s.Map(Region{Start: 0x1000, End: 0x20000, Prot: ProtRead | ProtWrite, Object: 3})
	s.Map(Region{Start: 0x20000, End: 0x21000, Prot: ProtRead, Fresh: true})
	s.Map(Region{Start: 0x22000, End: 0x23000, Prot: ProtRead, Object: 9, Fresh: true})
	for _, c := range []struct {
		name string
		a    uint64
		want byte
	}{
		{"record by address", 0x2004, 2},
		{"object page", 0xd008, 0x80 + 0xc},
		{"fresh anonymous page", 0x20000, 0},
	} {
		if got := read(t, s, c.a, 1)[0]; got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
	var b [16]byte
	for _, c := range []struct {
		name string
		a    uint64
		want Fault
	}{
		{"absent page", 0xf010, Fault{FaultNotCaptured, Load, 0xf010}},
		{"behind the known half", 0xe7f8, Fault{FaultNotCaptured, Load, 0xe800}},
		{"object without content", 0x22000, Fault{FaultNotCaptured, Load, 0x22000}},
		{"hole", 0x21ff8, Fault{FaultNotMapped, Load, 0x21ff8}},
		{"not canonical", 1 << 50, Fault{FaultNonCanon, Load, 1 << 50}},
	} {
		if got := s.Read(c.a, b[:]); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if n, f := s.Peek(0xe7f8, b[:]); n != 8 || f.Kind != FaultNotCaptured {
		t.Errorf("peek across the known half: %d bytes, %+v", n, f)
	}
}

func TestStoreMakesBytesKnown(t *testing.T) {
	s := newTestSpace(t)
	s.Map(Region{Start: 0xf000, End: 0x10000, Prot: ProtRead | ProtWrite})
	if f := s.Write(0xf100, []byte{1, 2, 3}); f.Kind != FaultNone {
		t.Fatal(f)
	}
	if got := read(t, s, 0xf100, 3); got[2] != 3 {
		t.Errorf("read back % x", got)
	}
	if f := s.Read(0xf103, make([]byte, 1)); f.Kind != FaultNotCaptured {
		t.Errorf("the byte behind the store: %+v", f)
	}
	if _, fast := s.Translate(0xf000, Load); fast {
		t.Error("a page with unknown bytes was given out for direct access")
	}
	if f := s.Write(0xf000, make([]byte, PageSize)); f.Kind != FaultNone {
		t.Fatal(f)
	}
	if _, fast := s.Translate(0xf000, Load); !fast {
		t.Error("a page all of whose bytes are known was held back")
	}
}

func TestProtection(t *testing.T) {
	s := newTestSpace(t)
	s.Map(Region{Start: 0x1000, End: 0x3000, Prot: ProtRead})
	s.Map(Region{Start: 0x4000, End: 0x5000, Prot: ProtWrite})
	s.Map(Region{Start: 0x5000, End: 0x6000})
	if f := s.Write(0x1000, []byte{1}); f != (Fault{FaultProtection, Store, 0x1000}) {
		t.Errorf("store to a read-only page: %+v", f)
	}
	if f := s.Read(0x4000, make([]byte, 1)); f.Kind != FaultNone {
		t.Errorf("load from a page that can be written: %+v", f)
	}
	if f := s.Read(0x5000, make([]byte, 1)); f.Kind != FaultProtection {
		t.Errorf("load from PROT_NONE: %+v", f)
	}
	if _, f := s.Fetch(0x1000, make([]byte, 1)); f.Kind != FaultProtection {
		t.Errorf("fetch from a page that is not executable: %+v", f)
	}
	s.Protect(0x2000, 0x3000, ProtRead|ProtWrite)
	if f := s.Write(0x1fff, []byte{1, 2}); f != (Fault{FaultProtection, Store, 0x1fff}) {
		t.Errorf("store across the boundary: %+v", f)
	}
	if got := read(t, s, 0x2000, 1)[0]; got != 2 {
		t.Errorf("half of a store was done: %#x", got)
	}
}

func TestSharedAliases(t *testing.T) {
	s := newTestSpace(t)
	s.Map(Region{Start: 0x10000, End: 0x12000, Prot: ProtRead | ProtWrite, Shared: true, Object: 5})
	s.Map(Region{Start: 0x40000, End: 0x41000, Prot: ProtRead | ProtWrite, Shared: true, Object: 5, Offset: 0x1000})
	var hits []Hit
	s.OnHit = func(h Hit) { hits = append(hits, h) }
	s.SetWatches([]Watch{{Addr: 0x11010, Len: 4, Kind: WatchWrite}})
	if f := s.Write(0x40010, []byte{7}); f.Kind != FaultNone {
		t.Fatal(f)
	}
	if got := read(t, s, 0x11010, 1)[0]; got != 7 {
		t.Errorf("the alias shows %#x", got)
	}
	if len(hits) != 1 || hits[0].Addr != 0x11010 || !hits[0].Changed {
		t.Errorf("hits %+v", hits)
	}
	key, _ := s.Key(0x40010)
	if got := s.AddressesOf(key); len(got) != 2 {
		t.Errorf("addresses of the shared page: %#x", got)
	}
}

func TestMoveKeepsPages(t *testing.T) {
	s := newTestSpace(t)
	s.Map(Region{Start: 0x10000, End: 0x13000, Prot: ProtRead | ProtWrite})
	s.Write(0x11000, []byte{0x55})
	s.Move(0x10000, 0x13000, 0x80000, 0x85000)
	if got := read(t, s, 0x81000, 1)[0]; got != 0x55 {
		t.Errorf("a written page: %#x", got)
	}
	if got := read(t, s, 0x82000, 1)[0]; got != 0x12 {
		t.Errorf("a page not loaded before: %#x", got)
	}
	if got := read(t, s, 0x84000, 1)[0]; got != 0 {
		t.Errorf("the new tail: %#x", got)
	}
	if _, ok := s.Find(0x10000); ok {
		t.Error("the old range is still mapped")
	}
}

// TestMoveLeavesFilePages: a page of a mapped file that was read, and not written to, is not
// written where the mapping moves, and is the file's there. One that the recording has by its
// address moves as the program's own.
func TestMoveLeavesFilePages(t *testing.T) {
	s := newTestSpace(t)
	s.Map(Region{Start: 0x1000, End: 0x20000, Prot: ProtRead | ProtWrite, Object: 3})
	was := map[uint64]byte{0x2004: 0, 0xd008: 0}
	for a := range was {
		was[a] = read(t, s, a, 1)[0]
	}
	const by = 0x100000
	s.Move(0x1000, 0x20000, 0x1000+by, 0x20000+by)
	for a, written := range map[uint64]bool{0x2004: true, 0xd008: false} {
		if got := read(t, s, a+by, 1)[0]; got != was[a] || s.IsWritten((a+by)&^(PageSize-1)) != written {
			t.Errorf("%#x: reads %#x, want %#x, written %t", a, got, was[a], !written)
		}
	}
}

func TestDropAndGrow(t *testing.T) {
	s := newTestSpace(t)
	s.Map(Region{Start: 0x30000, End: 0x32000, Prot: ProtRead | ProtWrite, GrowsDown: true})
	s.Drop(0x31000, 0x32000)
	if got := read(t, s, 0x31000, 1)[0]; got != 0 {
		t.Errorf("a dropped page reads %#x", got)
	}
	if !s.Grow(0x2f008, 0x10000) || s.Grow(0x10008, 0x10000) {
		t.Error("the stack grows only within its limit")
	}
	if got := read(t, s, 0x2f008, 1)[0]; got != 0 {
		t.Errorf("the grown page reads %#x", got)
	}
}

// TestSnapshots checks a space and its snapshots against a plain map of bytes
// through random stores, snapshots, restores and releases.
func TestSnapshots(t *testing.T) {
	s := newTestSpace(t)
	const lo, pages = 0x100000, 64
	s.Map(Region{Start: lo, End: lo + pages*PageSize, Prot: ProtRead | ProtWrite, Fresh: true})
	rng := rand.New(rand.NewPCG(1, 2))
	model := map[uint64]byte{}
	type kept struct {
		snap  *Snapshot
		model map[uint64]byte
	}
	var saved []kept
	clone := func(m map[uint64]byte) map[uint64]byte {
		c := make(map[uint64]byte, len(m))
		for k, v := range m {
			c[k] = v
		}
		return c
	}
	for range 20_000 {
		switch a := lo + rng.Uint64N(pages*PageSize-8); rng.IntN(20) {
		case 0:
			saved = append(saved, kept{s.Snapshot(), clone(model)})
		case 1:
			if len(saved) > 0 {
				k := saved[rng.IntN(len(saved))]
				s.Restore(k.snap)
				model = clone(k.model)
			}
		case 2:
			if len(saved) > 8 {
				i := rng.IntN(len(saved))
				saved[i].snap.Release()
				saved = append(saved[:i], saved[i+1:]...)
			}
		case 3, 4, 5, 6, 7, 8, 9, 10:
			v := byte(rng.Uint32())
			if f := s.Write(a, []byte{v}); f.Kind != FaultNone {
				t.Fatal(f)
			}
			model[a] = v
		default:
			if got := read(t, s, a, 1)[0]; got != model[a] {
				t.Fatalf("at %#x: %#x, want %#x", a, got, model[a])
			}
		}
	}
	for _, k := range saved {
		o := k.snap.Open()
		for a, v := range k.model {
			if got := read(t, o, a, 1)[0]; got != v {
				t.Fatalf("snapshot at %#x: %#x, want %#x", a, got, v)
			}
		}
		o.Close()
		k.snap.Release()
	}
}

// TestHash compares the sum kept by stores with one made from scratch.
func TestHash(t *testing.T) {
	s := newTestSpace(t)
	f := func(a, v uint64) uint64 {
		if v == 0 {
			return 0
		}
		return (a ^ 0x9e3779b97f4a7c15) * (v | 1) * 0xd6e8feb86659fd93
	}
	const lo, pages = 0x100000, 8
	s.Map(Region{Start: lo, End: lo + pages*PageSize, Prot: ProtRead | ProtWrite, Fresh: true})
	total := func() (sum uint64) {
		for a := uint64(lo); a < lo+pages*PageSize; a += PageSize {
			var p Page
			s.Peek(a, p[:])
			for i := 0; i < PageSize; i += 8 {
				sum += f(a+uint64(i), word(&p, i))
			}
		}
		return sum
	}
	s.Hash(f, 0)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 5_000 {
		b := make([]byte, 1+rng.IntN(40))
		for j := range b {
			b[j] = byte(rng.Uint32())
		}
		if len(b) > 8 && rng.IntN(2) == 0 {
			b = b[:1+rng.IntN(8)]
		}
		s.Write(lo+rng.Uint64N(pages*PageSize-40), b)
		if i%500 == 0 {
			s.Snapshot().Release()
		}
	}
	if got, want := s.Sum(), total(); got != want {
		t.Errorf("sum %#x, from scratch %#x", got, want)
	}
}

// TestHashOpen mixes direct stores to open pages, stores by Write, snapshots,
// marks of code and looks at the sum, before and after the page budget is used up.
func TestHashOpen(t *testing.T) {
	for _, closed := range []int{0, maxClosed - 50} {
		s := newTestSpace(t)
		f := func(a, v uint64) uint64 { return (a ^ 0x9e3779b97f4a7c15) * v }
		const lo, pages = 0x100000, 8
		s.Map(Region{Start: lo, End: lo + pages*PageSize, Prot: ProtRead | ProtWrite | ProtExec, Fresh: true})
		direct := map[uint64]*Page{}
		s.OnFlush = func(start, end uint64) {
			maps.DeleteFunc(direct, func(a uint64, _ *Page) bool { return a >= start && a < end })
		}
		s.Hash(f, 0)
		s.closed = closed
		rng, opened := rand.New(rand.NewPCG(5, 6)), 0
		for i := range 20_000 {
			a := lo + rng.Uint64N(pages*PageSize)
			base := a &^ (PageSize - 1)
			switch k := rng.IntN(400); {
			case k < 200 && direct[base] == nil:
				if p, fast := s.Translate(base, Store); fast {
					direct[base] = p
					opened++
				}
			case k < 200:
				direct[base][a-base] = byte(i)
			case k < 396:
				s.Write(a, []byte{byte(i), byte(i >> 8)}[:min(2, lo+pages*PageSize-a)])
			case k == 396:
				s.Snapshot().Release()
			case k == 397:
				s.CodeID(base)
			default:
				var want uint64
				for q := uint64(lo); q < lo+pages*PageSize; q += PageSize {
					var p Page
					s.Peek(q, p[:])
					want += s.hashPage(q, &p)
				}
				if got := s.Sum(); got != want {
					t.Fatalf("step %d: sum %#x, from scratch %#x", i, got, want)
				}
			}
		}
		if opened == 0 || closed > 0 && s.closed < maxClosed {
			t.Errorf("%d pages opened, %d closed", opened, s.closed)
		}
	}
}

func TestCodeIdentity(t *testing.T) {
	s := newTestSpace(t)
	s.Map(Region{Start: 0x1000, End: 0x2000, Prot: ProtRead | ProtWrite | ProtExec, Fresh: true})
	id := s.CodeID(0x1000)
	if id == 0 || s.CodeID(0x1000) != id {
		t.Fatal("no stable identity")
	}
	if _, fast := s.Translate(0x1000, Store); fast {
		t.Error("a page with code was given out for direct stores")
	}
	snap := s.Snapshot()
	defer snap.Release()
	s.Write(0x1000, []byte{0x90})
	changed := s.CodeID(0x1000)
	if changed == id {
		t.Error("a store left the identity")
	}
	s.Restore(snap)
	if got := s.CodeID(0x1000); got != id {
		t.Errorf("going back gives identity %d, it was %d", got, id)
	}
}

// TestSameContent: pages with the same bytes have one identity wherever the address is the same, and the way to
// the bytes is no matter: code that was decoded from one is good for the other.
func TestSameContent(t *testing.T) {
	const a = 0x1000
	var spaces [2]*Space
	for i := range spaces {
		spaces[i] = newTestSpace(t)
		spaces[i].Map(Region{Start: a, End: a + 2*PageSize, Prot: ProtRead | ProtWrite | ProtExec, Fresh: true})
	}
	s := spaces[0]
	id := s.CodeID(a)
	if other := spaces[1].CodeID(a); id == 0 || other != id {
		t.Errorf("identities %#x and %#x of the same bytes in two spaces", id, other)
	}
	if s.CodeID(a+PageSize) == id {
		t.Error("two pages of one space have one identity")
	}
	s.Write(a+8, []byte{0x90})
	written := s.CodeID(a)
	if written == id {
		t.Error("other bytes have the same identity")
	}
	if _, fast := s.Translate(a, Store); fast {
		t.Error("a page with code was given out for direct stores behind a store")
	}
	s.Unlearn(a+8, 1)
	s.Write(a+9, []byte{0})
	if got := s.CodeID(a); got == written || got == id {
		t.Error("a page with an unknown byte has the identity of one that is known")
	}
	s.Write(a+8, []byte{0})
	if got := s.CodeID(a); got != id {
		t.Errorf("the same bytes again have identity %#x, it was %#x", got, id)
	}
	if _, fast := s.Translate(a, Store); fast {
		t.Error("a page with code was given out for direct stores where its identity is an old one")
	}
}

// TestObjectAskedFor: a page of an object that somebody has asked the identity of, before accesses are tracked or while they are, is
// noted when it is accessed, and not before.
func TestObjectAskedFor(t *testing.T) {
	s := newTestSpace(t)
	s.Map(Region{Start: 0x1000, End: 0x9000, Prot: ProtRead | ProtExec, Object: 7, Offset: 0x3000, Fresh: true})
	s.CodeID(0x2000)
	sets := NewSets()
	s.Track(sets)
	s.CodeID(0x3000)
	if len(sets.Objects) != 0 {
		t.Errorf("noted before anything is accessed: %v", sets.Objects)
	}
	s.Translate(0x2000, Exec)
	read(t, s, 0x3000, 1)
	want := map[ObjectPage]struct{}{{7, 4}: {}, {7, 5}: {}}
	if !maps.Equal(sets.Objects, want) {
		t.Errorf("noted are %v, want %v", sets.Objects, want)
	}
	s.Track(nil)
}

func TestWrittenAndSets(t *testing.T) {
	s := newTestSpace(t)
	s.Map(Region{Start: 0x1000, End: 0x9000, Prot: ProtRead | ProtWrite})
	start := s.Snapshot()
	defer start.Release()
	sets := NewSets()
	s.Track(sets)
	read(t, s, 0x2000, 1)
	s.Write(0x3000, []byte{1})
	s.Track(nil)
	var keys []uint64
	s.Written(start, func(k uint64, _, now *Page) {
		if now != nil {
			keys = append(keys, k)
		}
	})
	if len(keys) != 1 || keys[0] != 0x3000 {
		t.Errorf("written: %#x", keys)
	}
	if _, ok := sets.Read[0x2000]; !ok || len(sets.Written) != 1 {
		t.Errorf("sets: %+v", sets)
	}
}

// TestManyRegions protects every other page of a range, taking a snapshot after
// each change, and holds what a change allocates to a hundredth of the map.
func TestManyRegions(t *testing.T) {
	const n = 60_000
	s := newTestSpace(t)
	s.Map(Region{Start: 0x10000, End: 0x10000 + n*PageSize, Prot: ProtRead | ProtWrite, Fresh: true})
	s.Begin()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := uint64(0); i < n; i += 2 {
		a := 0x10000 + i*PageSize
		s.Protect(a, a+PageSize, ProtRead)
		s.Drop(a, a+PageSize)
		s.Snapshot().Release()
	}
	runtime.ReadMemStats(&after)
	each := (after.TotalAlloc - before.TotalAlloc) / n
	if rs := s.Regions(); len(rs) != n || each > uint64(unsafe.Sizeof(rs[0]))*n/100 {
		t.Errorf("%d regions, %d bytes allocated for each change", len(rs), each)
	}
	if d := s.Dropped(); len(d) != n/2 {
		t.Errorf("%d dropped ranges", len(d))
	}
	for _, i := range []uint64{0, 1, n - 2, n - 1} {
		r, ok := s.Find(0x10000 + i*PageSize)
		if want := uint8(ProtRead | ProtWrite*(i%2)); !ok || r.Prot != want || r.End-r.Start != PageSize {
			t.Errorf("page %d: %+v", i, r)
		}
	}
}
