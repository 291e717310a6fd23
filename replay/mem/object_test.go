package mem

import (
	"bytes"
	"testing"
)

// halfKnown has objects of which the bytes above 0x1800 are not known.
type halfKnown struct{ patterned }

func (halfKnown) ObjectPage(object uint32, off uint64, page *Page, mask *Mask) Content {
	switch {
	case off > PageSize:
		return NotCaptured
	case off == 0:
		return patterned{}.ObjectPage(object, off, page, mask)
	}
	for i := range PageSize / 2 {
		page[i] = 0x81
		mask[i/8] |= 1 << (i % 8)
	}
	return Partial
}

// TestPeekObject reads an object across pages, up to the first byte that is not
// known, without a mapping.
func TestPeekObject(t *testing.T) {
	p := NewPool()
	s := NewSpace(p, halfKnown{})
	defer func() {
		s.Close()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct {
		off     uint64
		n, want int
	}{{0, 16, 16}, {PageSize - 4, 8, 8}, {0, 3 * PageSize, PageSize + PageSize/2}, {PageSize + PageSize/2 - 2, 8, 2}, {2 * PageSize, 1, 0}, {1 << 63, 9, 0}} {
		b := make([]byte, c.n)
		if n := s.PeekObject(1, c.off, b); n != c.want {
			t.Errorf("%d bytes at %#x: %d are known, want %d", c.n, c.off, n, c.want)
		}
		want := make([]byte, c.n)
		for i := range c.want {
			want[i] = 0x80 + byte((c.off+uint64(i))>>12)
		}
		if !bytes.Equal(b, want) {
			t.Errorf("at %#x the bytes are wrong", c.off)
		}
	}
}
