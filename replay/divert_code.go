package replay

import (
	"fmt"

	"vplay/replay/mem"
	"vplay/replay/x86"
)

// Debug code in a diversion: a program of the debugger's user, linked for addresses that the
// process does not use, that runs as if it were part of the process. Its memory is not the
// diversion's, so it stays when that is renewed or thrown away. It reads all memory of the process
// and calls its functions, but stores to nothing but its own memory.
//
// Which of both runs is told by where the code is: neither may execute the other's pages. A call
// from one to the other, and the return, is thus a fault, upon which the sides are
// changed. Each has a processor of its own, with its protections, its decoded code, and its fs base, by which C libraries find
// their own variables; the other registers go with the call. Calls by pointers and callbacks need nothing else.

// DebugCode is such a program.
type DebugCode struct {
	// Mem is its memory, all of which lies from Start to End, page-aligned, where the process
	// has nothing at any time.
	Mem        *mem.Space
	Start, End uint64
	// Syscall answers a system call of its own: what RAX becomes. A stop ends the run.
	Syscall func(nr int64, args [6]uint64) (result int64, stop *DiversionStop)
	// Crossed, when set, is called when the process's code begins to run instead of it (own is false), and
	// when it goes on.
	Crossed func(own bool) error

	process, own *x86.CPU // the processors of both sides; Diversion.CPU is that which runs
}

// SetCode makes c the diversion's debug code. Its memory is used by this diversion alone from then on. Diversion.CPU
// is another one while the debug code runs.
func (d *Diversion) SetCode(c *DebugCode) {
	d.code = c
	b := codeBus{bus{d.Mem}, bus{c.Mem}, c, false}
	c.process = d.CPU
	c.process.SetBus(b)
	b.isOwn = true
	c.own = x86.New(b, d.s.cpu)
	c.Mem.OnFlush = d.Mem.OnFlush
}

// processors returns those that the diversion has.
func (d *Diversion) processors() []*x86.CPU {
	if d.code != nil {
		return []*x86.CPU{d.code.process, d.code.own}
	}
	return []*x86.CPU{d.CPU}
}

// RunCode makes the debug code the side that runs, with the registers of st, whose fs base is its own.
func (d *Diversion) RunCode(st *x86.State) {
	d.CPU = d.code.own
	d.CPU.State = *st
}

// RunProcess makes the process the side that runs. Registers stay, but for the fs base, which becomes
// the process's.
func (d *Diversion) RunProcess() {
	if d.code.runs(d) {
		d.change()
	}
}

// IsCode reports whether it is the debug code that runs.
func (d *Diversion) IsCode() bool { return d.code.runs(d) }

// runs reports whether the debug code runs; a nil one does not.
func (c *DebugCode) runs(d *Diversion) bool { return c != nil && d.CPU == c.own }

// has reports whether an address is the debug code's.
func (c *DebugCode) has(a uint64) bool { return a >= c.Start && a < c.End }

// change has the other side run.
func (d *Diversion) change() {
	from, to := d.CPU, d.code.own
	if from == to {
		to = d.code.process
	}
	fs := to.FSBase
	to.State = from.State
	to.FSBase = fs
	d.CPU = to
}

// crosses reports whether a fault is a call, or a return, to the side that does not run.
func (d *Diversion) crosses(f x86.Fault) bool {
	c := d.code
	return c != nil && f.Access == x86.Exec && f.Kind == x86.FaultProtection && c.has(f.Addr) != c.runs(d) &&
		d.memory(f.Addr).Probe(f.Addr, 1, mem.Exec).Kind != mem.FaultProtection
}

// cross changes sides.
func (d *Diversion) cross() error {
	d.change()
	if d.code.Crossed != nil {
		return d.code.Crossed(d.code.runs(d))
	}
	return nil
}

// memory returns the memory that an address is in.
func (d *Diversion) memory(a uint64) *mem.Space {
	if d.code != nil && d.code.has(a) {
		return d.code.Mem
	}
	return d.Mem
}

// codeBus is the bus of one side of a diversion with debug code.
type codeBus struct {
	process, own bus
	c            *DebugCode
	isOwn        bool // of the debug code's processor
}

// side returns the memory that an address is in, and whether the side's code may access it so.
func (b codeBus) side(a uint64, k x86.Access) (s bus, ok bool) {
	isOwn := b.c.has(a)
	s = b.process
	if isOwn {
		s = b.own
	}
	switch k {
	case x86.Exec:
		return s, isOwn == b.isOwn
	case x86.Store:
		return s, isOwn || !b.isOwn
	default:
		return s, true
	}
}

// refused is the fault of an access that the side has but the code may not make.
func refused(s bus, a uint64, n int, k x86.Access) x86.Fault {
	if f := s.Probe(a, n, k); f.Kind != x86.FaultNone {
		return f
	}
	return x86.Fault{Kind: x86.FaultProtection, Access: k, Addr: a}
}

func (b codeBus) Translate(a uint64, k x86.Access) (*[4096]byte, bool) {
	s, ok := b.side(a, k)
	if !ok {
		return nil, false
	}
	return s.Translate(a, k)
}

func (b codeBus) Read(a uint64, p []byte) x86.Fault {
	s, _ := b.side(a, x86.Load)
	return s.Read(a, p)
}

func (b codeBus) Write(a uint64, p []byte) x86.Fault {
	s, ok := b.side(a, x86.Store)
	if !ok {
		return refused(s, a, len(p), x86.Store)
	}
	return s.Write(a, p)
}

func (b codeBus) Probe(a uint64, n int, k x86.Access) x86.Fault {
	s, ok := b.side(a, k)
	if !ok {
		return refused(s, a, n, k)
	}
	return s.Probe(a, n, k)
}

func (b codeBus) Fetch(a uint64, p []byte) (int, x86.Fault) {
	s, ok := b.side(a, x86.Exec)
	if !ok {
		return 0, refused(s, a, 1, x86.Exec)
	}
	return s.Fetch(a, p)
}

func (b codeBus) CodeID(a uint64) uint64 {
	s, ok := b.side(a, x86.Exec)
	if !ok {
		return 0
	}
	return s.CodeID(a)
}

// FlushesCode: both spaces tell of stores to code by OnFlush.
func (b codeBus) FlushesCode() {}

// PartialPage is that of the side; what may not be stored to has none.
func (b codeBus) PartialPage(a uint64, k x86.Access) x86.PartialPage {
	s, ok := b.side(a, k)
	if !ok {
		return x86.PartialPage{}
	}
	return s.PartialPage(a, k)
}

// CountPartial adds accesses to the process's partial pages: the debug code's own are whole.
func (b codeBus) CountPartial(n uint64) { b.process.CountPartial(n) }

// StoreError says that debug code has stored to memory of the process.
type StoreError struct {
	RIP, Addr uint64
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("debug code may not write to the program's memory, and does so at %#x", e.Addr)
}
