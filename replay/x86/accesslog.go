package x86

import "encoding/binary"

// Accesses to memory, for owners who want to know each of them with its bytes. The loop of run_gen.go accesses memory by the
// translation caches; while a CPU has an AccessLog these stay empty, so that each access comes to the functions of this file: implied
// ones (stacks, string instructions, XSAVE) and those of page crossings included. The log has caches of its own, so that an access costs
// a copy and no look at page tables.

const (
	logPages = 1024 // in the caches of an AccessLog, of each kind; a power of two
	logMask  = logPages - 1
	// maxLogged is how many accesses of one instruction are noted before those of the iterations that are through are told: a
	// REP string instruction makes as many as it likes.
	maxLogged = 4096
	// inlineBytes is how many bytes of an access are in its LoggedAccess.
	inlineBytes = 8
)

// AccessLog has each access to memory told that instructions make, behind the instruction. What one that faults has done is
// not told, but for the iterations of a REP string instruction that have been executed: it has done nothing.
type AccessLog struct {
	// NoData says that the bytes of accesses are not wanted.
	NoData bool
	// Tell is called behind each instruction that has accessed memory, with the state as CPU.AfterInst has it. What it is given is valid
	// until it returns.
	Tell func(accesses []LoggedAccess)

	list          []LoggedAccess // the first n are those of the instruction under way
	n             int
	bytes         []byte // of accesses of more than inlineBytes: what a store replaced, and what was loaded or stored
	loads, stores [logPages]tlbEntry
}

// LoggedAccess is an access that an instruction has made, or an iteration of a REP string instruction.
type LoggedAccess struct {
	PC, Addr  uint64 // of the instruction, and of the first byte
	Iteration uint64 // CPU.RepIter
	Size      uint32 // bytes
	at        uint32 // in AccessLog.bytes
	Store     bool
	old, data [inlineBytes]byte
}

// Bytes returns the bytes that x, which Tell was given, has loaded or stored, and those that a store has replaced; nil
// where they are not wanted. They are valid as long as x is.
func (l *AccessLog) Bytes(x *LoggedAccess) (data, old []byte) {
	switch n := x.Size; {
	case l.NoData:
	case n <= inlineBytes:
		data = x.data[:n:n]
		if x.Store {
			old = x.old[:n:n]
		}
	case x.Store:
		b := l.bytes[x.at:]
		data, old = b[n:2*n:2*n], b[:n:n]
	default:
		data = l.bytes[x.at : x.at+n : x.at+n]
	}
	return data, old
}

// LogAccesses has l told of accesses from now on; nil of none. The engine must be one that executes as the CPU itself does
// (BlockEngine, TraceEngine, RunEngine).
func (c *CPU) LogAccesses(l *AccessLog) {
	c.log = l
	c.SetBus(c.Bus)
}

// executed tells what the instruction has accessed that came to e, and forgets it.
func (l *AccessLog) executed(c *CPU, e Exit) {
	if e == ExitFault {
		for l.n > 0 && l.list[l.n-1].Iteration >= c.RepIter {
			l.n--
		}
	}
	l.tell()
}

func (l *AccessLog) tell() {
	if n := l.n; n > 0 {
		l.Tell(l.list[:n])
	}
	l.n, l.bytes = 0, l.bytes[:0]
}

// makeRoom is called before an access is noted.
func (l *AccessLog) makeRoom(c *CPU) {
	if l.n >= maxLogged && l.list[l.n-1].Iteration < c.RepIter {
		l.tell()
	}
}

// next returns the place of the next access, which has its bytes yet to come.
func (l *AccessLog) next(c *CPU, a uint64, n int, store bool) *LoggedAccess {
	c.stop |= stopTell
	if l.n == len(l.list) {
		l.list = append(l.list, LoggedAccess{})
	}
	x := &l.list[l.n]
	l.n++
	x.PC, x.Addr, x.Iteration, x.Size, x.Store = c.RIP, a, c.RepIter, uint32(n), store
	return x
}

// load is loadBytes.
func (l *AccessLog) load(c *CPU, a uint64, b []byte) Exit {
	l.makeRoom(c)
	off := a & (pageSize - 1)
	if page := l.page(c, &l.loads, a, len(b), Load); page != nil {
		copyBytes(b, page[off:])
	} else if e := c.busRead(a, b); e != ExitNone {
		return e
	}
	l.keep(l.next(c, a, len(b), false), nil, b)
	return ExitNone
}

