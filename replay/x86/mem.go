package x86

import "encoding/binary"

// This file is the way to the guest's memory: two direct-mapped translation
// caches of 4096 pages, one for loads and one for stores. An entry holds the
// page's address and the host's bytes; one unsigned comparison of the distance
// from that address says both "same page" and "does not cross its end". What
// the owner wants to see (faults, watches, copy on write, code pages) is simply
// not in the cache, so the common path pays nothing for it.

const (
	pageSize = 4096
	tlbSize  = 4096
	tlbMask  = tlbSize - 1
)

type tlbEntry struct {
	base uint64
	page *[pageSize]byte
}

// slowSize is how many pages of each kind of access are known to be slow.
const slowSize = 256

// slowPages remembers pages that must be accessed through the Bus: the page's
// address plus 1, by page number. Asking Bus.Translate again each time costs
// more than the access. An entry that is out of date is only slower.
type slowPages [slowSize]uint64

func (s *slowPages) has(base uint64) bool { return s[base>>12&(slowSize-1)] == base+1 }
func (s *slowPages) add(base uint64)      { s[base>>12&(slowSize-1)] = base + 1 }
func (s *slowPages) drop(base uint64)     { s[base>>12&(slowSize-1)] = 0 }

// emptyBase is the base of an unused entry i: an address that belongs to
// another entry, so that no access through i can match.
func emptyBase(i uint64) uint64 { return (i ^ 1) << 12 }

// FlushTLB forgets all translations, and has the identity of every code page
// checked before it is executed again. The owner calls it after it restored a
// snapshot or changed the memory map.
func (c *CPU) FlushTLB() {
	c.emptyTLB()
	c.engine.Invalidate(c, AllPages)
}

// manyPages is how many pages are flushed one by one at most: to find all others again costs more.
const manyPages = 1 << 10

// FlushTLBRange is FlushTLBPage for all pages of [start, end). The end of all memory is 2^64-1.
func (c *CPU) FlushTLBRange(start, end uint64) {
	if end-start <= manyPages*pageSize {
		for a := start; a < end; a += pageSize {
			c.FlushTLBPage(a)
		}
		return
	}
	c.emptyTLB()
	if e, ok := c.engine.(RangeInvalidator); ok && end-start < 1<<63 {
		e.InvalidateRange(c, start, end)
	} else {
		c.engine.Invalidate(c, AllPages)
	}
}

// emptyTLB forgets all translations.
func (c *CPU) emptyTLB() {
	c.rfills.empty(&c.rtlb)
	c.wfills.empty(&c.wtlb)
	c.rslow, c.wslow = slowPages{}, slowPages{}
	c.rpartialFills.emptyPartial(&c.rpartial)
	c.wpartialFills.emptyPartial(&c.wpartial)
	c.log.flush()
}

// FlushTLBPage forgets the translations of the page that holds a.
func (c *CPU) FlushTLBPage(a uint64) {
	i := a >> 12 & tlbMask
	c.rtlb[i] = tlbEntry{base: emptyBase(i)}
	c.wtlb[i] = tlbEntry{base: emptyBase(i)}
	c.rslow.drop(a)
	c.wslow.drop(a)
	c.rpartial.drop(a)
	c.wpartial.drop(a)
	c.log.flushPage(a)
	c.engine.Invalidate(c, a&^(pageSize-1))
}

// fills remembers which entries of a translation cache were filled since it was
// emptied: n of them, the first as many as there is room for by name. A step
// backward empties both caches three times and fills a few entries: emptying all 4096
// took ten of the eleven microseconds of a short one. New code empties one of them, and
// that took a third of a comparison with the CPU.
type fills struct {
	n  int
	at [32]uint16
}

func (f *fills) add(i uint64) {
	if f.n < len(f.at) {
		f.at[f.n] = uint16(i)
	}
	if f.n <= len(f.at) {
		f.n++
	}
}

// empty empties t, whose fills these are: the entries it has by name, when it has
// all.
func (f *fills) empty(t *[tlbSize]tlbEntry) {
	if f.n <= len(f.at) {
		for _, i := range f.at[:f.n] {
			t[i] = tlbEntry{base: emptyBase(uint64(i))}
		}
	} else {
		for i := range t {
			t[i] = tlbEntry{base: emptyBase(uint64(i))}
		}
	}
	f.n = 0
}

// fillAll says that all entries are to be emptied: those of a new cache are not yet.
func (f *fills) fillAll() { f.n = len(f.at) + 1 }

// canonical reports whether a is a canonical 48-bit address.
func canonical(a uint64) bool { return uint64(int64(a)<<16>>16) == a }

// memFault records the fault a Bus method returned.
func (c *CPU) memFault(f Fault) Exit {
	c.Fault = f
	return ExitFault
}

