package checkpoint

import (
	"cmp"
	lru "container/list"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Reading pages: from a hash to a number, from the number to a block of a
// pack, and from the block, once decompressed, to the bytes, whose hash is
// checked before they are handed out for the first time.

// storeReader finds pages.
type storeReader struct {
	packs   []packInfo
	records []storedPage       // by number minus the numbers of damaged packs
	numbers map[PageRef]uint32 // index into records
	cache   blockCache
}

// packInfo is one pack of the file.
type packInfo struct {
	name  string
	first uint64 // number of its first page
	count uint64
	at    int   // index of its first page in records
	err   error // the index is damaged: its pages have no record
}

// storedPage says where a page is.
type storedPage struct {
	ref    PageRef
	block  *storedBlock
	offset uint32 // in the decompressed block, bytes
	length uint32 // bytes
	slot   uint8  // which page of the block
}

// storedBlock is one block of a pack.
type storedBlock struct {
	pack   int
	offset int64 // of the frame in the pack, bytes
	length int64 // of the frame, bytes
	raw    int   // bytes decompressed
}

// number implements pageNumbers; a reader does not encode.
func (s *storeReader) number(PageRef) (uint64, bool) { return 0, false }

// ref implements pageNumbers.
func (s *storeReader) ref(n uint64) (PageRef, error) {
	i, ok := slices.BinarySearchFunc(s.packs, n, func(p packInfo, n uint64) int {
		switch {
		case n < p.first:
			return 1
		case n >= p.first+p.count:
			return -1
		}
		return 0
	})
	if !ok {
		return PageRef{}, fmt.Errorf("page number %d is not in the store", n)
	}
	p := &s.packs[i]
	if p.err != nil {
		return PageRef{}, fmt.Errorf("page number %d cannot be known: %w", n, p.err)
	}
	return s.records[p.at+int(n-p.first)].ref, nil
}

// readIndexes reads the index of every pack. A damaged one is remembered: what
// needs its pages fails then.
func (r *Recording) readIndexes() error {
	s := &r.store
	s.numbers = make(map[PageRef]uint32)
	s.cache.init(blockRoom(r.budget.Memory()))
	next := uint64(0)
	for n := 0; ; n++ {
		info, ok := r.listed[nameIndex(n)]
		if !ok {
			break
		}
		p := packInfo{name: namePack(n), first: next, count: uint64(info.Pages), at: len(s.records)}
		next += p.count
		if next > math.MaxUint32 {
			return r.damage(nameManifest, errors.New("more pages than can be numbered"))
		}
		p.err = r.readIndex(n, p.count)
		if err, limited := r.limited(p.err); limited {
			return err
		}
		s.packs = append(s.packs, p)
	}
	return nil
}

// recordBytes is what a page of the index takes in records and numbers, which
// double as they grow, in bytes.
const recordBytes = 200

func (r *Recording) readIndex(n int, count uint64) error {
	name := nameIndex(n)
	ch := r.charge(name)
	raw, err := r.decoded(name, kindIndex, maxHeadRaw, ch)
	if err != nil {
		return err
	}
	blocks, err := decodeWhole(raw, r.version(), nil, ch, codeBlockIndexes)
	if err == nil {
		err = r.hold(name).add(int64(count) * recordBytes)
	}
	if err == nil {
		err = r.spend(ch.n+int64(count)*recordBytes, name+": decoded")
	}
	defer ch.drop()
	if err != nil {
		return r.damage(name, err)
	}
	total := 0
	for _, b := range *blocks {
		total += len(b.Entries)
	}
	if uint64(total) != count {
		return r.damage(name, fmt.Errorf("%d pages, the manifest says %d", total, count))
	}
	s := &r.store
	offset := int64(len(appendHeader(nil, kindPack, r.version())))
	for _, b := range *blocks {
		sb := &storedBlock{pack: n, offset: offset, length: int64(b.Length)}
		offset += sb.length
		for slot, e := range b.Entries {
			s.numbers[e.Ref] = uint32(len(s.records))
			s.records = append(s.records, storedPage{e.Ref, sb, uint32(sb.raw), e.Length, uint8(slot)})
			sb.raw += int(e.Length)
		}
	}
	return nil
}

// Page copies the content of a page to dst. mask is nil when all bytes are
// known, else it has a bit for each byte that is (bit i%8 of byte i/8 for
// offset i), and the others are zero in dst. Errors: ErrAbsent, ErrRedacted,
// *FormatError when the page is damaged or not in the file.
func (r *Recording) Page(ref PageRef, dst *[PageSize]byte) (mask *[512]byte, err error) {
	switch ref.Kind {
	case PageZero:
		*dst = zeroPage
		return nil, nil
	case PageAbsent, PageRemoved:
		return nil, ErrAbsent
	case PageRedacted:
		return nil, ErrRedacted
	case PageFull, PagePartial: // These are stored.
	}
	i, ok := r.store.numbers[ref]
	if !ok {
		return nil, r.unreadable(r.missing(ref))
	}
	p := &r.store.records[i]
	rec, err := r.record(p)
	if err != nil {
		return nil, r.unreadable(err)
	}
	if ref.Kind == PagePartial {
		mask, err = unpackPartial(rec, dst)
		if err != nil {
			return nil, r.unreadable(r.damage(namePack(p.block.pack), fmt.Errorf("page %x: %w", ref.Hash, err)))
		}
		return mask, nil
	}
	*dst = [PageSize]byte(rec)
	return nil, nil
}

// HasPage reports whether the content of a page can be asked for.
func (r *Recording) HasPage(ref PageRef) bool {
	if ref.Kind == PageZero {
		return true
	}
	_, ok := r.store.numbers[ref]
	return ok
}

// missing says why a page has no record.
func (r *Recording) missing(ref PageRef) error {
	for _, p := range r.store.packs {
		if p.err != nil {
			return fmt.Errorf("checkpoint: page %x is not found, and an index is damaged: %w", ref.Hash, p.err)
		}
	}
	return &FormatError{File: r.file, Offset: -1, What: fmt.Sprintf("page %x is not in the store", ref.Hash)}
}

// record returns the verified bytes of a stored page, which must not be changed.
func (r *Recording) record(p *storedPage) ([]byte, error) {
	b, err := r.block(p.block)
	if err != nil {
		return nil, err
	}
	rec := b.raw[p.offset : p.offset+p.length]
	bit := uint64(1) << p.slot
	if b.verified.Load()&bit == 0 {
		if cutHash(rec) != p.ref.Hash {
			return nil, r.damage(namePack(p.block.pack), &offsetError{
				p.block.offset,
				fmt.Errorf("the bytes of page %x do not have this hash", p.ref.Hash),
			})
		}
		b.verified.Or(bit)
	}
	return rec, nil
}

// frames are buffers for compressed blocks, which are of no use once they are decompressed.
var frames = sync.Pool{New: func() any { return new([]byte) }}

// block returns a decompressed block, from the cache or the file.
func (r *Recording) block(sb *storedBlock) (*loadedBlock, error) {
	if b := r.store.cache.get(sb); b != nil {
		return b, nil
	}
	name := namePack(sb.pack)
	sec, err := r.section(name)
	if err != nil {
		return nil, err
	}
	if sb.length > maxFrame+16 || sb.raw > maxBlock || sb.offset+sb.length > sec.Size() {
		return nil, r.damage(name, &offsetError{sb.offset, errors.New("the block reaches behind the pack's end")})
	}
	buf := frames.Get().(*[]byte)
	defer frames.Put(buf)
	frame := slices.Grow((*buf)[:0], int(sb.length))[:sb.length]
	*buf = frame
	if _, err := sec.ReadAt(frame, sb.offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, r.damage(name, &offsetError{sb.offset, err})
	}
	raw, err := decodeBlockFrame(frame, sb.raw)
	if err != nil {
		return nil, r.damage(name, &offsetError{sb.offset, err})
	}
	b := &loadedBlock{key: sb, raw: raw}
	r.store.cache.put(b)
	return b, nil
}

// decodeBlockFrame decompresses a block frame that takes all of b.
func decodeBlockFrame(b []byte, want int) ([]byte, error) {
	typ, payload, n, err := readFrame(b)
	if err != nil {
		return nil, err
	}
	if typ != frameBlock || n != len(b) {
		return nil, fmt.Errorf("frame of type %#02x and %d bytes, want a block of %d bytes", typ, n, len(b))
	}
	raw, err := decompressBlock(nil, payload)
	if err != nil {
		return nil, err
	}
	if len(raw) != want {
		return nil, fmt.Errorf("block has %d raw bytes, the index says %d", len(raw), want)
	}
	return raw, nil
}

// loadedBlock is a decompressed block; raw does not change.
type loadedBlock struct {
	key      *storedBlock
	raw      []byte
	verified atomic.Uint64 // a bit for each page whose hash was checked
}

// What decompressed blocks that are kept may take: a part, as 1/cacheShare, of the memory that reading the
// recording may take, between these bounds, in bytes. Intervals of one program use much the same blocks, in any order.
const (
	cacheShare   = 16
	minBlockRoom = 24 << 20
	maxBlockRoom = 256 << 20
)

// blockRoom is how many bytes of blocks are kept where reading may take memory bytes; 0: that is not bounded.
func blockRoom(memory int64) int64 { return min(max(memory/cacheShare, minBlockRoom), maxBlockRoom) }

// blockCache keeps the most recently used blocks.
type blockCache struct {
	room   int64 // bytes
	mu     sync.Mutex
	held   int64     // bytes
	recent *lru.List // of *loadedBlock, most recent first
	byKey  map[*storedBlock]*lru.Element
}

func (c *blockCache) init(room int64) {
	c.room = room
	c.recent = lru.New()
	c.byKey = make(map[*storedBlock]*lru.Element)
}

func (c *blockCache) get(k *storedBlock) *loadedBlock {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[k]
	if e == nil {
		return nil
	}
	c.recent.MoveToFront(e)
	return e.Value.(*loadedBlock)
}

func (c *blockCache) put(b *loadedBlock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[b.key]; e != nil {
		c.recent.MoveToFront(e)
		return
	}
	c.byKey[b.key] = c.recent.PushFront(b)
	for c.held += int64(len(b.raw)); c.held > c.room; {
		last := c.recent.Remove(c.recent.Back()).(*loadedBlock)
		delete(c.byKey, last.key)
		c.held -= int64(len(last.raw))
	}
}

// PageTable is the memory at an interval's start by address: sorted by Addr,
// without PageRemoved. It must not be changed.
type PageTable []PageEntry

// Find returns the page at a page-aligned address.
func (t PageTable) Find(addr uint64) (PageRef, bool) {
	i, ok := slices.BinarySearchFunc(t, addr, func(e PageEntry, a uint64) int { return cmp.Compare(e.Addr, a) })
	if !ok {
		return PageRef{}, false
	}
	return t[i].Ref, true
}

// deltaBases returns, for each interval, the index of the one that it changes if it
// is a delta: the one of the same process and image with the greatest smaller ID.
// -1: none. It checks that every delta has one.
func deltaBases(infos []IntervalInfo) ([]int, error) {
	type process struct {
		pid   int32
		image uint32
	}
	last := make(map[process]int)
	bases := make([]int, len(infos))
	for i, in := range infos {
		p := process{in.PID, in.Image}
		base, ok := last[p]
		if !ok {
			base = -1
		}
		if in.Delta && !ok {
			return nil, fmt.Errorf("interval %d is a delta and no interval of process %d, image %d, is before it", in.ID, in.PID, in.Image)
		}
		bases[i], last[p] = base, i
	}
	return bases, nil
}

// cachedTables is how many resolved page tables are kept.
const cachedTables = 16

func (c *tableCache) get(id uint32) (PageTable, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.byID[id]
	return t, ok
}

func (c *tableCache) put(id uint32, t PageTable) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byID[id]; ok {
		return
	}
	if c.byID == nil {
		c.byID = make(map[uint32]PageTable)
	}
	c.byID[id] = t
	c.order = append(c.order, id)
	if len(c.order) > cachedTables {
		delete(c.byID, c.order[0])
		c.order = slices.Delete(c.order, 0, 1)
	}
}

