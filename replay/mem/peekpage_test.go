package mem

import (
	"errors"
	"testing"
)

// ones is a source of pages of ones, of zeros, and of pages of which the first half is known,
// by turns.
type ones struct{}

func (ones) PageAt(a uint64, page *Page, mask *Mask) (Content, bool) {
	for i := range page {
		page[i] = 1
	}
	switch a / PageSize % 4 {
	case 1:
		return Zero, true
	case 2:
		for i := range len(mask) / 2 {
			mask[i] = 0xff
		}
		return Partial, true
	case 3:
		return NotCaptured, true
	}
	return Captured, true
}

func (ones) ObjectPage(uint32, uint64, *Page, *Mask) Content { return NotCaptured }

// Pages implements PageLister.
func (ones) Pages(start, end uint64, f func(a uint64, name PageName)) {
	for a := start; a < end; a += PageSize {
		f(a, PageName{})
	}
}

// twins are ones whose pages with one content have a name.
type twins struct{ ones }

// Pages implements PageLister.
func (t twins) Pages(start, end uint64, f func(a uint64, name PageName)) {
	t.ones.Pages(start, end, func(a uint64, name PageName) {
		if a/PageSize%4 == 0 {
			name[0] = 1
		}
		f(a, name)
	})
}

// newOnes returns a space of n pages of ones at 0x10000.
func newOnes(t *testing.T, n uint64) *Space {
	t.Helper()
	p := NewPool()
	t.Cleanup(func() { _ = p.Close() })
	s := NewSpace(p, ones{})
	t.Cleanup(s.Close)
	s.Map(Region{Start: 0x10000, End: 0x10000 + n*PageSize, Prot: ProtRead | ProtWrite})
	s.Begin()
	return s
}

// TestPeekPage: a page is read as Peek reads it, loaded or not, and takes no memory.
func TestPeekPage(t *testing.T) {
	s := newOnes(t, 8)
	before := s.pool.InUse()
	var got, want [10]Page
	var n, m [10]int
	var f, g [10]Fault
	for i := range got {
		n[i], f[i] = s.PeekPage(0x10000+uint64(i)*PageSize, &got[i])
	}
	if more := s.pool.InUse() - before; more != 0 {
		t.Errorf("looking takes %d bytes", more)
	}
	for i := range want {
		m[i], g[i] = s.Peek(0x10000+uint64(i)*PageSize, want[i][:])
	}
	if got != want || n != m || f != g {
		t.Errorf("%v %v, want %v %v, same bytes: %t", n, f, m, g, got == want)
	}
	if n[0] != PageSize || n[2] != PageSize/2 || n[3] != 0 || f[9].Kind != FaultNotMapped {
		t.Errorf("%v %v", n, f)
	}
	s.Inject(0x10000, []byte{2})
	if n, _ := s.PeekPage(0x10000, &got[0]); n != PageSize || got[0][0] != 2 || got[0][1] != 1 {
		t.Errorf("%d bytes of a page that was written: % x", n, got[0][:2])
	}
}

// TestMoveIsCharged: whoever pays is asked while pages are loaded to be moved, and with his
// refusal nothing has moved.
func TestMoveIsCharged(t *testing.T) {
	const n = 4096
	s := newOnes(t, n)
	poor, asked := errors.New("no more"), 0
	s.Charge = func() error {
		if asked++; asked == 3 {
			return poor
		}
		return nil
	}
	if err := s.Move(0x10000, 0x10000+n*PageSize, 1<<32, 1<<32+n*PageSize); !errors.Is(err, poor) || asked != 3 {
		t.Errorf("%v, after %d questions", err, asked)
	}
	if loaded := s.pool.InUse(); loaded > n*PageSize/4 {
		t.Errorf("%d bytes are loaded all the same", loaded)
	}
	if _, ok := s.Find(0x10000); !ok {
		t.Error("it has moved")
	}
	s.Charge = nil
	if err := s.Move(0x10000, 0x10000+n*PageSize, 1<<32, 1<<32+n*PageSize); err != nil {
		t.Error(err)
	}
	if _, ok := s.Find(0x10000); ok {
		t.Error("it has not moved")
	}
}

// TestMoveOfTwins: pages of one name are moved as one, and are two where the program writes.
func TestMoveOfTwins(t *testing.T) {
	const n, to = 400, 1 << 32
	moved := func(src Source) *Space {
		s := newOnes(t, n)
		s.src = src
		if err := s.Move(0x10000, 0x10000+n*PageSize, to, to+n*PageSize); err != nil {
			t.Fatal(err)
		}
		return s
	}
	s, other := moved(twins{}), moved(ones{})
	if less := other.pool.InUse() - s.pool.InUse(); less != (n/4-1)*PageSize {
		t.Errorf("%d bytes less than without names", less)
	}
	s.Write(to+4*PageSize, []byte{7})
	other.Write(to+4*PageSize, []byte{7})
	for a := uint64(to); a < to+n*PageSize; a += PageSize {
		var got, want Page
		k, f := s.Peek(a, got[:])
		if m, g := other.Peek(a, want[:]); k != m || f != g || got != want || s.IsWritten(a) != other.IsWritten(a) {
			t.Errorf("%#x: %d bytes, %v, begin with % x; want %d, %v, % x", a, k, f, got[:4], m, g, want[:4])
		}
	}
}
