package replay

import (
	"vplay/checkpoint/abi"
	"vplay/replay/mem"
)

// The memory calls of a diversion, mmap and its like. They change the copy's own map, which
// goes with it. The other calls are in divert_sys.go.

// maxMapping bounds one mapping, and maxMapped what a diversion maps in all, in
// bytes: a call that allocates without end shall not take the debugger's memory.
const (
	maxMapping = 1 << 32
	maxMapped  = 1 << 32
)

// pages rounds n bytes up to whole pages; ok is false for nothing and for too much.
func pages(n uint64) (size uint64, ok bool) {
	return (n + mem.PageSize - 1) &^ (mem.PageSize - 1), n != 0 && n <= maxMapping
}

// inUser reports whether [a, a+n) is a page-aligned part of the user half.
func inUser(a, n uint64) bool {
	return a%mem.PageSize == 0 && a <= mem.MaxUser && n <= mem.MaxUser-a
}

// isFree reports whether nothing is mapped in [start, end).
func (d *Diversion) isFree(start, end uint64) bool {
	for r := range d.Mem.AddressMap().From(start) {
		return r.Start >= end
	}
	return true
}

// hasRoom reports whether n more bytes may be mapped.
func (d *Diversion) hasRoom(n uint64) bool {
	for _, r := range d.Mem.Regions() {
		if r.Name == diverted {
			n += r.End - r.Start
		}
	}
	return n <= maxMapped
}

// lowest is where mappings may begin, and stackRoom what is left free below a
// stack for it to grow.
const (
	lowest    = 1 << 32
	stackRoom = 64 << 20
)

// gap finds room for size bytes, as high as there is some; 0 when there is none.
func (d *Diversion) gap(size uint64) uint64 {
	end := uint64(mem.MaxUser - mem.PageSize)
	hasRoom := func(start uint64) bool { return end > start && end-start >= size+2*mem.PageSize }
	for r := range d.Mem.AddressMap().Backward() {
		if hasRoom(max(lowest, r.End)) {
			return end - size - mem.PageSize
		}
		if r.Start < lowest {
			return 0
		}
		if r.Start < mem.MaxUser {
			end = r.Start
			if r.GrowsDown && end > stackRoom {
				end -= stackRoom
			}
		}
	}
	if hasRoom(lowest) {
		return end - size - mem.PageSize
	}
	return 0
}

// Allocate maps size bytes of zeroed private memory, size rounded up to pages, with
// protection prot (mem.ProtRead and so on); ok is false when there is no room.
func (d *Diversion) Allocate(size uint64, prot uint8) (addr uint64, ok bool) {
	n, ok := pages(size)
	if !ok || !d.hasRoom(n) {
		return 0, false
	}
	a := d.gap(n)
	if a == 0 {
		return 0, false
	}
	d.anonymous(a, n, prot)
	return a, true
}

// Free unmaps what Allocate mapped at addr.
func (d *Diversion) Free(addr uint64) bool {
	r, ok := d.Mem.Find(addr)
	if ok && r.Start == addr && r.Object == 0 && r.Name == diverted {
		d.Mem.Unmap(r.Start, r.End)
		return true
	}
	return false
}

// diverted is the name of mappings that a diversion has made.
const diverted = "[vplay diversion]"

func (d *Diversion) anonymous(a, n uint64, prot uint8) {
	d.Mem.Map(mem.Region{Start: a, End: a + n, Prot: prot, Fresh: true, Name: diverted})
}

const protections = abi.PROT_READ | abi.PROT_WRITE | abi.PROT_EXEC

// sysMmap maps anonymous memory. There are no files.
func (d *Diversion) sysMmap(a [6]uint64) int64 {
	at, flags := a[0], a[3]
	n, ok := pages(a[1])
	switch {
	case a[1] == 0:
		return -int64(abi.EINVAL)
	case !ok || !d.hasRoom(n):
		return -int64(abi.ENOMEM)
	case flags&abi.MAP_ANONYMOUS == 0:
		return -int64(abi.ENODEV)
	case flags&(abi.MAP_FIXED|abi.MAP_FIXED_NOREPLACE) != 0:
		if !inUser(at, n) || at == 0 {
			return -int64(abi.EINVAL)
		}
		if flags&abi.MAP_FIXED == 0 && !d.isFree(at, at+n) {
			return -int64(abi.EEXIST)
		}
	case at != 0 && inUser(at, n) && d.isFree(at, at+n): // the hint
	default:
		if at = d.gap(n); at == 0 {
			return -int64(abi.ENOMEM)
		}
	}
	d.anonymous(at, n, uint8(a[2]&protections))
	return int64(at)
}

