package mem

import (
	"math/rand/v2"
	"testing"
)

// TestMarksAgainstCells changes marks at random, in pages and across them, and holds each answer to one flag for each byte.
func TestMarksAgainstCells(t *testing.T) {
	const base, pages = 0x10000, 8
	rng := rand.New(rand.NewPCG(3, 1))
	var m Marks
	var cells [pages * PageSize]bool
	for step := range 3000 {
		lo := rng.Uint64N(pages * PageSize)
		n := rng.Uint64N(200)
		switch rng.IntN(4) {
		case 0:
			n = rng.Uint64N(3 * PageSize)
		case 1:
			lo, n = lo&^(PageSize-1), PageSize*rng.Uint64N(3)
		}
		hi := min(lo+n, pages*PageSize)
		set := rng.IntN(2) == 0
		switch {
		case set:
			m.Add(base+lo, base+hi)
		case rng.IntN(4) == 0:
			m.Drop(base+lo, base+hi)
		default:
			m.Remove(base+lo, base+hi)
		}
		for i := lo; i < hi; i++ {
			cells[i] = set
		}
		from := rng.Uint64N(pages * PageSize)
		to := min(from+rng.Uint64N(2*PageSize), pages*PageSize)
		want, isThere := uint64(0), false
		for i := from; i < to && !isThere; i++ {
			if cells[i] {
				want, isThere = base+i, true
			}
		}
		if got, ok := m.Next(base+from, base+to); ok != isThere || ok && got != want {
			t.Fatalf("step %d: the first mark of [%#x,%#x) is at %#x, %v, want %#x, %v", step, base+from, base+to, got, ok, want, isThere)
		}
	}
	if m.Add(0, 1<<40); len(m.pages) > maxMarked {
		t.Errorf("there are %d pages", len(m.pages))
	}
	if m.Drop(0, ^uint64(0)); len(m.pages) != 0 {
		t.Errorf("%d pages are left", len(m.pages))
	}
}

// TestMarkedAccesses makes random loads and stores, beside and on marks that change all the time, and holds what is told
// to the marks. Pages that may be accessed directly in part say the same.
func TestMarkedAccesses(t *testing.T) {
	s := newTestSpace(t)
	const base, size = 0x100000, 4 * PageSize
	s.Map(Region{Start: base, End: base + size, Prot: ProtRead | ProtWrite, Fresh: true})
	var m Marks
	s.SetMarks(&m)
	s.OnHit = func(h Hit) { t.Errorf("a hit without a watch: %+v", h) }
	told := 0
	var old []byte
	s.OnAccess = func(_ uint64, _ int, _ Access, was []byte) { told++; old = append(old[:0], was...) }
	rng := rand.New(rand.NewPCG(8, 9))
	b := make([]byte, 100)
	for step := range 20000 {
		a := base + rng.Uint64N(size-64)
		n := 1 + rng.Uint64N(64)
		switch rng.IntN(4) {
		case 0:
			m.Add(a, a+n)
		case 1:
			m.Remove(a, a+n)
		default:
			_, isMarked := m.Next(a, a+n)
			before := make([]byte, n)
			s.Peek(a, before)
			k := Access(Load)
			if told = 0; rng.IntN(2) == 0 {
				k = Store
				b[0]++
				s.Write(a, b[:n])
			} else {
				s.Read(a, b[:n])
			}
			if isMarked != (told == 1) || told > 1 {
				t.Fatalf("step %d: an access of %d bytes at %#x is told %d times, marked: %v", step, n, a, told, isMarked)
			}
			if isMarked && k == Store && string(old) != string(before) {
				t.Fatalf("step %d: a store has replaced % x, and % x is told", step, before, old)
			}
			page := a &^ (PageSize - 1)
			if p, plain, _ := s.PartialPage(page, k); p != nil && step%64 == 0 {
				for o := range uint64(PageSize) {
					if _, isMarked := m.Next(page+o, page+o+1); isMarked == (plain[o/8]>>(o%8)&1 != 0) {
						t.Fatalf("step %d: byte %#x may be accessed directly, marked: %v", step, page+o, isMarked)
					}
				}
			}
		}
	}
}
