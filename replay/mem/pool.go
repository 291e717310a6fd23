package mem

import (
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// The arena of pages: handing out, counting references, recycling, and the limit on all
// of it. How a space finds a page is in table.go, where the arena's memory comes from in
// the files arena_*.go.

// PageSize is the size of a guest page in bytes.
const PageSize = 4096

// Page is the content of one guest page.
type Page = [PageSize]byte

// pageID names a page of a pool; 0 is no page.
type pageID uint32

const (
	chunkShift = 10 // pages per chunk: 1024, 4 MiB
	chunkPages = 1 << chunkShift
	maxChunks  = 1 << 16 // 256 GiB of guest pages

	touchedAhead = 16 // pages that the host is asked for at once: tens of microseconds
)

// pageMeta is what the pool knows of a page.
type pageMeta struct {
	refs   atomic.Int32
	dirty  atomic.Bool   // written since it was loaded
	codeID atomic.Uint64 // not 0: holds decoded code, and this is its content's identity
	// mask, when set, has one bit a byte: set when the byte is known.
	mask *Mask
	// latent, when set, has the bytes that are there and do not count as known; see needs.go. Then there is a mask.
	latent *latent
}

// Mask has one bit per byte of a page, least significant bit first: set when
// the byte is known.
type Mask [PageSize / 8]byte

type chunk struct {
	bytes  []byte
	pages  *[chunkPages]Page
	offset int64 // in the arena's file; -1: in none
	place  place
	meta   [chunkPages]pageMeta
}

// Pool is the arena that guest pages live in. It may be shared by spaces on
// several goroutines. The zero Pool is not usable; see NewPool.
type Pool struct {
	chunks [maxChunks]*chunk
	inUse  atomic.Int64 // pages
	tables atomic.Int64 // bytes of page tables

	limit atomic.Int64 // bytes in use that spaces report as too many; 0: none

	mu      sync.Mutex
	n       int // chunks in use
	shelves [2]shelf

	zeroOnce sync.Once
	zero     pageID // see zeroPage

	slotMu sync.RWMutex
	slots  map[uint32]uint64 // windows of shared objects' keys
	owners []uint32          // the objects of the windows
}

// place says what memory a page is of.
type place uint8

const (
	anonymous place = iota
	inFile          // the arena's, where there is one: a page of it takes longer to get, and can be mapped
)

// shelf has the pages of one place that may be handed out.
type shelf struct {
	chunk int      // the last one, number and 1; 0: none
	next  int      // pages handed out of that
	free  []pageID // recycled pages
}

// NewPool returns an empty pool. Close releases its memory.
func NewPool() *Pool {
	p := &Pool{slots: map[uint32]uint64{}}
	return p
}

// Close gives the memory back. No Space or Snapshot of the pool may be used
// afterwards.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first error
	for i := range p.n {
		if err := unmapChunk(p.chunks[i].bytes, p.chunks[i].offset); err != nil && first == nil {
			first = err
		}
		p.chunks[i] = nil
	}
	p.n, p.shelves = 0, [2]shelf{}
	return first
}

// InUse returns how many bytes of guest pages are referenced, with the page
// tables that lead to them.
func (p *Pool) InUse() int64 { return p.inUse.Load()*PageSize + p.tables.Load() }

// SetLimit makes spaces of the pool call OnFull while more than n bytes are in use;
// 0 is no limit. A space goes on all the same: who owns it must stop it.
func (p *Pool) SetLimit(n int64) { p.limit.Store(n) }

// Full reports whether more is in use than the limit.
func (p *Pool) Full() bool {
	n := p.limit.Load()
	return n > 0 && p.InUse() > n
}

// alloc returns a page with one reference and undefined content.
func (p *Pool) alloc(at place) pageID {
	p.inUse.Add(1)
	p.mu.Lock()
	var id pageID
	if s := &p.shelves[at]; len(s.free) > 0 {
		n := len(s.free)
		id = s.free[n-1]
		s.free = s.free[:n-1]
	} else {
		id = p.fresh(at)
	}
	p.mu.Unlock()
	p.begin(id)
	return id
}

// begin has a page that is handed out be as new.
func (p *Pool) begin(id pageID) {
	m := p.meta(id)
	m.refs.Store(1)
	m.dirty.Store(false)
	m.codeID.Store(0)
	m.mask, m.latent = nil, nil
}

