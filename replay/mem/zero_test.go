package mem

import "testing"

// zeros is a source that knows of nothing.
type zeros struct{}

func (zeros) PageAt(uint64, *Page, *Mask) (Content, bool)         { return Zero, false }
func (zeros) ObjectPage(uint32, uint64, *Page, *Mask) (c Content) { return NotCaptured }

// TestZeroPages holds that pages of zeros cost nothing until they are written, and
// that what becomes of one is not seen in the others.
func TestZeroPages(t *testing.T) {
	t.Parallel()
	const start, end, page = 0x10000, 0x10000 + 64*PageSize, PageSize
	p := NewPool()
	defer p.Close()
	s := NewSpace(p, zeros{})
	defer s.Close()
	s.Map(Region{Start: start, End: end, Prot: ProtRead | ProtWrite | ProtExec})
	was := p.inUse.Load()
	for a := uint64(start); a < end; a += page {
		var b [1]byte
		if f := s.Read(a, b[:]); f.Kind != FaultNone || b[0] != 0 {
			t.Fatalf("%#x reads %v, %v", a, b, f)
		}
	}
	if n := p.inUse.Load() - was; n != 0 {
		t.Errorf("reading zeros takes %d pages", n)
	}
	then := s.Snapshot()
	defer then.Release()

	s.Write(start, []byte{1})
	if s.CodeID(start+page) == s.CodeID(start+2*page) {
		t.Error("two pages of code have one identity")
	}
	s.Write(start+page, []byte{2})
	s.Move(start+4*page, start+5*page, end+page, end+2*page)
	written := map[uint64]bool{start: true, start + page: true, end + page: true}
	for a := uint64(start); a < end+2*page; a += page {
		if s.IsWritten(a) != written[a] {
			t.Errorf("%#x is written: %t", a, s.IsWritten(a))
		}
		var b [1]byte
		if _, fast := s.Translate(a, Load); s.Read(a, b[:]).Kind == FaultNone && (b[0] != map[uint64]byte{start: 1, start + page: 2}[a] || !fast) {
			t.Errorf("%#x reads %d, direct %t", a, b[0], fast)
		}
	}
	old := then.Open()
	defer old.Close()
	var b [2 * page]byte
	if f := old.Read(start, b[:]); f.Kind != FaultNone || b != [2 * page]byte{} {
		t.Errorf("the snapshot changed: %v", f)
	}
}
