//go:build linux && amd64

package jit

import (
	"fmt"

	"vplay/replay/x86"
)

// Windows: ranges of the host's address space in which generated code finds guest memory by the guest's address, without a check. The guest's 2^47
// bytes do not fit beside the host's own, but a program uses few parts of them: the 2^40 bytes around its code, around its stack and
// libraries. Each such part that it uses has a window of that size. A table has for each part what must be added to
// an address to come to its window; all parts that have none come to one window in which nothing is ever mapped. So whatever the address is, the
// access is one to a window, or faults.
//
// A page is mapped into its window when an access to it has faulted and the Bus allows it (x86.MappedBus), from
// the file that the guest's pages are in. It is taken out when the Bus flushes it. A page that the Bus wants to see accesses to is never there.

const (
	maxUser     = 1 << 47 // the guest's addresses end there
	windowShift = 40
	windowSize  = 1 << windowShift
	// windowGuard is how much beside a window belongs to it without ever being mapped: an address is that of
	// a base register's part, and what is added to that may lead out of it.
	windowGuard = 4 << 30
	maxWindows  = 4 // of an engine
	// maxBorders is how many borders of ranges of pages there may be in the windows of all engines: the kernel has 65,530 ranges for a
	// process (vm.max_map_count).
	maxBorders = 50_000
)

// window is the place of one part of the guest's addresses.
type window struct {
	part  uint8   // bits 40 to 47 of its addresses
	base  uintptr // the host's address of its first byte
	pages int     // that are mapped
}

// mapping is a page that is mapped.
type mapping struct {
	offset int64 // in the file
	stores bool
}

// windows are those of one part of the pool. They are kept when another engine gets that.
type windows struct {
	pool   *Pool
	id     uint64 // other than that of all other windows
	list   []window
	table  [x86.HostTableSize]uint64 // what is added to an address, by its bits 40 to 47
	mapped map[uint64]mapping        // by page number
	fd     int                       // of the file whose pages are mapped
	// borders is how many ends of ranges of pages there are.
	borders int64
	// refused says that the host does not let us: no range of addresses was free, or there are too many mappings.
	refused bool
}

// openWindows makes the windows of all engines, where the host can have any: else each access is checked.
func (p *Pool) openWindows() {
	if hasRORX() {
		p.dead, _ = reserve()
	}
	for i := range p.windows {
		p.windows[i].init(p, i)
	}
}

// init makes w those without a window.
func (w *windows) init(p *Pool, id int) {
	*w = windows{pool: p, id: uint64(id+1) * x86.HostTableSize, mapped: map[uint64]mapping{}}
	for i := range w.table {
		w.table[i] = uint64(p.dead) - uint64(i)<<windowShift
	}
}

// giveTo has c's code use w, and find the part that its stack pointer is in.
func (w *windows) giveTo(c *x86.CPU) {
	if id := w.id + uint64(len(w.list)); c.Host[wordWindows] != id {
		c.Host[wordWindows] = id
		c.HostTable = w.table
	}
	part := partOf(c.R[x86.RSP])
	c.Host[wordStackPart], c.Host[wordStackAdded] = uint64(part), 0
	if part < maxUser>>windowShift { // what the table has for others is no base that GS could have
		c.Host[wordStackAdded] = w.table[part]
	}
}

// partOf is the part that an address is in.
func partOf(a uint64) uint8 { return uint8(a >> windowShift) }

// has reports whether there is a window for address a.
func (w *windows) has(a uint64) bool {
	for i := range w.list {
		if w.list[i].part == partOf(a) && a < maxUser {
			return true
		}
	}
	return false
}

// open makes a window for address a, and reports whether it did.
func (w *windows) open(a uint64) bool {
	if a >= maxUser || w.refused || w.has(a) || len(w.list) == maxWindows {
		return false
	}
	base, err := reserve()
	if err != nil {
		w.refused = true
		return false
	}
	part := partOf(a)
	w.list = append(w.list, window{part: part, base: base})
	w.table[part] = uint64(base) - uint64(part)<<windowShift
	return true
}

// likely returns an address in the window that has most pages, or one that has none.
func (w *windows) likely() uint64 {
	most, part := 0, uint64(0xff)
	for i := range w.list {
		if x := &w.list[i]; x.pages > most {
			most, part = x.pages, uint64(x.part)
		}
	}
	return part << windowShift
}

