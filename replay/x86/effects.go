package x86

import "strings"

// What an instruction reads and writes, from the directions in isa/*.txt. They
// are proved against the CPU: tests/differential, TestDirections.

// Parts is a set of parts of the state other than registers and flags.
type Parts uint16

// The parts. A part that is read or written may be so in a piece.
const (
	PartMemory   Parts = 1 << iota
	PartMXCSR          // control and status
	PartX87            // control, status and tag words, stack top, pointers
	PartSelector       // selectors
	PartFSBase
	PartGSBase
)

// Uses is a set of places: bit n of R, V, K and X87 is general register n, vector register
// n, mask register n, and physical x87 register n (an MMX register, and its exponent).
type Uses struct {
	R     uint16
	V     uint32
	K     uint8 // mask registers
	X87   uint8
	Flags uint64 // RFLAGS bits
	Parts Parts
}

// Effects says what an instruction may read and write. Whatever it does not
// read has no influence on what it writes, and on whether it faults; but a
// register or flag that is written and not read may keep bits of its old value.
type Effects struct{ Read, Write Uses }

// field is where an instruction has the number of an operand's register.
type field uint8

const (
	fieldNone field = iota
	fieldReg
	fieldRM // or memory
	fieldVVVV
	fieldIs4
)

// operandFields returns where the operands of r stand: what may be memory in
// ModRM.rm, the others in ModRM.reg, VEX.vvvv and the immediate, in the order of
// the manual. Stores with VEX.vvvv have ModRM.reg last.
func operandFields(r *Row) []field {
	e := &r.Encoding
	fields := make([]field, len(r.Operands))
	var free []field
	if e.PlusR || e.ModRM && e.Digit < 0 && e.Second < 0 {
		free = append(free, fieldReg)
	}
	if e.VVVV {
		free = append(free, fieldVVVV)
	}
	memory := -1
	for i, o := range r.Operands {
		if mayBeMemory(o) {
			memory = i
			fields[i] = fieldRM
		}
	}
	store := memory == 0 || (e.VEX || e.EVEX) && e.Map == 1 && e.Opcode == 0x11 && e.Mod == ModReg // VMOVSS and VMOVSD between registers
	switch {
	case memory < 0 && store:
		free = []field{fieldRM, fieldVVVV, fieldReg}
	case memory < 0:
		free = append(free, fieldRM)
	case memory == 0 && e.VVVV:
		free = []field{fieldVVVV, fieldReg}
	case e.Imm == ImmIs4:
		free = append(free, fieldIs4)
	}
	for i, o := range r.Operands {
		if fields[i] == fieldNone && isRegister(o) && len(free) > 0 {
			fields[i], free = free[0], free[1:]
		}
	}
	return fields
}

// mayBeMemory reports whether operand o stands in ModRM.rm and may be memory.
func mayBeMemory(o string) bool {
	return strings.HasPrefix(o, "rm") || strings.HasPrefix(o, "r32m") || strings.Contains(o, "mmm") ||
		o[0] == 'm' && o != "mm" || o == "vm" || strings.HasPrefix(o, "km")
}

// isRegister reports whether o is a register that a field names.
func isRegister(o string) bool {
	return o == "mm" || o == "xmm" || o == "ymm" || o == "zmm" || o == "k" || o[0] == 'r' && !strings.HasPrefix(o, "rel") && o != "rax_v"
}

// fixedRegisters are operands that are a register always.
var fixedRegisters = map[string]uint16{"al": RAX, "ax": RAX, "eax": RAX, "rax": RAX, "rax_v": RAX, "cl": RCX}

// impliedRegisters are the general registers among the implied operands.
var impliedRegisters = map[string]uint16{
	"rax": RAX, "rcx": RCX, "rdx": RDX, "rbx": RBX, "rsp": RSP, "rbp": RBP, "rsi": RSI, "rdi": RDI, "r11": R11,
}

// impliedUses are the others.
var impliedUses = map[string]Uses{
	"xmm0": {V: 1}, "vec": {V: 0xffffffff, K: 0xff}, "st": {X87: 0xff}, "x87": {Parts: PartX87}, "mxcsr": {Parts: PartMXCSR},
	"flags": {Flags: ^uint64(0)}, "df": {Flags: FlagDF}, "nt": {Flags: FlagNT}, "mem": {Parts: PartMemory}, "seg": {Parts: PartSelector},
	"fsbase": {Parts: PartFSBase}, "gsbase": {Parts: PartGSBase},
}

func (u *Uses) add(v Uses) {
	u.R |= v.R
	u.V |= v.V
	u.K |= v.K
	u.X87 |= v.X87
	u.Flags |= v.Flags
	u.Parts |= v.Parts
}

// Operand is something that an instruction uses: an operand, something implied, or
// arithmetic flags.
type Operand struct {
	Name    string // as in the table, or "flags"
	Dir     Dir
	Uses    Uses // the operand itself
	Address Uses // what the address of a memory operand is made of
}

