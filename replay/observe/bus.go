package observe

import (
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// Each access of the program's instructions, told with its bytes. The processor reads
// memory through pointers to pages that its Bus hands out; where the Bus hands out none, each
// access is a call of Read or Write, implied ones (stacks, string instructions, XSAVE)
// and those of page crossings included. So a Bus that never does sees them all. It has a
// cache of such pointers itself, so that an access costs a copy and no look at page tables.

const (
	pageSize = mem.PageSize
	busPages = 1024 // in the cache, of each kind; a power of two
)

// tracedBus is a Bus that notes accesses. It has no method of x86.PartialBus: the processor would access
// pages directly by that.
type tracedBus struct {
	x86.Bus
	loads, stores [busPages]tracedPage
	notes         *notes
}

// tracedPage is a page that may be accessed directly, at base.
type tracedPage struct {
	base uint64
	page *[pageSize]byte // nil: the entry is empty
}

// note is an access that an instruction has made; its bytes are in notes.bytes from at on,
// and in front of them, of a store, those that it replaced.
type note struct {
	addr, pc  uint64
	iteration uint64 // of a REP string instruction
	at, size  int32
	store     bool
}

// maxNotes is how many accesses of one instruction are noted before those of the iterations that are through are told: a
// REP string instruction makes as many as it likes.
const maxNotes = 4096

// notes are the accesses of the instruction that is executed.
type notes struct {
	list   []note
	bytes  []byte
	noData bool // bytes are not kept
	cpu    *x86.CPU
	full   func() // tells what is noted
}

// add notes an access of size bytes at a, whose bytes are n.bytes from at on.
func (n *notes) add(a uint64, at, size int, store bool) {
	c := n.cpu
	c.NoteAccess()
	n.list = append(n.list, note{a, c.RIP, c.RepIter, int32(at), int32(size), store})
}

// makeRoom is called before an access is noted.
func (n *notes) makeRoom() {
	if k := len(n.list); k >= maxNotes && n.list[k-1].iteration < n.cpu.RepIter {
		n.full()
	}
}

// drop forgets the accesses of the iteration that has faulted; of another instruction, all. It is executed again, or has not been.
func (n *notes) drop() {
	k := len(n.list)
	for k > 0 && n.list[k-1].iteration >= n.cpu.RepIter {
		k--
	}
	n.list = n.list[:k]
}

// Translate implements x86.Bus: code is executed as ever, nothing else is handed out.
func (b *tracedBus) Translate(a uint64, k x86.Access) (*[4096]byte, bool) {
	p, fast := b.Bus.Translate(a, k)
	return p, fast && k == x86.Exec
}

// FlushesCode implements x86.CodeFlusher, as the machine's own Bus does.
func (b *tracedBus) FlushesCode() {}

// page returns the page of the n bytes at a if it may be accessed directly, and the offset in it.
func (b *tracedBus) page(l *[busPages]tracedPage, a uint64, n int, k x86.Access) (page *[pageSize]byte, off uint64) {
	off = a % pageSize
	base := a - off
	if off+uint64(n) > pageSize {
		return nil, off
	}
	e := &l[a/pageSize%busPages]
	if e.base == base && e.page != nil {
		return e.page, off
	}
	p, fast := b.Bus.Translate(base, k)
	if !fast {
		return nil, off
	}
	if r := &b.loads[a/pageSize%busPages]; k == x86.Store && r.base == base {
		r.page = p // copy on write may have replaced it
	}
	*e = tracedPage{base, p}
	return p, off
}

// Read implements x86.Bus.
func (b *tracedBus) Read(a uint64, p []byte) x86.Fault {
	if page, off := b.page(&b.loads, a, len(p), x86.Load); page != nil {
		copyBytes(p, page[off:])
	} else if f := b.Bus.Read(a, p); f.Kind != x86.FaultNone {
		return f
	}
	n := b.notes
	n.makeRoom()
	n.add(a, len(n.bytes), len(p), false)
	if !n.noData {
		n.bytes = append(n.bytes, p...)
	}
	return x86.Fault{}
}

// copyBytes copies as many bytes as p has, which b has as well. Most are words: they need no call.
func copyBytes(p, b []byte) {
	switch len(p) {
	case 8:
		*(*[8]byte)(p) = [8]byte(b)
	case 4:
		*(*[4]byte)(p) = [4]byte(b)
	case 1:
		p[0] = b[0]
	default:
		copy(p, b)
	}
}

// Write implements x86.Bus.
func (b *tracedBus) Write(a uint64, p []byte) x86.Fault {
	n := b.notes
	n.makeRoom()
	at := len(n.bytes)
	page, off := b.page(&b.stores, a, len(p), x86.Store)
	switch {
	case page != nil:
		if !n.noData {
			n.bytes = append(append(n.bytes, page[off:off+uint64(len(p))]...), p...)
		}
		copyBytes(page[off:off+uint64(len(p))], p)
	case n.noData:
		if f := b.Bus.Write(a, p); f.Kind != x86.FaultNone {
			return f
		}
	default:
		old := make([]byte, len(p))
		b.peek(a, old)
		if f := b.Bus.Write(a, p); f.Kind != x86.FaultNone {
			return f
		}
		n.bytes = append(append(n.bytes, old...), p...)
	}
	n.add(a, at, len(p), true)
	return x86.Fault{}
}

// peek reads what a store is about to replace; what is not known there reads as zero.
func (b *tracedBus) peek(a uint64, old []byte) {
	if b.Bus.Probe(a, len(old), x86.Load).Kind == x86.FaultNone {
		b.Bus.Read(a, old)
	}
}

// flush forgets what may be accessed directly.
func (b *tracedBus) flush(a uint64, all bool) {
	if all {
		clear(b.loads[:])
		clear(b.stores[:])
		return
	}
	b.loads[a/pageSize%busPages].page, b.stores[a/pageSize%busPages].page = nil, nil
}

// take forgets the accesses that were noted.
func (n *notes) take() { n.list, n.bytes = n.list[:0], n.bytes[:0] }

// access makes a what note i says.
func (n *notes) access(i int, a *Access) {
	x := &n.list[i]
	a.PC, a.Addr, a.Size, a.Store = x.pc, x.addr, int(x.size), x.store
	if n.noData {
		return
	}
	b := n.bytes[x.at:]
	if a.Old = nil; x.store {
		a.Old, b = b[:x.size:x.size], b[x.size:]
	}
	a.Data = b[:x.size:x.size]
}
