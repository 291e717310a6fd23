package slice

import (
	"strings"

	"vplay/replay/x86"
)

// What one instruction does with data: which parts of registers and which memory operands
// flow into which. It is made from the table of instructions (x86.Inst.Operands), which
// says what is read and written but not how wide, and not what flows where. Where it is not
// sure it errs towards more dependences: a register that may keep part of its value counts
// as read.

// operand says how the address of a memory operand is found when the instruction is
// executed.
type operand struct {
	how  uint8
	size uint8 // bytes
}

// The ways to an address.
const (
	byModRM  uint8 = iota
	byPush         // below the stack pointer
	byPop          // at the stack pointer
	byRBP          // LEAVE
	bySource       // RSI of a string instruction
	byTarget       // RDI
)

// place is one end of a copy.
type place struct {
	kind uint8 // inMemory, inGeneral, inVector
	reg  uint8 // or the index of the memory operand
	off  uint8 // bytes: 1 for ah
}

const (
	inMemory uint8 = iota
	inGeneral
	inVector
)

// flow says that what is written (dst, and the memory operand store) is made of what is
// read (src, and the memory operands loads). load and store are indexes of instruction.ops.
type flow struct {
	dst, src regSet
	store    int8   // -1: none
	loads    []int8 // none for stores of registers

	// A copy moves n bytes from one place to another and changes none; what else is
	// written is zero, or with extends the sign of the last byte.
	copies   bool
	extends  bool
	n        uint8
	to, from place
}

// instruction is what is known of an instruction at an address.
type instruction struct {
	pc      uint64
	in      x86.Inst
	vertex  uint32
	ops     []operand
	flows   []flow
	address regSet // what the addresses of ops are made of
	touch   uint64 // summary of all flows' dst
	words   uint8  // that the trace has of it
	stores  bool
	retires bool // false for a REP that was left between two iterations
	repeats bool // a string instruction: words are RSI, RDI and the bytes done
	spied   bool // what it accessed was watched: the word is an index of stretch.spied
	class   class
	decides flow // of a branch or a call: where it goes is made of src and loads
}

// compile makes what is known of in. With frame the base register is the frame pointer: as
// with the stack pointer, its value is taken as known.
func compile(pc uint64, in *x86.Inst, frame bool) *instruction {
	k := &instruction{pc: pc, in: *in, retires: true}
	row := &x86.Rows()[in.Row]
	c := compiler{k: k, in: in, row: row, mnemonic: strings.TrimPrefix(row.Mnemonic, "V")}
	c.compile()
	c.asControl()
	if frame {
		rbp := bytesOf(x86.RBP, 0, 8)
		k.address.remove(rbp)
		if row.Mnemonic == "LEA" {
			k.flows[0].src.remove(rbp)
		}
	}
	k.finish()
	return k
}

// finish takes out what is not followed, and sums up.
func (k *instruction) finish() {
	k.address.remove(ignored)
	k.decides.src.remove(ignored)
	var all regSet
	for i := range k.flows {
		f := &k.flows[i]
		f.dst.remove(ignored)
		f.src.remove(ignored)
		all.add(f.dst)
		k.stores = k.stores || f.store >= 0
	}
	k.touch = all.summary()
	switch {
	case k.spied:
		k.words, k.stores = 1, true
	case k.repeats:
		k.words = 3
	default:
		k.words = uint8(len(k.ops))
	}
}

// usesFrame reports whether the operand of in is addressed by RBP, which most often is the
// frame pointer.
func usesFrame(in *x86.Inst) bool { return in.Base == x86.RBP && in.Flags&x86.InstMem != 0 }

// compiler makes an instruction.
type compiler struct {
	k        *instruction
	in       *x86.Inst
	row      *x86.Row
	mnemonic string // of VEX forms without the V
}

// compile makes the flows: one in which everything written depends on everything read, and
// for some common instructions what is more exact.
func (c *compiler) compile() {
	if c.string() || c.stack() {
		return
	}
	f := flow{store: -1}
	for _, o := range c.in.Operands() {
		c.operand(&o, &f)
	}
	if c.isZero() {
		f.src = regSet{}
	}
	c.k.flows = []flow{f}
	if c.k.spied {
		c.k.flows[0].src.add(flagsOf(c.row.Undef)) // they may stay what they were
		return
	}
	c.copy(&c.k.flows[0])
	c.exchange()
	c.flags()
}