// Effects returns what in reads and writes: its operands in sum. Of instructions
// that are not emulated nothing is known: rows with the attribute "refuse" have
// no directions.
func (in *Inst) Effects() Effects {
	var f Effects
	for _, o := range in.Operands() {
		if o.Dir&DirRead != 0 {
			f.Read.add(o.Uses)
		}
		if o.Dir&DirWrite != 0 {
			f.Write.add(o.Uses)
		}
		f.Read.add(o.Address)
	}
	return f
}

// Operands returns what in uses: the operands in the order of the row, then what is
// implied, then the arithmetic flags it reads and those it writes.
func (in *Inst) Operands() []Operand {
	r := in.row()
	var l []Operand
	for i, at := range operandFields(r) {
		if i < len(r.Dirs) {
			l = append(l, in.operand(r.Operands[i], r.Dirs[i], at))
		}
	}
	l = in.masked(l)
	repeats := in.Flags&(InstRep|InstRepne) != 0
	for _, i := range r.Implied {
		o := Operand{Name: i.Name, Dir: i.Dir, Uses: impliedUses[i.Name]}
		if n, general := impliedRegisters[i.Name]; general {
			if n == RCX && r.Attr("rep") && !repeats {
				continue
			}
			o.Uses.R = 1 << n
		}
		if o.Uses.Parts&PartMemory != 0 {
			in.segment(&o)
		}
		l = append(l, o)
	}
	if r.Reads != 0 {
		l = append(l, Operand{Name: "flags", Dir: DirRead, Uses: Uses{Flags: r.Reads}})
	}
	if w := r.Writes | r.Undef; w != 0 {
		l = append(l, Operand{Name: "flags", Dir: DirWrite, Uses: Uses{Flags: w}})
	}
	return l
}

// operand returns operand name of direction d, which stands in field at.
func (in *Inst) operand(name string, d Dir, at field) Operand {
	o := Operand{Name: name, Dir: d}
	n, fixed := fixedRegisters[name]
	switch {
	case d == 0:
	case fixed:
		o.Uses.R = 1 << n
	case at == fieldRM && in.Flags&InstMem != 0 || strings.HasPrefix(name, "moffs"):
		in.memory(&o)
	case name == "sreg" || name == "fs" || name == "gs":
		o.Uses.Parts = PartSelector
	case at != fieldNone:
		o.Uses = in.register(name, in.fieldValue(at))
	}
	return o
}

// masked adds the mask register of an EVEX prefix to operands l, and has the destination
// read where elements of it may stay as they were.
func (in *Inst) masked(l []Operand) []Operand {
	k := in.EVEX.Mask()
	if k == 0 {
		return l
	}
	for i := range l {
		if l[i].Dir&DirWrite != 0 && !in.EVEX.zeroes() && l[i].Uses.K == 0 && l[i].Uses.Parts == 0 {
			l[i].Dir |= DirRead
		}
	}
	dir := DirRead
	if in.Flags&instVSIB != 0 {
		dir |= DirWrite
	}
	return append(l, Operand{Name: "k", Dir: dir, Uses: Uses{K: 1 << k}})
}

// fieldValue returns the number of a register.
func (in *Inst) fieldValue(at field) uint8 {
	switch at {
	case fieldReg:
		return in.Reg & 31
	case fieldVVVV:
		return in.VVVV & 31
	case fieldIs4:
		return uint8(in.Imm) >> 4 & 15
	}
	return in.RM & 31
}

// register returns register n, of the kind that an operand's name says.
func (in *Inst) register(name string, n uint8) Uses {
	switch {
	case name[0] == 'x' || name[0] == 'y' || name[0] == 'z':
		return Uses{V: 1 << n}
	case name[0] == 'k':
		return Uses{K: 1 << (n & 7)}
	case strings.HasPrefix(name, "mm"):
		return Uses{X87: 1 << (n & 7)}
	case (name == "r8" || name == "rm8") && in.highByte(n):
		return Uses{R: 1 << (n - 4)}
	}
	return Uses{R: 1 << n}
}

// memory makes o the memory operand.
func (in *Inst) memory(o *Operand) {
	if o.Dir&(DirRead|DirWrite) != 0 {
		o.Uses.Parts = PartMemory
	}
	in.segment(o)
	if in.Base < 16 {
		o.Address.R |= 1 << in.Base
	}
	switch {
	case in.Flags&instVSIB != 0:
		o.Address.V |= 1 << in.Index
	case in.Index >= 16:
	default:
		o.Address.R |= 1 << in.Index
	}
}

// segment adds the base of the segment that o is addressed by.
func (in *Inst) segment(o *Operand) {
	switch in.Seg {
	case FS:
		o.Address.Parts |= PartFSBase
	case GS:
		o.Address.Parts |= PartGSBase
	}
}