// host returns the host's address for the guest's, in a window that there is.
func (w *windows) host(a uint64) uintptr { return uintptr(a + w.table[partOf(a)]) }

// guest returns the guest's address for the host's, if that is in a window.
func (w *windows) guest(host uint64) (a uint64, ok bool) {
	for i := range w.list {
		if off := host - uint64(w.list[i].base); off < windowSize {
			return uint64(w.list[i].part)<<windowShift + off, true
		}
	}
	return 0, false
}

// window returns the window for address a, which there is.
func (w *windows) window(a uint64) *window {
	i := 0
	for w.list[i].part != partOf(a) {
		i++
	}
	return &w.list[i]
}

// count adds to the borders there are, and returns how many all engines have.
func (w *windows) count(n int64) int64 {
	w.borders += n
	return w.pool.borders.Add(n)
}

// bordersIn returns how many borders there are from page number n-1 on, between two pages each, for so many pages.
func (w *windows) bordersIn(n uint64, pages int) (k int64) {
	a, isA := w.mapped[n-1]
	for m := n; m <= n+uint64(pages); m++ {
		b, isB := w.mapped[m]
		if isA != isB || isA && (a.stores != b.stores || a.offset+pageSize != b.offset) {
			k++
		}
		a, isA = b, isB
	}
	return k
}

// set maps pages in the window for address a, which is in one of them and has one, and reports whether it did. If it did not, nothing is mapped any more.
// What of m is in other parts is left out: they may have no window.
func (w *windows) set(a uint64, m x86.Mapping) bool {
	x := w.window(a)
	from := uint64(x.part) << windowShift
	if before := int64(from - m.Addr); before > 0 {
		m.Addr, m.Offset, m.Pages = from, m.Offset+before, m.Pages-int(before/pageSize)
	}
	m.Pages = min(m.Pages, int((from+windowSize-m.Addr)/pageSize))
	n := m.Addr / pageSize
	before := w.bordersIn(n, m.Pages)
	for i := range m.Pages {
		if _, was := w.mapped[n+uint64(i)]; !was {
			x.pages++
		}
		w.mapped[n+uint64(i)] = mapping{offset: m.Offset + int64(i)*pageSize, stores: m.Stores}
	}
	if w.count(w.bordersIn(n, m.Pages)-before) > maxBorders || mapPages(w.host(m.Addr), w.fd, &m) != nil {
		w.clear()
		w.refused = true
		return false
	}
	return true
}

// drop takes the page at a out.
func (w *windows) drop(a uint64) {
	n := a / pageSize
	if _, ok := w.mapped[n]; !ok {
		return
	}
	if unmap(w.host(a), pageSize) != nil {
		w.clear()
		return
	}
	w.dropped(n)
}

// dropped forgets page number n, which is mapped no more.
func (w *windows) dropped(n uint64) {
	before := w.bordersIn(n, 1)
	delete(w.mapped, n)
	w.count(w.bordersIn(n, 1) - before)
	w.window(n*pageSize).pages--
}

// dropRange takes the pages of [start, end) out.
func (w *windows) dropRange(start, end uint64) {
	for i := range w.list {
		from := uint64(w.list[i].part) << windowShift
		first, last := uint64(1), uint64(0) // of the pages in this window
		for n := range w.mapped {
			if a := n * pageSize; a >= max(start, from) && a < min(end, from+windowSize) {
				if first > last {
					first, last = n, n
				}
				first, last = min(first, n), max(last, n)
			}
		}
		if first > last {
			continue
		}
		if unmap(w.host(first*pageSize), uintptr(last-first+1)*pageSize) != nil {
			w.clear()
			return
		}
		for n := range w.mapped {
			if n >= first && n <= last {
				w.dropped(n)
			}
		}
	}
}

// clear takes all pages out.
func (w *windows) clear() {
	if len(w.mapped) == 0 {
		return
	}
	w.count(-w.borders)
	clear(w.mapped)
	for i := range w.list {
		if x := &w.list[i]; x.pages != 0 {
			x.pages = 0
			if err := unmap(x.base, windowSize); err != nil {
				panic(fmt.Sprintf("jit: the kernel does not take guest memory out of a window: %v", err))
			}
		}
	}
}