// allocRun is alloc for up to n pages that lie one behind the other; it returns the first, and how many they are, one at least.
func (p *Pool) allocRun(at place, n int) (id pageID, got int) {
	p.mu.Lock()
	if s := &p.shelves[at]; len(s.free) > 0 {
		id, got = s.takeRun(n)
	} else {
		for id, got = p.fresh(at), 1; got < n && s.next < chunkPages; got++ {
			p.fresh(at)
		}
	}
	p.mu.Unlock()
	p.inUse.Add(int64(got))
	for i := range got {
		p.begin(id + pageID(i))
	}
	return id, got
}

// takeRun takes up to n recycled pages that were given back one behind the other, in any direction.
func (s *shelf) takeRun(n int) (id pageID, got int) {
	last := len(s.free) - 1
	first := s.free[last]
	id, got = first, 1
	for _, step := range []int{1, -1} {
		for got < min(n, last+1) && int(s.free[last-got]) == int(first)+step*got {
			id, got = min(id, s.free[last-got]), got+1
		}
		if got > 1 {
			break
		}
	}
	s.free = s.free[:last+1-got]
	return id, got
}

// fresh takes a page never used before. The caller holds mu.
func (p *Pool) fresh(at place) pageID {
	s := &p.shelves[at]
	if s.chunk == 0 || s.next == chunkPages {
		b, offset, err := mapChunk(at)
		if err != nil || p.n == maxChunks {
			panic(fmt.Sprintf("mem: out of memory for guest pages after %d MiB: %v", p.n*4, err))
		}
		p.chunks[p.n] = &chunk{bytes: b, pages: pagesOf(b), offset: offset, place: at}
		p.n++
		s.chunk, s.next = p.n, 0
		if p.n == 1 {
			s.next = 1 // ID 0 is no page
		}
	}
	n := s.chunk - 1
	if s.next%touchedAhead == 0 {
		touch(p.chunks[n].bytes[s.next*PageSize:][:touchedAhead*PageSize])
	}
	id := pageID(n<<chunkShift | s.next)
	s.next++
	return id
}

func (p *Pool) page(id pageID) *Page {
	return &p.chunks[id>>chunkShift].pages[id&(chunkPages-1)]
}

func (p *Pool) meta(id pageID) *pageMeta {
	return &p.chunks[id>>chunkShift].meta[id&(chunkPages-1)]
}

// identitySeed makes identities that nobody who wrote a recording can foresee.
var identitySeed = maphash.MakeSeed()

// identity returns what stands for the content of a page at key: a sum of its bytes and of its mask, never 0.
func (p *Pool) identity(id pageID, key uint64) uint64 {
	sum := maphash.Bytes(identitySeed, p.page(id)[:]) + key
	if m := p.meta(id).all(); m != nil {
		sum ^= maphash.Bytes(identitySeed, m[:])
	}
	return max(sum, 1)
}

func (p *Pool) ref(id pageID) { p.meta(id).refs.Add(1) }

func (p *Pool) unref(id pageID) {
	if p.meta(id).refs.Add(-1) != 0 {
		return
	}
	p.meta(id).mask, p.meta(id).latent = nil, nil
	p.inUse.Add(-1)
	p.mu.Lock()
	at := &p.shelves[p.chunks[id>>chunkShift].place]
	at.free = append(at.free, id)
	p.mu.Unlock()
}

// zeroPage returns the page that all pages of zeros share until they are written:
// most memory that a program has was never touched, or is read once by a search.
// The pool's own reference keeps it from being changed in place, and it is never
// marked, as dirty or as code, for its marks would be those of all.
func (p *Pool) zeroPage() pageID {
	p.zeroOnce.Do(func() {
		p.zero = p.alloc(inFile)
		*p.page(p.zero) = Page{}
		p.inUse.Add(-1) // nobody has loaded it
	})
	return p.zero
}

// apart returns a page that may be marked: id, whose reference it takes over, or a
// copy when that is the page of all zeros.
func (p *Pool) apart(id pageID, at place) pageID {
	if id != p.zeroPage() {
		return id
	}
	c := p.clone(id, at)
	p.unref(id)
	return c
}

// clone returns a copy of a page with one reference and no code mark.
func (p *Pool) clone(id pageID, at place) pageID {
	c := p.alloc(at)
	*p.page(c) = *p.page(id)
	from, to := p.meta(id), p.meta(c)
	to.dirty.Store(from.dirty.Load())
	if from.mask != nil {
		m := *from.mask
		to.mask = &m
	}
	if from.latent != nil {
		l := *from.latent
		to.latent = &l
	}
	return c
}
