package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// The page store holds each page content once, under its hash. Pages are
// numbered in the order in which they came. 64 of them make a block, which is
// compressed as a whole; blocks make packs of some MiB. Each pack is followed
// by an index that names its pages, so that a reader finds any page with one
// read of one block.

const (
	// pagesPerBlock is how many pages are compressed together.
	pagesPerBlock = 64
	// packSize is the stored size, in bytes, at which a pack is closed.
	packSize = 16 << 20
	// maskSize is the length of a partial page's mask: a bit for each byte,
	// bit i%8 of byte i/8 for the byte at offset i.
	maskSize = PageSize / 8
)

var zeroPage [PageSize]byte

// HashPageContent returns the content address of a full page.
func HashPageContent(page *[PageSize]byte) PageHash { return cutHash(page[:]) }

func cutHash(b []byte) PageHash {
	sum := sha256.Sum256(b)
	return PageHash(sum[:16])
}

// RefOf returns the reference of a page's content without storing it, in the
// form that [Writer.AddPage] and End.Pages use: PageZero for a page of zeros,
// else PageFull.
func RefOf(page *[PageSize]byte) PageRef {
	if *page == zeroPage {
		return PageRef{Kind: PageZero}
	}
	return PageRef{Kind: PageFull, Hash: cutHash(page[:])}
}

// RefOfPartial is RefOf for a page of which the bytes in mask are known, as [Writer.AddPartialPage] returns it:
// PageAbsent for none, PagePartial for some.
func RefOfPartial(mask *[PageSize / 8]byte, page *[PageSize]byte) PageRef {
	switch rec := packPartial(mask, page[:]); len(rec) {
	case maskSize:
		return PageRef{Kind: PageAbsent}
	case maskSize + PageSize:
		return RefOf(page)
	default:
		return PageRef{Kind: PagePartial, Hash: cutHash(rec)}
	}
}

// packPartial returns a partial page's record: the mask, then the bytes it
// selects in order of address.
func packPartial(mask *[maskSize]byte, page []byte) []byte {
	rec := make([]byte, maskSize, maskSize+PageSize)
	copy(rec, mask[:])
	for i, m := range mask {
		for ; m != 0; m &= m - 1 {
			rec = append(rec, page[i*8+bits.TrailingZeros8(m)])
		}
	}
	return rec
}

// unpackPartial splits a partial page's record; bytes outside of the mask are
// zero in dst.
func unpackPartial(rec []byte, dst *[PageSize]byte) (*[maskSize]byte, error) {
	if len(rec) < maskSize {
		return nil, fmt.Errorf("partial page of %d bytes has no mask", len(rec))
	}
	mask := [maskSize]byte(rec)
	*dst = zeroPage
	rest := rec[maskSize:]
	for i, m := range mask {
		for ; m != 0; m &= m - 1 {
			if len(rest) == 0 {
				return nil, errors.New("partial page has fewer bytes than its mask")
			}
			dst[i*8+bits.TrailingZeros8(m)] = rest[0]
			rest = rest[1:]
		}
	}
	if len(rest) != 0 {
		return nil, errors.New("partial page has more bytes than its mask")
	}
	return &mask, nil
}

// blockIndex describes one block of a pack.
type blockIndex struct {
	Length  uint32 // of its frame, in bytes
	Entries []pageRecord
}

// pageRecord is one page of a block.
type pageRecord struct {
	Ref    PageRef // PageFull or PagePartial
	Length uint32  // raw bytes: PageSize, or mask and bytes
}

func codeBlockIndex(c *coder, b *blockIndex) {
	c.u32(&b.Length)
	list(c, &b.Entries, 17, func(c *coder, r *pageRecord) {
		enum(c, &r.Ref.Kind, PageFull, PagePartial, "kind of stored page")
		c.raw(r.Ref.Hash[:])
		switch r.Ref.Kind {
		case PageFull:
			if c.decoding {
				r.Length = PageSize
			}
		case PagePartial:
			c.u32(&r.Length)
			if c.err == nil && (r.Length <= maskSize || r.Length >= maskSize+PageSize) {
				c.fail("partial page of %d bytes", r.Length)
			}
		default:
			c.fail("kind of stored page %d", r.Ref.Kind)
		}
	})
	if c.err == nil && (len(b.Entries) == 0 || len(b.Entries) > pagesPerBlock) {
		c.fail("block of %d pages", len(b.Entries))
	}
}