func (d *Diversion) sysMunmap(a [6]uint64) int64 {
	n, ok := pages(a[1])
	if !ok || !inUser(a[0], n) {
		return -int64(abi.EINVAL)
	}
	d.Mem.Unmap(a[0], a[0]+n)
	return 0
}

// isMapped reports whether all of [start, end) is mapped.
func (d *Diversion) isMapped(start, end uint64) bool {
	for start < end {
		r, ok := d.Mem.Find(start)
		if !ok {
			return false
		}
		start = r.End
	}
	return true
}

// mappedRange reads an address and a length, of mapped memory alone: whole pages n,
// or a negated errno.
func (d *Diversion) mappedRange(a [6]uint64) (n uint64, errno int64) {
	n, ok := pages(a[1])
	switch {
	case a[1] == 0:
		return 0, 0
	case !ok || !inUser(a[0], n):
		return 0, -int64(abi.EINVAL)
	case !d.isMapped(a[0], a[0]+n):
		return 0, -int64(abi.ENOMEM)
	}
	return n, 0
}

func (d *Diversion) sysMprotect(a [6]uint64) int64 {
	n, errno := d.mappedRange(a)
	if n == 0 {
		return errno
	}
	d.Mem.Protect(a[0], a[0]+n, uint8(a[2]&protections))
	return 0
}

// sysMremap grows, shrinks and moves a mapping.
func (d *Diversion) sysMremap(a [6]uint64) int64 {
	at, flags := a[0], a[3]
	was, ok1 := pages(a[1])
	now, ok2 := pages(a[2])
	if !ok1 || !ok2 || !inUser(at, was) || flags&^(abi.MREMAP_MAYMOVE|abi.MREMAP_FIXED) != 0 {
		return -int64(abi.EINVAL)
	}
	if !d.isMapped(at, at+was) {
		return -int64(abi.EFAULT)
	}
	if now > was && !d.hasRoom(now-was) {
		return -int64(abi.ENOMEM)
	}
	to := at
	switch {
	case flags&abi.MREMAP_FIXED != 0:
		to = a[4]
		if flags&abi.MREMAP_MAYMOVE == 0 || !inUser(to, now) || to == 0 || to < at+was && at < to+now {
			return -int64(abi.EINVAL)
		}
	case now <= was:
		if now < was {
			d.Mem.Unmap(at+now, at+was)
		}
		return int64(at)
	case inUser(at, now) && d.isFree(at+was, at+now):
	case flags&abi.MREMAP_MAYMOVE == 0:
		return -int64(abi.ENOMEM)
	default:
		if to = d.gap(now); to == 0 {
			return -int64(abi.ENOMEM)
		}
	}
	_ = d.Mem.Move(at, at+was, to, to+now) // nobody is asked
	return int64(to)
}

// sysMadvise drops pages where the advice is that; other advice changes nothing
// that a program could see.
func (d *Diversion) sysMadvise(a [6]uint64) int64 {
	n, errno := d.mappedRange(a)
	if n == 0 {
		return errno
	}
	if a[2] == abi.MADV_DONTNEED {
		d.Mem.Drop(a[0], a[0]+n)
	}
	return 0
}

// sysBrk moves the end of the heap. Where that is within its last page is not
// recorded, so the end of the page is taken. A program without a heap gets none:
// allocators then use mmap.
func (d *Diversion) sysBrk(a [6]uint64) int64 {
	var start, end uint64
	for _, r := range d.Mem.Regions() {
		if r.Name == "[heap]" {
			if start == 0 {
				start = r.Start
			}
			end = r.End
		}
	}
	if d.brk == 0 {
		d.brk = end
	}
	at := a[0]
	if start == 0 || at < start || at > end && !d.hasRoom(at-end) || at > start+maxMapping {
		return int64(d.brk)
	}
	to := (at + mem.PageSize - 1) &^ (mem.PageSize - 1)
	switch {
	case to > end && !d.isFree(end, to):
		return int64(d.brk)
	case to > end:
		d.Mem.Map(mem.Region{Start: end, End: to, Prot: mem.ProtRead | mem.ProtWrite, Fresh: true, Name: "[heap]"})
	case to < end && to > start:
		d.Mem.Unmap(to, end)
	}
	d.brk = at
	return int64(at)
}