// flags makes a flow of its own for flags that may stay what they were: those that the manuals
// leave undefined, and all of a shift, whose count may be 0. What is computed does not depend on
// them.
func (c *compiler) flags() {
	if len(c.k.flows) != 1 {
		return
	}
	may := flagsOf(c.row.Undef)
	switch c.mnemonic {
	case "SHL", "SHR", "SAR", "ROL", "ROR", "SHLD", "SHRD":
		may = flagsOf(allFlags)
	}
	data, rest := c.k.flows[0], c.k.flows[0]
	if may = may.and(data.dst); may.isEmpty() {
		return
	}
	data.dst.remove(may)
	data.src.remove(may)
	rest.dst, rest.store, rest.copies = may, -1, false
	rest.src.add(may)
	c.k.flows = []flow{data, rest}
}

// operand adds what o reads and writes to f.
func (c *compiler) operand(o *x86.Operand, f *flow) {
	reads, writes := o.Dir&x86.DirRead != 0, o.Dir&x86.DirWrite != 0
	address := generals(o.Address.R)
	for n := range uint8(32) {
		if o.Address.V>>n&1 != 0 {
			address.add(lanesOf(n, 0, 8))
		}
	}
	address.add(segments(o.Address.Parts))
	if o.Dir&x86.DirAddress != 0 {
		f.src.add(address) // LEA: the address is the value
	} else {
		c.k.address.add(address)
	}
	if o.Uses.Parts&x86.PartMemory != 0 {
		c.memory(o, f, reads, writes)
		return
	}
	read, written, kept := c.registers(o)
	if reads {
		f.src.add(read)
	}
	if writes {
		f.dst.add(written)
		f.src.add(kept)
	}
}

// memory adds a memory operand.
func (c *compiler) memory(o *x86.Operand, f *flow, reads, writes bool) {
	size := c.size(o.Name)
	if o.Name == "mem" || size == 0 || c.in.Flags&x86.InstEVEX != 0 || strings.Contains(c.mnemonic, "MASKMOV") || c.isFarBit() {
		c.k.spied = true
		return
	}
	i := int8(len(c.k.ops))
	c.k.ops = append(c.k.ops, operand{byModRM, size})
	if reads {
		f.loads = append(f.loads, i)
	}
	if writes {
		f.store = i
	}
}

// isFarBit reports whether the operand is a bit of memory whose number is in a register: it
// may be far from the address.
func (c *compiler) isFarBit() bool {
	return strings.HasPrefix(c.mnemonic, "BT") && len(c.mnemonic) <= 3 && len(c.row.Operands) > 1 && c.row.Operands[1] == "rv"
}

// isZero reports whether the instruction makes zero of any register.
func (c *compiler) isZero() bool {
	in := c.in
	if in.Flags&x86.InstMem != 0 {
		return false
	}
	switch c.mnemonic {
	case "XOR", "SUB":
		return in.Reg == in.RM && len(c.row.Operands) == 2 && c.row.Dirs[1]&x86.DirRead != 0
	case "PXOR", "XORPS", "XORPD", "PSUBB", "PSUBW", "PSUBD", "PSUBQ":
		if in.Flags&x86.InstEVEX != 0 {
			return false
		}
		if in.Flags&x86.InstVEX != 0 {
			return in.VVVV == in.RM
		}
		return in.Reg == in.RM
	}
	return false
}

// exchange makes two flows of XCHG.
func (c *compiler) exchange() {
	if c.mnemonic != "XCHG" || len(c.row.Operands) != 2 || len(c.k.flows) != 1 {
		return
	}
	if c.row.Encoding.PlusR && c.in.Reg == x86.RAX { // NOP, which leaves even the upper half
		c.k.flows = nil
		return
	}
	if c.in.Flags&x86.InstRep != 0 { // F3 41 90 is an exchange on AMD and PAUSE on Intel
		return
	}
	ops := c.in.Operands()
	a, b := &ops[0], &ops[1]
	one, two := flow{store: -1, copies: true, n: c.in.Size}, flow{store: -1, copies: true, n: c.in.Size}
	_, bw, _ := c.registers(b)
	two.dst, two.to = bw, c.general(b)
	if len(c.k.ops) > 0 {
		one.store, one.to, two.loads = 0, place{kind: inMemory}, []int8{0}
	} else {
		_, one.dst, _ = c.registers(a)
		one.to = c.general(a)
	}
	one.from, two.from = two.to, one.to
	c.k.flows = []flow{one, two}
}