func codeBlockIndexes(c *coder, b *[]blockIndex) { list(c, b, 2, codeBlockIndex) }

// pageBlock is a block that is being filled or compressed.
type pageBlock struct {
	raw     []byte
	entries []pageRecord
	frame   chan []byte // the compressed frame
}

// storeWriter gathers pages into packs.
type storeWriter struct {
	level   Level
	version int // of the format
	numbers map[PageRef]uint32
	cur     *pageBlock
	pending []*pageBlock // being compressed, in order
	free    [][]byte     // buffers of blocks that are in the pack
	pack    []byte
	raw     uint64 // bytes in the pack's blocks, decompressed
	index   []blockIndex
	pages   int                                              // in the pack
	emit    func(pack []byte, idx []blockIndex, n int) error // takes a whole pack
}

// number implements pageNumbers.
func (s *storeWriter) number(r PageRef) (uint64, bool) {
	n, ok := s.numbers[r]
	return uint64(n), ok
}

// ref implements pageNumbers; a writer never decodes.
func (s *storeWriter) ref(n uint64) (PageRef, error) {
	return PageRef{}, fmt.Errorf("page number %d in a writer", n)
}

// add stores a record unless it is there.
func (s *storeWriter) add(ref PageRef, rec []byte) error {
	if _, ok := s.numbers[ref]; ok {
		return nil
	}
	s.numbers[ref] = uint32(len(s.numbers))
	if s.cur == nil {
		s.cur = &pageBlock{frame: make(chan []byte, 1), raw: s.buffer()}
	}
	s.cur.raw = append(s.cur.raw, rec...)
	s.cur.entries = append(s.cur.entries, pageRecord{ref, uint32(len(rec))})
	if len(s.cur.entries) == pagesPerBlock {
		return s.closeBlock()
	}
	return nil
}

// buffer returns an empty buffer for a block.
func (s *storeWriter) buffer() []byte {
	if n := len(s.free); n > 0 {
		b := s.free[n-1]
		s.free = s.free[:n-1]
		return b
	}
	return make([]byte, 0, pagesPerBlock*PageSize)
}

// maxPending bounds the blocks in memory that wait for compression.
const maxPending = 8

// closeBlock hands the current block to a compressor.
func (s *storeWriter) closeBlock() error {
	b := s.cur
	s.cur = nil
	level := s.level
	go func() { b.frame <- appendFrame(nil, frameBlock, compressBlock(nil, b.raw, level)) }()
	s.pending = append(s.pending, b)
	if len(s.pending) < maxPending {
		return nil
	}
	return s.collect()
}

// collect waits for the oldest pending block and puts it into the pack.
func (s *storeWriter) collect() error {
	b := s.pending[0]
	s.pending = slices.Delete(s.pending, 0, 1)
	frame := <-b.frame
	if len(s.pack) == 0 {
		s.pack = appendHeader(s.pack, kindPack, s.version)
	}
	s.pack = append(s.pack, frame...)
	s.raw += uint64(len(b.raw))
	s.free = append(s.free, b.raw[:0])
	s.index = append(s.index, blockIndex{uint32(len(frame)), b.entries})
	s.pages += len(b.entries)
	if len(s.pack) >= packSize {
		return s.closePack()
	}
	return nil
}

// closePack emits the current pack.
func (s *storeWriter) closePack() error {
	if len(s.index) == 0 {
		return nil
	}
	c := newEncoder(nil)
	c.u64(&s.raw)
	s.pack = appendFrame(s.pack, frameEnd, c.b)
	err := s.emit(s.pack, s.index, s.pages)
	s.pack, s.raw, s.index, s.pages = s.pack[:0], 0, nil, 0
	return err
}

// flush emits everything. A later add begins a new pack.
func (s *storeWriter) flush() error {
	if s.cur != nil {
		if err := s.closeBlock(); err != nil {
			return err
		}
	}
	for len(s.pending) > 0 {
		if err := s.collect(); err != nil {
			return err
		}
	}
	return s.closePack()
}

// isZeroPage reports whether all bytes of a page are zero.
func isZeroPage(page []byte) bool { return bytes.Equal(page, zeroPage[:]) }