// loadPage returns the page of a for direct loads, or nil.
func (c *CPU) loadPage(a uint64) *[pageSize]byte {
	base := a &^ (pageSize - 1)
	e := &c.rtlb[a>>12&tlbMask]
	if e.base == base {
		return e.page
	}
	if p := c.rpartial.whole(base); p != nil {
		return p
	}
	if c.rslow.has(base) || !canonical(a) || c.log != nil {
		return nil
	}
	p, fast := c.Bus.Translate(base, Load)
	if p == nil || !fast || !aligned(p) {
		if p != nil {
			c.rslow.add(base)
		}
		return nil
	}
	c.rpartial.keep(e, &c.revictions, &c.rpartialFills)
	*e = tlbEntry{base, p}
	c.rfills.add(a >> 12 & tlbMask)
	return p
}

// storePage returns the page of a for direct stores, or nil.
func (c *CPU) storePage(a uint64) *[pageSize]byte {
	base := a &^ (pageSize - 1)
	e := &c.wtlb[a>>12&tlbMask]
	if e.base == base {
		return e.page
	}
	if p := c.wpartial.whole(base); p != nil {
		return p
	}
	if c.wslow.has(base) || !canonical(a) || c.log != nil {
		return nil
	}
	p, fast := c.Bus.Translate(base, Store)
	if p == nil || !fast || !aligned(p) {
		if p != nil {
			c.wslow.add(base)
		}
		return nil
	}
	// The store translation may have replaced the page (copy on write).
	r := &c.rtlb[a>>12&tlbMask]
	if r.base == base && r.page != p {
		r.page = p
	}
	if c.rpartial.whole(base) != nil {
		c.rpartial.at(base).page = p
	}
	c.wpartial.keep(e, &c.wevictions, &c.wpartialFills)
	*e = tlbEntry{base, p}
	c.wfills.add(a >> 12 & tlbMask)
	return p
}

// loadBytes copies len(b) bytes at a. On a fault b's content is undefined.
func (c *CPU) loadBytes(a uint64, b []byte) Exit {
	n := uint64(len(b))
	if n == 0 {
		return ExitNone
	}
	if c.log != nil {
		return c.log.load(c, a, b)
	}
	off := a & (pageSize - 1)
	if off+n <= pageSize {
		if p := c.loadPage(a); p != nil {
			copy(b, p[off:])
			return ExitNone
		}
	} else if off+n <= 2*pageSize {
		n1 := pageSize - off
		if p, q := c.loadPage(a), c.loadPage(a+n1); p != nil && q != nil {
			copy(b, p[off:])
			copy(b[n1:], q[:])
			return ExitNone
		}
	}
	return c.busRead(a, b)
}

// busRead is loadBytes through the Bus.
func (c *CPU) busRead(a uint64, b []byte) Exit {
	if e := c.checkCanonical(a, len(b), Load); e != ExitNone {
		return e
	}
	s := c.scratch[:]
	if len(b) > len(s) {
		s = make([]byte, len(b))
	}
	s = s[:len(b)]
	if f := c.Bus.Read(a, s); f.Kind != FaultNone {
		return c.memFault(f)
	}
	c.notePartial(&c.rpartial, &c.rpartialFills, a, Load)
	copy(b, s)
	return ExitNone
}

// storeBytes stores b at a: all of it, or nothing and a fault.
func (c *CPU) storeBytes(a uint64, b []byte) Exit {
	n := uint64(len(b))
	if n == 0 {
		return ExitNone
	}
	if c.log != nil {
		return c.log.store(c, a, b)
	}
	off := a & (pageSize - 1)
	if off+n <= pageSize {
		if p := c.storePage(a); p != nil {
			copy(p[off:], b)
			return ExitNone
		}
	} else if off+n <= 2*pageSize {
		n1 := pageSize - off
		if p, q := c.storePage(a), c.storePage(a+n1); p != nil && q != nil {
			copy(p[off:], b)
			copy(q[:], b[n1:])
			return ExitNone
		}
	}
	return c.busWrite(a, b)
}

// busWrite is storeBytes through the Bus. The page may hold code, under this
// address or another: unless the Bus says so itself (CodeFlusher), the running
// block ends after the instruction and all code is looked at again.
func (c *CPU) busWrite(a uint64, b []byte) Exit {
	if e := c.checkCanonical(a, len(b), Store); e != ExitNone {
		return e
	}
	s := c.scratch2[:]
	if len(b) > len(s) {
		s = make([]byte, len(b))
	}
	s = s[:len(b)]
	copy(s, b)
	if f := c.Bus.Write(a, s); f.Kind != FaultNone {
		return c.memFault(f)
	}
	if !c.flushesCode {
		c.engine.Invalidate(c, AllPages)
	}
	c.notePartial(&c.wpartial, &c.wpartialFills, a, Store)
	return ExitNone
}

