package x86

// Binding of instructions to the cases of the run loop, fusion of comparisons
// with the branch behind them, and removal of flags nobody reads. All three work on
// ops; the instructions stay as they were decoded, for the handlers, which are
// all that Step uses.
//
// Which instruction has which case is a table, bindings, that isagen makes from
// the forms of the cases (internal/isagen, claims.go) and checks against isa/*.txt. What
// is not in it goes to its handler, and stands in internal/isagen/generic.txt.

// class is what chooses among the cases of a handler, besides where the operand lies.
type class struct {
	shape, size, vex bool
	by               selector
	count            count
}

// selector is a part of an instruction that chooses among the cases of a handler.
type selector uint8

const (
	byNothing   selector = iota
	byCondition          // of Jcc, CMOVcc, SETcc
	byGroup              // ModRM.reg
	bySource             // size of the source of MOVZX and MOVSX
	byOpcode             // last opcode byte
	byRegister           // the register in the opcode
	byW                  // REX.W or VEX.W
)

// count is where the count of a shift stands. Counts that are zero after masking
// change nothing at all, and those that shift everything out have flags of their
// own: both are left to the handler.
type count uint8

const (
	countImm count = iota + 1
	countOne       // it is 1, which the instruction does not hold
)

// place is where the operand lies that ModRM.rm names.
type place uint8

const (
	nowhere place = iota // where no case looks
	inRegister
	inHighByte // it, or the other register, is ah, ch, dh or bh
	inMemory   // without a segment or a 32-bit address
	inThread   // relative to FS, without a register
)

// Of bindKey.vex.
const (
	vex128 = 1 + iota
	vex256
)

// bindKey is what a case is found by. Fields that the class does not look at are 0.
type bindKey struct {
	class uint8
	place place
	shape uint8 // form of the row
	size  uint8
	vex   uint8
	value uint8 // of class.by
}

// binding is the case of an instruction.
type binding struct {
	kind  uint16
	swaps bool // the case has the destination in rm, the instruction in reg
}

// highByte reports whether byte register n of in is ah, ch, dh or bh.
func (in *Inst) highByte(n uint8) bool { return n&^3 == 4 && !in.rex() }

// place returns where the operands of in lie, which is of row r.
func (in *Inst) place(r *Row) place {
	mem := in.Flags&InstMem != 0
	switch {
	case r.bytes&byteReg != 0 && in.highByte(in.Reg), r.bytes&byteRM != 0 && !mem && in.highByte(in.RM):
		return inHighByte
	case !mem:
		return inRegister
	case in.Flags&InstAddr32 != 0:
		return nowhere
	case in.Seg == NoSeg:
		return inMemory
	case in.Seg == FS && in.Base == NoReg && in.Index == NoReg:
		return inThread
	}
	return nowhere
}

// value returns the part of in that by names.
func (in *Inst) value(by selector) uint8 {
	switch by {
	case byCondition:
		return in.Opc & 15
	case byGroup:
		return in.Reg & 7
	case bySource:
		return narrowSize(in)
	case byOpcode:
		return in.Opc
	case byRegister:
		return in.Reg
	case byW:
		return uint8(in.Flags & InstW / InstW)
	}
	return 0
}

// bindKey returns what the case of in is found by, which is of row r.
func (in *Inst) bindKey(r *Row) bindKey {
	c := &classes[r.class]
	k := bindKey{class: r.class, place: in.place(r), value: in.value(c.by)}
	if c.shape {
		k.shape = in.form
	}
	if c.size {
		k.size = in.Size
	}
	if c.vex && in.Flags&InstVEX != 0 {
		k.vex = vex128
		if in.Flags&InstL != 0 {
			k.vex = vex256
		}
	}
	return k
}

// boundSize is the size of bound, more than twice as many as there are bindings.
const (
	boundBits = 12
	boundSize = 1 << boundBits
)

// boundCase is the case that instructions with a key have.
type boundCase struct {
	bindKey
	binding
}

// boundTable has bindings by their keys, each in the first free place from that of its key on: each instruction that is decoded is looked up, and
// a map takes several times as long.
type boundTable [boundSize]struct {
	key uint64 // packed; 0: free
	binding
}

// bound is bindings as such a table. It is filled with the decoder's tables, which a process that decodes nothing does not need.
var bound boundTable

// fill takes in all of bindings.
func (t *boundTable) fill() {
	for i := range bindings {
		c := &bindings[i]
		e := &t[t.place(c.packed())]
		e.key, e.binding = c.packed(), c.binding
	}
}

// packed returns k as a number that is not 0.
func (k bindKey) packed() uint64 {
	return uint64(k.class)<<40 | uint64(k.place)<<32 | uint64(k.shape)<<24 | uint64(k.size)<<16 | uint64(k.vex)<<8 | uint64(k.value) | 1<<48
}

