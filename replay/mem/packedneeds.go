package mem

import (
	"encoding/binary"
	"iter"
	"maps"
	"math/bits"
	"slices"
)

// Needs of an interval to which nothing is added any more. They are kept until all intervals are known, of which there may be
// thousands, each with hundreds of pages of which it needs some runs of bytes.

// PackedNeeds are needs in a fraction of the memory. It does not change.
type PackedNeeds struct {
	pages   []byte // for each page, by address: how many pages behind the one before, then runs
	objects []byte // for each: the object, the index, then runs
}

// Pack returns n packed.
func (n *Needs) Pack() PackedNeeds {
	var p PackedNeeds
	last := uint64(0)
	for _, a := range slices.Sorted(maps.Keys(n.Pages)) {
		p.pages = binary.AppendUvarint(p.pages, (a-last)/PageSize)
		p.pages = appendRuns(p.pages, n.Pages[a])
		last = a
	}
	for o, m := range n.Objects {
		p.objects = binary.AppendUvarint(p.objects, uint64(o.Object))
		p.objects = binary.AppendUvarint(p.objects, o.Index)
		p.objects = appendRuns(p.objects, m)
	}
	p.pages, p.objects = slices.Clip(p.pages), slices.Clip(p.objects)
	return p
}

// Size is how many bytes of memory p takes.
func (p *PackedNeeds) Size() int { return cap(p.pages) + cap(p.objects) }

// Pages yields the pages by address, in order, each time with another mask.
func (p *PackedNeeds) Pages() iter.Seq2[uint64, *Mask] {
	return func(yield func(uint64, *Mask) bool) {
		r := packedReader(p.pages)
		for addr := uint64(0); len(r) > 0; {
			addr += r.number() * PageSize
			if !yield(addr, r.runs()) {
				return
			}
		}
	}
}

// Objects is Pages for those of objects, in any order.
func (p *PackedNeeds) Objects() iter.Seq2[ObjectPage, *Mask] {
	return func(yield func(ObjectPage, *Mask) bool) {
		for r := packedReader(p.objects); len(r) > 0; {
			if !yield(ObjectPage{Object: uint32(r.number()), Index: r.number()}, r.runs()) {
				return
			}
		}
	}
}

// appendRuns appends the runs of m: how many there are, and of each its distance to the one before, and its length.
func appendRuns(b []byte, m *Mask) []byte {
	var runs []byte
	n, last := uint64(0), 0
	for from := m.next(0, true); from < PageSize; n++ {
		to := m.next(from, false)
		runs = binary.AppendUvarint(runs, uint64(from-last))
		runs = binary.AppendUvarint(runs, uint64(to-from))
		last, from = to, m.next(to, true)
	}
	return append(binary.AppendUvarint(b, n), runs...)
}

// next returns the first byte from o on that m has, or has not, and PageSize where there is none.
func (m *Mask) next(o int, has bool) int {
	for o < PageSize {
		b := m[o/8]
		if !has {
			b = ^b
		}
		if b >>= o % 8; b != 0 {
			return o + bits.TrailingZeros8(b)
		}
		o = (o/8 + 1) * 8
	}
	return PageSize
}

// packedReader is what is left of packed needs.
type packedReader []byte

func (r *packedReader) number() uint64 {
	v, n := binary.Uvarint(*r)
	*r = (*r)[n:]
	return v
}

func (r *packedReader) runs() *Mask {
	m, at := new(Mask), 0
	for range r.number() {
		at += int(r.number())
		n := int(r.number())
		m.AddRange(at, n)
		at += n
	}
	return m
}