func (c *CPU) checkCanonical(a uint64, n int, k Access) Exit {
	if canonical(a) && canonical(a+uint64(n)-1) {
		return ExitNone
	}
	c.Fault = Fault{Kind: FaultNonCanon, Access: k, Addr: a}
	return ExitFault
}

// probe says whether an access of n bytes at a would fault, without doing it.
// Read-modify-write forms and stores of several parts call it first.
func (c *CPU) probe(a uint64, n int, k Access) Exit {
	t := &c.rtlb
	if k == Store {
		t = &c.wtlb
	}
	if off := a - t[a>>12&tlbMask].base; off < pageSize && off+uint64(n) <= pageSize {
		return ExitNone
	}
	if e := c.checkCanonical(a, n, k); e != ExitNone {
		return e
	}
	if f := c.Bus.Probe(a, n, k); f.Kind != FaultNone {
		return c.memFault(f)
	}
	return ExitNone
}

func (c *CPU) load8(a uint64) (uint8, Exit) {
	e := &c.rtlb[a>>12&tlbMask]
	if off := a - e.base; off < pageSize {
		return e.page[off], ExitNone
	}
	var b [1]byte
	x := c.loadBytes(a, b[:])
	return b[0], x
}

func (c *CPU) load16(a uint64) (uint16, Exit) {
	e := &c.rtlb[a>>12&tlbMask]
	if off := a - e.base; off <= pageSize-2 {
		return binary.LittleEndian.Uint16(e.page[off : off+2]), ExitNone
	}
	var b [2]byte
	x := c.loadBytes(a, b[:])
	return binary.LittleEndian.Uint16(b[:]), x
}

func (c *CPU) load32(a uint64) (uint32, Exit) {
	e := &c.rtlb[a>>12&tlbMask]
	if off := a - e.base; off <= pageSize-4 {
		return binary.LittleEndian.Uint32(e.page[off : off+4]), ExitNone
	}
	var b [4]byte
	x := c.loadBytes(a, b[:])
	return binary.LittleEndian.Uint32(b[:]), x
}

func (c *CPU) load64(a uint64) (uint64, Exit) {
	e := &c.rtlb[a>>12&tlbMask]
	if off := a - e.base; off <= pageSize-8 {
		return binary.LittleEndian.Uint64(e.page[off : off+8]), ExitNone
	}
	if c.log != nil {
		return c.log.load64(c, a)
	}
	var b [8]byte
	x := c.loadBytes(a, b[:])
	return binary.LittleEndian.Uint64(b[:]), x
}

func (c *CPU) load128(a uint64) (lo, hi uint64, x Exit) {
	e := &c.rtlb[a>>12&tlbMask]
	if off := a - e.base; off <= pageSize-16 {
		b := e.page[off : off+16]
		return binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:]), ExitNone
	}
	var b [16]byte
	x = c.loadBytes(a, b[:])
	return binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:]), x
}

func (c *CPU) store8(a uint64, v uint8) Exit {
	e := &c.wtlb[a>>12&tlbMask]
	if off := a - e.base; off < pageSize {
		e.page[off] = v
		return ExitNone
	}
	return c.storeBytes(a, []byte{v})
}

func (c *CPU) store16(a uint64, v uint16) Exit {
	e := &c.wtlb[a>>12&tlbMask]
	if off := a - e.base; off <= pageSize-2 {
		binary.LittleEndian.PutUint16(e.page[off:off+2], v)
		return ExitNone
	}
	var b [2]byte
	binary.LittleEndian.PutUint16(b[:], v)
	return c.storeBytes(a, b[:])
}

func (c *CPU) store32(a uint64, v uint32) Exit {
	e := &c.wtlb[a>>12&tlbMask]
	if off := a - e.base; off <= pageSize-4 {
		binary.LittleEndian.PutUint32(e.page[off:off+4], v)
		return ExitNone
	}
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], v)
	return c.storeBytes(a, b[:])
}

func (c *CPU) store64(a uint64, v uint64) Exit {
	e := &c.wtlb[a>>12&tlbMask]
	if off := a - e.base; off <= pageSize-8 {
		binary.LittleEndian.PutUint64(e.page[off:off+8], v)
		return ExitNone
	}
	if c.log != nil {
		return c.log.store64(c, a, v)
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return c.storeBytes(a, b[:])
}

func (c *CPU) store128(a, lo, hi uint64) Exit {
	e := &c.wtlb[a>>12&tlbMask]
	if off := a - e.base; off <= pageSize-16 {
		b := e.page[off : off+16]
		binary.LittleEndian.PutUint64(b[:8], lo)
		binary.LittleEndian.PutUint64(b[8:], hi)
		return ExitNone
	}
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], lo)
	binary.LittleEndian.PutUint64(b[8:], hi)
	return c.storeBytes(a, b[:])
}
