package mem

import (
	"math/rand/v2"
	"testing"
)

// TestNeeds accesses a private, a partial, an object's and a shared page at random, takes snapshots and goes
// back, and compares what is noted with a model: a byte is needed when it is read before it was ever written. Each read
// gives what it gives without notes.
func TestNeeds(t *testing.T) {
	s, plain := newTestSpace(t), newTestSpace(t)
	needs := NewNeeds()
	s.NoteNeeds(needs)
	for _, x := range []*Space{s, plain} {
		x.MapAll([]Region{
			{Start: 0xd000, End: 0xf000, Prot: ProtRead | ProtWrite | ProtExec, Object: 3},              // the object's and a partial one
			{Start: 0x21000, End: 0x22000, Prot: ProtRead | ProtWrite, Shared: true, Object: 5},         // a shared one
			{Start: 0x40000, End: 0x41000, Prot: ProtRead | ProtWrite, Object: 3, Offset: 7 * PageSize}, // with a record
		})
		x.Begin()
	}
	pages := []uint64{0xd000, 0xe000, 0x21000, 0x40000}
	written, want := map[uint64]bool{}, map[uint64]bool{}
	var snap, same *Snapshot
	var then map[uint64]bool
	clone := func(m map[uint64]bool) map[uint64]bool {
		out := map[uint64]bool{}
		for a := range m {
			out[a] = true
		}
		return out
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 60_000 {
		a, n := pages[r.IntN(len(pages))]+uint64(r.IntN(2200)), 1+r.IntN(16)
		b := make([]byte, n)
		switch r.IntN(9) {
		case 0, 1:
			for i := range b {
				b[i] = byte(r.Uint32())
				written[a+uint64(i)] = true
			}
			if f, g := s.Write(a, b), plain.Write(a, b); f != g {
				t.Fatalf("a store gives %+v, not %+v", f, g)
			}
		case 2:
			if r.IntN(200) > 0 {
				continue
			}
			if snap != nil {
				s.Restore(snap)
				plain.Restore(same)
				written = clone(then)
				snap.Release()
				same.Release()
				snap = nil
				continue
			}
			snap, same, then = s.Snapshot(), plain.Snapshot(), clone(written)
		case 3:
			s.Fetch(a, b) // is not noted
		default:
			c := make([]byte, n)
			f, g := s.Read(a, b), plain.Read(a, c)
			if f != g || f.Kind == FaultNone && string(b) != string(c) {
				t.Fatalf("a read at %#x gives % x, %+v, not % x, %+v", a, b, f, c, g)
			}
			for i := range b {
				p := a + uint64(i)
				if f.Kind != FaultNone && p >= f.Addr {
					break
				}
				if !written[p] {
					want[p] = true
				}
			}
		}
	}
	if snap != nil {
		snap.Release()
		same.Release()
	}
	got := map[uint64]bool{}
	add := func(base uint64, m *Mask) {
		for i := range PageSize {
			if m.Has(i) {
				got[base+uint64(i)] = true
			}
		}
	}
	for a, m := range needs.Pages {
		add(a, m)
	}
	add(0xd000, needs.Object(ObjectPage{3, 0}))
	for a := range want {
		if !got[a] {
			t.Fatalf("the byte at %#x was read and is not noted", a)
		}
	}
	// What was read once and written in the past that the space went back to is known from then on.
	if len(got) != len(want) || len(want) < 3000 {
		t.Errorf("%d bytes are noted, and %d needed", len(got), len(want))
	}
}

// TestNeedsOfCode tells of code by Need: also where it was stored to before that.
func TestNeedsOfCode(t *testing.T) {
	s := newTestSpace(t)
	needs := NewNeeds()
	s.NoteNeeds(needs)
	s.Map(Region{Start: 0x1000, End: 0x3000, Prot: ProtRead | ProtWrite | ProtExec})
	id := s.CodeID(0x1000)
	if id == 0 {
		t.Fatal("the page has no identity")
	}
	s.Need(0x1ff8, 16)
	s.Write(0x1100, []byte{1, 2})
	if s.CodeID(0x1000) == id {
		t.Error("the identity is what it was before the store")
	}
	m, next := needs.Pages[0x1000], needs.Pages[0x2000]
	for _, o := range []int{0x100, 0x101, 0xff8, 0xfff} {
		if !m.Has(o) {
			t.Errorf("byte %#x is not noted", o)
		}
	}
	if m.Has(0x102) || m.Has(0xff7) || next == nil || !next.Has(7) || next.Has(8) {
		t.Error("others are noted, or not")
	}
	for a := uint64(0x1000); a < 0x2000; a += 64 {
		read(t, s, a, 64)
	}
	if _, fast := s.Translate(0x1000, Load); !fast || !m.All() {
		t.Error("a page that is all needed is accessed slowly")
	}
	s.Unlearn(0x2010, 4)
	if f := s.Read(0x2010, make([]byte, 4)); f.Kind != FaultNotCaptured || !next.Has(0x10) {
		t.Errorf("an unlearnt byte gives %+v, noted: %v", f, next.Has(0x10))
	}
}

// TestNeedsOfCopies reads a private page of an object that is also mapped shared: what it lacks is noted where the
// shared page came from.
func TestNeedsOfCopies(t *testing.T) {
	s := newTestSpace(t)
	needs := NewNeeds()
	s.NoteNeeds(needs)
	s.MapAll([]Region{
		{Start: 0x21000, End: 0x22000, Prot: ProtRead | ProtWrite, Shared: true, Object: 5},
		{Start: 0x3d000, End: 0x3e000, Prot: ProtRead | ProtWrite, Object: 5},
	})
	s.Begin()
	s.Write(0x21000, make([]byte, 4))
	if b := read(t, s, 0x3d000, 8); b[0] != 0 || b[4] != 0x21 {
		t.Errorf("the copy has % x", b)
	}
	if m := needs.Pages[0x21000]; m == nil || m.Has(3) || !m.Has(4) || !m.Has(7) || m.Has(8) {
		t.Error("what the copy needed is not noted, or too much")
	}
	if len(needs.Pages) != 1 || len(needs.Objects) != 0 {
		t.Errorf("%d pages are noted, %d of objects", len(needs.Pages), len(needs.Objects))
	}
}

// TestPeekRaw gives all of a page, and says what is known of it.
func TestPeekRaw(t *testing.T) {
	s := newTestSpace(t)
	s.Map(Region{Start: 0xd000, End: 0x10000, Prot: ProtRead | ProtWrite})
	for _, loaded := range []bool{false, true} {
		for a, want := range map[uint64]int{0xd000: PageSize, 0xe000: PageSize / 2, 0xf000: 0} {
			page, known := Page{5}, Mask{7}
			if !s.PeekRaw(a, &page, &known) {
				t.Fatal("nothing is mapped")
			}
			n := 0
			for i := range PageSize {
				if known.Has(i) {
					n++
				}
			}
			if n != want || page[PageSize-1] != 0 {
				t.Errorf("loaded: %v: %#x has %d known bytes, not %d", loaded, a, n, want)
			}
			if loaded {
				continue
			}
			s.Write(a, []byte{1}) // loads it
			s.Unlearn(a, 1)
			if a != 0xf000 {
				s.Write(a, []byte{1})
			}
		}
	}
	if s.PeekRaw(0x50000, &Page{}, &Mask{}) {
		t.Error("a page that is not mapped is there")
	}
}