// load64 is load for the most frequent size.
func (l *AccessLog) load64(c *CPU, a uint64) (uint64, Exit) {
	off := a & (pageSize - 1)
	e := &l.loads[a>>12&logMask]
	if e.base != a-off || off > pageSize-8 {
		var b [8]byte
		x := l.load(c, a, b[:])
		return binary.LittleEndian.Uint64(b[:]), x
	}
	v := binary.LittleEndian.Uint64(e.page[off : off+8])
	l.makeRoom(c)
	binary.LittleEndian.PutUint64(l.next(c, a, 8, false).data[:], v)
	return v, ExitNone
}

// store64 is store for the most frequent size.
func (l *AccessLog) store64(c *CPU, a, v uint64) Exit {
	off := a & (pageSize - 1)
	e := &l.stores[a>>12&logMask]
	if e.base != a-off || off > pageSize-8 {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], v)
		return l.store(c, a, b[:])
	}
	to := e.page[off : off+8]
	l.makeRoom(c)
	x := l.next(c, a, 8, true)
	x.old = [8]byte(to)
	binary.LittleEndian.PutUint64(x.data[:], v)
	binary.LittleEndian.PutUint64(to, v)
	return ExitNone
}

// store is storeBytes.
func (l *AccessLog) store(c *CPU, a uint64, b []byte) Exit {
	l.makeRoom(c)
	page := l.page(c, &l.stores, a, len(b), Store)
	if page == nil {
		return l.storeSlow(c, a, b)
	}
	to := page[a&(pageSize-1):][:len(b)]
	l.keep(l.next(c, a, len(b), true), to, b)
	copyBytes(to, b)
	return ExitNone
}

// storeSlow is store through the Bus. What is not known there is zero.
func (l *AccessLog) storeSlow(c *CPU, a uint64, b []byte) Exit {
	old := make([]byte, len(b))
	if !l.NoData && c.Bus.Probe(a, len(b), Load).Kind == FaultNone {
		c.Bus.Read(a, old)
	}
	if e := c.busWrite(a, b); e != ExitNone {
		return e
	}
	l.keep(l.next(c, a, len(b), true), old, b)
	return ExitNone
}

// keep keeps the bytes b of x, which is the last access, and those that a store has replaced.
func (l *AccessLog) keep(x *LoggedAccess, old, b []byte) {
	l.keepBytes(x, old, b)
	if n := len(b); l.n > 1 && (n == 16 || n == 2) {
		l.join(&l.list[l.n-2], x)
	}
}

// join makes one of two accesses if the operand of 32 or 10 bytes is one that handlers access in two parts.
func (l *AccessLog) join(a, b *LoggedAccess) {
	isOne := a.Size == 16 && b.Size == 16 || a.Size == 8 && b.Size == 2
	if !isOne || a.Addr+uint64(a.Size) != b.Addr || a.Store != b.Store || a.Iteration != b.Iteration {
		return
	}
	low, lowOld := l.Bytes(a)
	high, highOld := l.Bytes(b)
	a.at, a.Size = uint32(len(l.bytes)), a.Size+b.Size
	for _, part := range [][]byte{lowOld, highOld, low, high} {
		l.bytes = append(l.bytes, part...)
	}
	l.n--
}

func (l *AccessLog) keepBytes(x *LoggedAccess, old, b []byte) {
	switch {
	case l.NoData:
	case len(b) <= inlineBytes:
		copyBytes(x.old[:len(old)], old)
		copyBytes(x.data[:len(b)], b)
	default:
		x.at = uint32(len(l.bytes))
		l.bytes = append(append(l.bytes, old...), b...)
	}
}

// page returns the page of the n bytes at a, by one of l's caches, if they may be accessed directly.
func (l *AccessLog) page(c *CPU, t *[logPages]tlbEntry, a uint64, n int, k Access) *[pageSize]byte {
	base := a &^ (pageSize - 1)
	if a-base+uint64(n) > pageSize {
		return nil
	}
	e := &t[a>>12&logMask]
	if e.base == base {
		return e.page
	}
	if !canonical(a) {
		return nil
	}
	p, fast := c.Bus.Translate(base, k)
	if p == nil || !fast {
		return nil
	}
	// The store translation may have replaced the page (copy on write).
	if r := &l.loads[a>>12&logMask]; k == Store && r.base == base {
		r.page = p
	}
	*e = tlbEntry{base, p}
	return p
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

// flush forgets all translations.
func (l *AccessLog) flush() {
	if l != nil {
		for i := range l.loads {
			l.flushAt(uint64(i))
		}
	}
}

// flushPage forgets those of the page that holds a.
func (l *AccessLog) flushPage(a uint64) {
	if l != nil {
		l.flushAt(a >> 12 & logMask)
	}
}

func (l *AccessLog) flushAt(i uint64) {
	empty := tlbEntry{base: emptyBase(i)}
	l.loads[i], l.stores[i] = empty, empty
}
