package x86

import "encoding/binary"

// Execution that tells of each instruction, for owners who observe a program. It is several
// times slower than the loop of run_gen.go, and executes the same handlers.

// TraceEngine executes every instruction by its handler, from decoded blocks. It calls Before in front of each, with
// a word of the owner's that is kept with the instruction as long as the code is the same, and is 0 at first. It calls After behind each
// where *Pending is set, and behind each that did not come to ExitNone, with what it came to, as CPU.AfterInst has it. The
// state is up to date in both. Instructions that Step
// executes, and all in states that engines do not know (CPU.runOn), are told by CPU.OnInst and CPU.AfterInst instead.
type TraceEngine struct {
	BlockEngine
	Before  func(c *CPU, in *Inst, tag *uint32)
	Pending *bool // not nil with After
	After   func(c *CPU, in *Inst, e Exit)
	// Units, where it is not nil, is told of most instructions by an engine that translates, instead of Before and After.
	Units UnitTracer
}

// UnitTracer is told of what is executed in units: instructions one behind the other, of which as many as are executed are the
// first ones. It is told of them behind their execution, before anything else is told of what comes then.
type UnitTracer interface {
	// Words says what a trace has of the instruction at pc, at most MaxWords. ok is false where that is not all, as
	// for a string instruction: it is in no unit.
	Words(pc uint64, in *Inst) (list []Word, ok bool)
	// Unit says what unit number id is from now on; its first instruction is at pc. Units with higher numbers are not any more.
	Unit(id int, pc uint64, in []Inst)
	// Ran says that the first n instructions of a unit were executed, with their words. before is how many had retired by then.
	Ran(id, n int, before uint64, words []uint64)
}

// MaxWords bounds the words of an instruction.
const MaxWords = 10

// Word is a number that a trace has of an instruction.
type Word struct {
	Reg  uint8 // a general register, or NoReg: the address of the memory operand
	Add  int32 // to a register
	Kind WordKind
	// Off and Size are of WordBefore and WordAfter: up to 8 bytes of a memory operand, from so many behind its beginning.
	Off, Size uint8
}

// WordKind says what a Word is.
type WordKind uint8

// The kinds of words.
const (
	WordAddress WordKind = iota // the address, or what is in the register
	WordNext                    // the address of what follows the instruction in memory
	WordBefore                  // what is in memory before the instruction is executed
	WordAfter                   // and behind it. No instruction that ends a unit has one
)

// Of returns the word of in, which c is about to execute: of WordAfter what there is before.
func (w Word) Of(c *CPU, in *Inst) uint64 {
	switch w.Kind {
	case WordNext:
		return c.RIP + uint64(in.Len)
	case WordBefore, WordAfter:
		return c.PeekWord(w.Address(c, in), w.Size)
	case WordAddress:
	}
	return w.Address(c, in)
}

// Address returns where the bytes are that the word is about.
func (w Word) Address(c *CPU, in *Inst) uint64 {
	if w.Reg == NoReg {
		return c.Address(in) + uint64(w.Off)
	}
	return c.R[w.Reg] + uint64(int64(w.Add)) + uint64(w.Off)
}

// HasExecuted reports whether an instruction that came to e, as CPU.AfterInst has it, has done anything; iter was c.RepIter before.
func (c *CPU) HasExecuted(e Exit, iter uint64) bool {
	switch e {
	case ExitNone, ExitSyscall, ExitRDTSC, ExitRDTSCP, ExitCPUID, ExitRandom:
		return true
	default:
		return c.RepIter != iter && c.RepIter != 0
	}
}

// WordReader reads the words of an instruction around its execution by the interpreter.
type WordReader struct {
	stored [MaxWords]uint64 // the addresses of those of kind WordAfter
}

