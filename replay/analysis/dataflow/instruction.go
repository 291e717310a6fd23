package dataflow

import (
	"strings"

	"vplay/replay/x86"
)

// What one instruction does with data: which parts of registers and which memory operands
// flow into which. It is made from the table of instructions (x86.Inst.Operands), which
// says what is read and written but not how wide, and not what flows where. Where it is not
// sure it errs towards more dependences: a register that may keep part of its value counts
// as read.

// Operand says how the address of a memory operand is found when the instruction is
// executed.
type Operand struct {
	How  uint8
	Size uint8 // bytes
}

// The ways to an address.
const (
	ByModRM  uint8 = iota
	ByPush         // below the stack pointer
	ByPop          // at the stack pointer
	ByRBP          // LEAVE
	BySource       // RSI of a string instruction
	ByTarget       // RDI
)

// At returns the address of the operand of in, which c is about to execute.
func (o Operand) At(c *x86.CPU, in *x86.Inst) uint64 { return o.Word().Of(c, in) }

// Word is how a trace has the operand's address.
func (o Operand) Word() x86.Word {
	switch o.How {
	case ByPush:
		return x86.Word{Reg: x86.RSP, Add: -int32(o.Size)}
	case ByPop:
		return x86.Word{Reg: x86.RSP}
	case ByRBP:
		return x86.Word{Reg: x86.RBP}
	case BySource:
		return x86.Word{Reg: x86.RSI}
	case ByTarget:
		return x86.Word{Reg: x86.RDI}
	}
	return x86.Word{Reg: x86.NoReg}
}

// Place is one end of a copy.
type Place struct {
	Kind uint8 // InMemory, InGeneral, InVector
	Reg  uint8 // or the index of the memory operand
	Off  uint8 // bytes: 1 for ah
}

// The kinds of places.
const (
	InMemory uint8 = iota
	InGeneral
	InVector
)

// Flow says that what is written (Dst, and the memory operand Store) is made of what is
// read (Src, and the memory operands Loads). Store and Loads are indexes of Instruction.Ops.
type Flow struct {
	Dst, Src RegSet
	Writes   []Piece // Dst
	Reads    []Piece // Src
	Store    int8    // -1: none
	Loads    []int8  // none for stores of registers

	// A copy moves N bytes from one place to another and changes none; what else is
	// written is zero, or with Extends the sign of the last byte.
	Copies   bool
	Extends  bool
	N        uint8
	To, From Place
}

// Instruction is what is known of an instruction at an address. It does not change.
type Instruction struct {
	PC      uint64
	Inst    x86.Inst
	Ops     []Operand
	Flows   []Flow
	Address RegSet  // what the addresses of Ops are made of
	Bases   []Piece // Address
	Touch   uint64  // summary of all flows' Dst
	Stores  bool    // it writes memory, or may
	Repeats bool    // a string instruction: from RSI, to RDI, perhaps with REP
	// Transfer is what it does to the flow of control.
	Transfer x86.Transfer
	// Indirect says that a branch or call goes to where a register or memory says, Decides what where it goes is made of: Src and Loads.
	Indirect bool
	Decides  Flow
	Spied    bool // what it accesses is not known from its operands, and must be watched
}

// Compile makes what is known of in, which is at pc. With frame the base register is the frame pointer: as
// with the stack pointer, its value is taken as known.
func Compile(pc uint64, in *x86.Inst, frame bool) *Instruction {
	k := &Instruction{PC: pc, Inst: *in}
	row := &x86.Rows()[in.Row]
	c := compiler{k: k, in: in, row: row, mnemonic: strings.TrimPrefix(row.Mnemonic, "V")}
	c.compile()
	c.control()
	if frame {
		rbp := BytesOf(x86.RBP, 0, 8)
		k.Address.Remove(rbp)
		if row.Mnemonic == "LEA" {
			k.Flows[0].Src.Remove(rbp)
		}
	}
	k.finish()
	return k
}

// finish takes out what is not followed, and sums up.
func (k *Instruction) finish() {
	k.Address.Remove(Ignored)
	k.Decides.Src.Remove(Ignored)
	k.Decides.Reads = k.Decides.Src.list()
	var all RegSet
	for i := range k.Flows {
		f := &k.Flows[i]
		f.Dst.Remove(Ignored)
		f.Src.Remove(Ignored)
		f.Writes, f.Reads = f.Dst.list(), f.Src.list()
		all.Add(f.Dst)
		k.Stores = k.Stores || f.Store >= 0
	}
	k.Touch, k.Bases = all.Summary(), k.Address.list()
	k.Stores = k.Stores || k.Spied
}

// MaxFrame is how far above the stack pointer RBP may point to be taken for the frame
// pointer, in bytes.
const MaxFrame = 1 << 16