// drop forgets all tables.
func (c *tableCache) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byID, c.order = nil, nil
}

// PageTable returns the whole page table at the start of an interval: deltas
// are followed back to a full table and applied. The newest tables are cached.
// Errors: ErrNoInterval, *FormatError of any interval that it depends on.
func (r *Recording) PageTable(id uint32) (PageTable, error) {
	info, err := r.info(id)
	if err != nil {
		return nil, err
	}
	infos := r.manifest.IntervalList
	var chain []*IntervalInfo // newest first
	var table PageTable
	at, _ := slices.BinarySearchFunc(infos, info.ID, func(in IntervalInfo, id uint32) int { return cmp.Compare(in.ID, id) })
	for i := at; ; i = r.bases[i] {
		if t, ok := r.tables.get(infos[i].ID); ok {
			table = t
			break
		}
		chain = append(chain, &infos[i])
		if !infos[i].Delta {
			break
		}
	}
	for _, in := range slices.Backward(chain) {
		iv, err := r.head(in)
		if err != nil {
			return nil, err
		}
		if table, err = r.apply(in, table, iv.Pages); err != nil {
			return nil, err
		}
		r.tables.put(in.ID, table)
	}
	return table, nil
}

// apply returns the table of an interval that has the rows, which change base if it
// is a delta.
func (r *Recording) apply(in *IntervalInfo, base PageTable, rows []PageEntry) (PageTable, error) {
	if !in.Delta {
		base = nil
	}
	name := nameHead(in.ID) + ": page table"
	size := int64(len(base)+len(rows)) * int64(unsafe.Sizeof(PageEntry{}))
	ch := charge{b: r.budget, part: name}
	if err := errors.Join(r.spend(size, name), ch.add(size)); err != nil {
		err, _ = r.limited(err)
		return nil, err
	}
	table := applyDelta(base, rows)
	if cap(table) == 0 {
		ch.drop()
		return table, nil
	}
	keep(&ch, unsafe.SliceData(table))
	return table, nil
}

// applyDelta returns base with the rows of delta put in, or taken out when
// they are PageRemoved.
func applyDelta(base, delta []PageEntry) PageTable {
	out := make(PageTable, 0, len(base)+len(delta))
	for len(base) > 0 || len(delta) > 0 {
		if len(delta) == 0 || len(base) > 0 && base[0].Addr < delta[0].Addr {
			out = append(out, base[0])
			base = base[1:]
			continue
		}
		if len(base) > 0 && base[0].Addr == delta[0].Addr {
			base = base[1:]
		}
		if delta[0].Ref.Kind != PageRemoved {
			out = append(out, delta[0])
		}
		delta = delta[1:]
	}
	return out
}