// place returns where key stands, or would stand.
func (t *boundTable) place(key uint64) uint64 {
	i := key * 0x9e3779b97f4a7c15 >> (64 - boundBits)
	for t[i].key != key && t[i].key != 0 {
		i = (i + 1) % boundSize
	}
	return i
}

// find returns the case with key k, if there is one.
func (t *boundTable) find(k bindKey) (binding, bool) {
	e := &t[t.place(k.packed())]
	return e.binding, e.key != 0
}

// beginsChain and isCompared say which kinds chains and fused begin with: few do.
var beginsChain, isCompared = func() (begins, compared [kindCount]bool) {
	for k := range chains {
		if k[0] < kindCount {
			begins[k[0]] = true
		}
	}
	for k := range fused {
		compared[k] = true
	}
	return begins, compared
}()

// bind returns the op of in: its kind is the case that the loop has for it, if any.
func bind(in *Inst) op {
	o := op{reg: in.Reg, rm: in.RM, vvvv: in.VVVV, base: in.Base, index: in.Index, scale: in.Scale, imm: in.Imm, disp: in.Disp}
	if in.Flags&InstEnd != 0 {
		o.flags = opEnd
	}
	r := in.row()
	if r.class == 0 || in.Flags&InstLock != 0 || in.Flags&instAMD16 != 0 && in.Size == 2 {
		return o
	}
	b, ok := bound.find(in.bindKey(r))
	if !ok || !in.countInRange(r) {
		return o
	}
	o.kind = b.kind
	if b.swaps {
		o.reg, o.rm = in.RM, in.Reg
	}
	if classes[r.class].count == countOne {
		o.imm = 1
	}
	return o
}

// countInRange reports whether a shift of row r has a count for which there are cases.
func (in *Inst) countInRange(r *Row) bool {
	n := uint(in.Imm) & countMask(in.Size)
	return classes[r.class].count != countImm || n != 0 && n < 8*uint(in.Size)
}

// kindFacts is what the decoder knows of a kind.
type kindFacts struct {
	noFlag uint16 // the variant that leaves the flags alone, or 0
	base   uint16 // the variant for a base register and a displacement alone, or 0
	leaves leaving
}

// leaving says how a case can leave its block in the middle.
type leaving uint8

const (
	leavesBefore leaving = 1 << iota // to the handler, before it has changed anything
	leavesAfter                      // by a branch, when it has done its work
)

// fuse joins comparisons with the conditional branches behind them, in place.
func fuse(ops []op, insts []decoded) []op {
	out := ops[:0]
	for i := 0; i < len(ops); i++ {
		o := ops[i]
		if i+1 < len(ops) && isCompared[o.kind] {
			if j, branch := &ops[i+1], &insts[i+1].Inst; j.exit != 0 && branch.isJcc() {
				cond := branch.Opc & 15
				if k := fused[o.kind][cond]; k != 0 {
					o.kind, o.cond, o.exit = k, cond, j.exit
					o.flags |= opFused
					i++
				}
			}
		}
		out = append(out, o)
	}
	return out
}

// dropDeadFlags replaces kinds whose flags are overwritten before anything
// can see them: a reader, the end of the block, or an instruction that may
// leave the block in the middle.
func dropDeadFlags(ops []op, insts []decoded) {
	live := uint64(flagsArith)
	for i := len(ops) - 1; i >= 0; i-- {
		o := &ops[i]
		k := &kinds[o.kind]
		r := insts[o.idx].row()
		w, rd := r.Writes, r.Reads
		if o.kind != kGeneric && insts[o.idx].shiftsBy() {
			w, rd = flagsArith, 0 // the count is not zero
		}
		if k.leaves&leavesAfter != 0 {
			live = flagsArith
		}
		if k.noFlag != 0 && (w|r.Undef)&live == 0 {
			o.kind = k.noFlag
			w, rd = 0, 0
		}
		live = live&^w | rd
		if kinds[o.kind].leaves&leavesBefore != 0 {
			live = flagsArith
		}
	}
}

// shiftsBy reports whether in is SHL, SHR or SAR, not a rotation, by a count it holds.
func (in *Inst) shiftsBy() bool { return classes[in.row().class].count != 0 && in.Reg&4 != 0 }

// specialise chooses the cases for operands without an index register, then
// chains: cases that execute several instructions from the first one on.
func specialise(ops []op) {
	for i := range ops {
		o := &ops[i]
		if k := kinds[o.kind].base; k != 0 && o.base < 16 && o.index >= 16 {
			o.kind = k
		}
	}
	for i := 0; i < len(ops); {
		at, n := ops[i].kind, 1
		for j := i + 1; j < len(ops) && beginsChain[ops[i].kind]; j++ {
			var ok bool
			if at, ok = chains[[2]uint16{at, ops[j].kind}]; !ok {
				break
			}
			if at < kindCount {
				ops[i].kind, n = at, j+1-i
			}
		}
		i += n
	}
}