// UsesFrame reports whether the operand of in, which c is about to execute, is addressed by
// RBP where that is the frame pointer, as far as one can see.
func UsesFrame(c *x86.CPU, in *x86.Inst) bool {
	return ByFrame(in) && IsFrame(c)
}

// ByFrame reports whether the operand of in is memory addressed by RBP.
func ByFrame(in *x86.Inst) bool { return in.Base == x86.RBP && in.Flags&x86.InstMem != 0 }

// IsFrame reports whether RBP is the frame pointer, as far as one can see.
func IsFrame(c *x86.CPU) bool { return c.R[x86.RBP]-c.R[x86.RSP] < MaxFrame }

// compiler makes an instruction.
type compiler struct {
	k        *Instruction
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
	f := Flow{Store: -1}
	for _, o := range c.in.Operands() {
		c.operand(&o, &f)
	}
	if c.isZero() {
		f.Src = RegSet{}
	}
	c.k.Flows = []Flow{f}
	if c.k.Spied {
		c.k.Flows[0].Src.Add(FlagsOf(c.row.Undef)) // they may stay what they were
		return
	}
	c.copy(&c.k.Flows[0])
	c.exchange()
	c.flags()
}

// flags makes a flow of its own for flags that may stay what they were: those that the manuals
// leave undefined, and all of a shift, whose count may be 0. What is computed does not depend on
// them.
func (c *compiler) flags() {
	if len(c.k.Flows) != 1 {
		return
	}
	may := FlagsOf(c.row.Undef)
	switch c.mnemonic {
	case "SHL", "SHR", "SAR", "ROL", "ROR", "SHLD", "SHRD":
		may = FlagsOf(AllFlags)
	}
	data, rest := c.k.Flows[0], c.k.Flows[0]
	if may = may.And(data.Dst); may.IsEmpty() {
		return
	}
	data.Dst.Remove(may)
	data.Src.Remove(may)
	rest.Dst, rest.Store, rest.Copies = may, -1, false
	rest.Src.Add(may)
	c.k.Flows = []Flow{data, rest}
}

// operand adds what o reads and writes to f.
func (c *compiler) operand(o *x86.Operand, f *Flow) {
	reads, writes := o.Dir&x86.DirRead != 0, o.Dir&x86.DirWrite != 0
	address := generals(o.Address.R)
	for n := range uint8(32) {
		if o.Address.V>>n&1 != 0 {
			address.Add(LanesOf(n, 0, 8))
		}
	}
	address.Add(Segments(o.Address.Parts))
	if o.Dir&x86.DirAddress != 0 {
		f.Src.Add(address) // LEA: the address is the value
	} else {
		c.k.Address.Add(address)
	}
	if o.Uses.Parts&x86.PartMemory != 0 {
		c.memory(o, f, reads, writes)
		return
	}
	read, written, kept := c.registers(o)
	if reads {
		f.Src.Add(read)
	}
	if writes {
		f.Dst.Add(written)
		f.Src.Add(kept)
	}
}

// memory adds a memory operand.
func (c *compiler) memory(o *x86.Operand, f *Flow, reads, writes bool) {
	size := c.size(o.Name)
	if o.Name == "mem" || size == 0 || c.in.Flags&x86.InstEVEX != 0 || strings.Contains(c.mnemonic, "MASKMOV") || c.isFarBit() {
		c.k.Spied = true
		return
	}
	i := int8(len(c.k.Ops))
	c.k.Ops = append(c.k.Ops, Operand{ByModRM, size})
	if reads {
		f.Loads = append(f.Loads, i)
	}
	if writes {
		f.Store = i
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
		if in.Flags&x86.InstEVEX != 0 || c.row.Operands[0] == "mm" { // the other registers of MMX are the same part
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
	if c.mnemonic != "XCHG" || len(c.row.Operands) != 2 || len(c.k.Flows) != 1 {
		return
	}
	if c.row.Encoding.PlusR && c.in.Reg == x86.RAX { // NOP, which leaves even the upper half
		c.k.Flows = nil
		return
	}
	if c.in.Flags&x86.InstRep != 0 { // F3 41 90 is an exchange on AMD and PAUSE on Intel
		return
	}
	ops := c.in.Operands()
	a, b := &ops[0], &ops[1]
	one, two := Flow{Store: -1, Copies: true, N: c.in.Size}, Flow{Store: -1, Copies: true, N: c.in.Size}
	_, bw, _ := c.registers(b)
	two.Dst, two.To = bw, c.general(b)
	if len(c.k.Ops) > 0 {
		one.Store, one.To, two.Loads = 0, Place{Kind: InMemory}, []int8{0}
	} else {
		_, one.Dst, _ = c.registers(a)
		one.To = c.general(a)
	}
	one.From, two.From = two.To, one.To
	c.k.Flows = []Flow{one, two}
}
