package windows

// When each byte of a page was accessed last. Most pages are accessed in words of four bytes and
// more, so a page begins with a cell for each four, and gets one for each byte when it is accessed
// otherwise.

const wordShift = 2 // of a cell of four bytes

// lastPage is what the analysis keeps of a page.
type lastPage struct {
	shift       uint8
	last, wrote []uint32 // by cell: the tick of the last access, and of the program's last write; 0 for none
	// By bound: the number of the last fixed window, from 1, that had a spanning read of the page, and that wrote
	// to it.
	readIn, wroteIn []uint32
}

// newLastPage makes a page that was accessed last at tick.
func newLastPage(bounds int, tick uint32) *lastPage {
	const cells = pageSize >> wordShift
	p := &lastPage{shift: wordShift, last: make([]uint32, cells), wrote: make([]uint32, cells), readIn: make([]uint32, bounds), wroteIn: make([]uint32, bounds)}
	if tick != 0 {
		for i := range p.last {
			p.last[i] = tick
		}
	}
	return p
}

// size is what the page takes, in bytes.
func (p *lastPage) size() int64 { return int64(8*len(p.last)+8*len(p.readIn)) + 256 }

// spread returns a cell for each byte of those of words.
func spread(words []uint32) []uint32 {
	out := make([]uint32, 0, len(words)<<wordShift)
	for _, w := range words {
		out = append(out, w, w, w, w)
	}
	return out
}

// cells returns the cells of the n bytes at off, which is [i, j). The error is of the room.
func (x *analysis) cells(p *lastPage, off, n uint64) (i, j uint64, err error) {
	if mask := uint64(1)<<p.shift - 1; (off|n)&mask != 0 {
		before := p.size()
		p.last, p.wrote, p.shift = spread(p.last), spread(p.wrote), 0
		if err := x.table.take(p.size() - before); err != nil {
			return 0, 0, err
		}
	}
	return off >> p.shift, (off + n) >> p.shift, nil
}