// Before sets out to the words of in, at most MaxWords, which c is about to execute; those of kind WordAfter are what there is before.
func (r *WordReader) Before(c *CPU, in *Inst, words []Word, out []uint64) {
	for i, w := range words {
		if out[i] = w.Of(c, in); w.Kind == WordAfter {
			r.stored[i] = w.Address(c, in)
		}
	}
}

// After sets those of kind WordAfter, behind the instruction.
func (r *WordReader) After(c *CPU, words []Word, out []uint64) {
	for i, w := range words {
		if w.Kind == WordAfter {
			out[i] = c.PeekWord(r.stored[i], w.Size)
		}
	}
}

// PeekBus is a Bus that can be asked what is in memory without an access.
type PeekBus interface {
	Bus
	// Peek copies the readable prefix of the bytes at addr and returns how many there are. Nothing changes by that.
	Peek(addr uint64, b []byte) int
}

// PeekWord returns the n bytes at a, 8 at most, as a number; 0 where not all can be read without an access.
func (c *CPU) PeekWord(a uint64, n uint8) uint64 {
	var b [8]byte
	e := &c.rtlb[a>>12&tlbMask]
	if off := a - e.base; off <= pageSize-uint64(n) {
		copy(b[:n], e.page[off:])
	} else if p, ok := c.Bus.(PeekBus); !ok || p.Peek(a, b[:n]) < int(n) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

// UnitEngine is an engine that can tell of units.
type UnitEngine interface {
	Engine
	// Trace has the engine tell t of all that it executes from the next Reset on, as a TraceEngine does, and t.Units, which is not nil, of units.
	Trace(t *TraceEngine)
}

// Run implements Engine.
func (t *TraceEngine) Run(c *CPU, limit uint64) Exit {
	end := min(limit, c.Retired+runSlice)
	for {
		b := c.enter(c.RIP)
		if b == nil || b.n > limit-c.Retired {
			return c.execOne()
		}
		if e, goesOn := t.block(c, b); e != ExitNone || !goesOn || c.MustLook(end) {
			return e
		}
	}
}

// block executes b until it is left. It does what exec does, without what each instruction need not be asked.
func (t *TraceEngine) block(c *CPU, b *block) (e Exit, goesOn bool) {
	if b.tags == nil {
		b.tags = make([]uint32, len(b.insts))
	}
	for i := range b.insts {
		d := &b.insts[i]
		next := c.RIP + uint64(d.Len)
		if t.Before != nil {
			t.Before(c, &d.Inst, &b.tags[i])
		}
		if e = d.fn(c, &d.Inst); e != ExitNone {
			return t.leave(c, &d.Inst, e), false
		}
		if d.Flags&InstEnd == 0 {
			c.RIP = next
		}
		c.Retired++
		c.tell(ExitNone)
		if t.After != nil && *t.Pending {
			t.After(c, &d.Inst, ExitNone)
		}
		if c.stop != 0 || c.apart() || c.interrupt.Load() {
			if c.stop&stopOwner != 0 {
				e = ExitAttention
			}
			c.stop = 0
			return e, false
		}
		if c.RIP != next {
			break
		}
	}
	return ExitNone, true
}

// leave is block for an instruction whose handler has left with e.
func (t *TraceEngine) leave(c *CPU, in *Inst, e Exit) Exit {
	switch e {
	case ExitSyscall:
		c.Retired++
	case ExitFault:
		c.refineFault(in)
	default: // The owner executes it, or stops there.
	}
	c.tell(e)
	if t.After != nil {
		t.After(c, in, e)
	}
	return e
}

// SetBus has c access memory through b, which is another way to the memory that it had.
// Its translations are forgotten.
func (c *CPU) SetBus(b Bus) {
	c.Bus = b
	_, c.flushesCode = b.(CodeFlusher)
	if c.partialBus, c.mappedBus = nil, nil; c.log == nil {
		c.partialBus, _ = b.(PartialBus)
		c.mappedBus, _ = b.(MappedBus)
	}
	c.FlushTLB()
}
