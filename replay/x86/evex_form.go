package x86

import (
	"strconv"
	"strings"
)

// What a row says of the fields of an EVEX prefix, and the check of an instruction
// against it (SDM vol. 2A, 2.7). The attributes of the rows:
//
//	fv4 fv8 hv4       a vector (half of one) from memory, or one element of 4 or 8 bytes
//	                  for all (EVEX.b)
//	vl half quarter eighth
//	                  the vector length from memory, or a part of it, with the size of the
//	                  elements in bytes behind it
//	mem1 to mem32     so many bytes of memory, whatever the vector length
//	dup               VMOVDDUP: 8 bytes at 128 bits, else the vector length
//	e1 e2 e4 e8       the size of the elements that a mask selects
//	merge             zeroing (EVEX.z) is not allowed
//	needmask          k0 is not allowed as the mask
//	er sae            EVEX.b between registers rounds, or suppresses exceptions
//	l128 l256 l512 lig
//	                  128 bits alone; 256 bits or more; 512 alone; L'L is ignored
//	eager             memory is accessed whatever the mask says

// EVEX holds the fields of an EVEX prefix that others do not have: the mask register in
// bits 0 to 2, then z, b, and L'L in bits 5 and 6.
type EVEX uint8

// Mask returns the number of the mask register, 0 for none.
func (e EVEX) Mask() uint8 { return uint8(e) & 7 }

// The fields z and b.
const (
	evexZ EVEX = 1 << 3
	evexB EVEX = 1 << 4
)

func (e EVEX) zeroes() bool     { return e&evexZ != 0 }
func (e EVEX) broadcasts() bool { return e&evexB != 0 }

// length is L'L: the vector length is 128 bits shifted left by it.
func (e EVEX) length() uint8 { return uint8(e) >> 5 & 3 }

// tuple says how the size of the memory operand follows from the vector length.
type tuple uint8

const (
	tupleFixed tuple = iota // bytes
	tupleFull
	tupleHalf
	tupleQuarter
	tupleEighth
	tupleDup
)

// evexForm is a row's part in decoding and executing an EVEX prefix.
type evexForm struct {
	tuple tuple
	bytes uint8 // of memory, of tupleFixed
	unit  uint8 // bytes of an element in memory, or of the source
	elem  uint8 // bytes of an element that a mask selects, 0 where there is no mask
	flags evexFlags

	reg, rm operandKind
}

type evexFlags uint16

const (
	evexBroadcast evexFlags = 1 << iota
	evexMerge
	evexNeedMask
	evexRound
	evexQuiet
	evexL128
	evexL256
	evexL512
	evexLIG
	evexEager
	evexVVVV
	evexMaskOperand
	evexStores // memory, or the register in ModRM.rm, is written
)

// operandKind is what a field of ModRM names.
type operandKind uint8

const (
	operandNone operandKind = iota
	operandVector
	operandGeneral
	operandMask
)

var evexWords = map[string]evexFlags{
	"merge": evexMerge, "needmask": evexNeedMask, "er": evexRound, "sae": evexQuiet,
	"l128": evexL128, "l256": evexL256, "l512": evexL512, "lig": evexLIG, "eager": evexEager,
}

var tupleWords = []struct {
	word  string
	tuple tuple
	flags evexFlags
}{
	{"fv", tupleFull, evexBroadcast}, {"hv", tupleHalf, evexBroadcast},
	{"vl", tupleFull, 0}, {"half", tupleHalf, 0}, {"quarter", tupleQuarter, 0}, {"eighth", tupleEighth, 0},
	{"mem", tupleFixed, 0}, {"dup", tupleDup, 0},
}

// evexFormOf reads the attributes of r.
func evexFormOf(r *Row) (f evexForm) {
	if !r.Encoding.EVEX || r.Attr("refuse") {
		return f
	}
	for _, a := range r.Attrs {
		f.flags |= evexWords[a]
		if n, ok := strings.CutPrefix(a, "e"); ok {
			if v, err := strconv.Atoi(n); err == nil {
				f.elem = uint8(v)
			}
		}
		for _, w := range tupleWords {
			if n, ok := strings.CutPrefix(a, w.word); ok {
				if v, err := strconv.Atoi(n); err == nil {
					f.tuple, f.unit, f.bytes = w.tuple, uint8(v), uint8(v)
					f.flags |= w.flags
				}
			}
		}
	}
	if f.unit == 0 || f.tuple == tupleFixed && f.unit > 8 || f.flags&evexEager != 0 && f.elem != 0 {
		f.unit = max(f.elem, 1)
	}
	for i, at := range operandFields(r) {
		switch at {
		case fieldReg:
			f.reg = operandKindOf(r.Operands[i])
		case fieldRM:
			f.rm = operandKindOf(r.Operands[i])
			if i == 0 && r.Dirs[i]&DirWrite != 0 && r.Encoding.Digit < 0 {
				f.flags |= evexStores
			}
		case fieldVVVV:
			f.flags |= evexVVVV
		case fieldNone, fieldIs4:
		}
	}
	if f.reg == operandMask || f.rm == operandMask {
		f.flags |= evexMaskOperand
	}
	return f
}

func operandKindOf(o string) operandKind {
	switch {
	case o == "k":
		return operandMask
	case o[0] == 'r':
		return operandGeneral
	}
	return operandVector
}

// memory returns the size of the memory operand in bytes.
func (f *evexForm) memory(e EVEX) int {
	if f.flags&evexBroadcast != 0 && e.broadcasts() {
		return int(f.bytes)
	}
	n := 16 << e.length()
	switch f.tuple {
	case tupleFixed:
		return int(f.bytes)
	case tupleHalf:
		return n / 2
	case tupleQuarter:
		return n / 4
	case tupleEighth:
		return n / 8
	case tupleDup:
		if n == 16 {
			return 8
		}
	case tupleFull:
	}
	return n
}

// evexFields checks the fields of the prefix that do not depend on ModRM.rm, and hands them
// to in.
func (d *decoder) evexFields(r *Row, in *Inst) {
	if r.evex.unit == 0 {
		return // refused, whatever the fields are
	}
	f, e := &r.evex, d.evex
	isMem := d.modrm < 0xc0
	if d.amd && !d.id.isZen5() { // ignores b and z where they mean nothing (family 25 model 17; not family 26 model 2)
		if e.broadcasts() && !isMem && f.flags&(evexRound|evexQuiet) == 0 && f.flags&evexBroadcast != 0 {
			e &^= evexB
		}
		if f.elem == 0 && f.flags&evexMaskOperand == 0 && !(isMem && f.flags&evexStores != 0) {
			e &^= evexZ
		}
	}
	rounds := e.broadcasts() && !isMem
	switch {
	case rounds && f.flags&(evexRound|evexQuiet) == 0,
		e.broadcasts() && isMem && f.flags&evexBroadcast == 0,
		e.zeroes() && (e.Mask() == 0 || f.flags&evexMerge != 0 || f.elem == 0 || isMem && f.flags&evexStores != 0),
		e.Mask() != 0 && f.elem == 0,
		e.Mask() == 0 && f.flags&evexNeedMask != 0:
		d.bad = true
	}
	if rounds && f.flags&evexLIG == 0 {
		d.badLength(f, 2) // L'L is the rounding mode, or ignored
	} else if !rounds {
		d.badLength(f, e.length())
	}
	if f.flags&evexVVVV == 0 && (d.vvvv != 0 || d.high&2 != 0 && r.flags&instVSIB == 0) {
		d.bad = true
	}
	d.disp8 = int64(f.memory(e))
	in.EVEX = e
}

// badLength marks the instruction where the form does not have vectors of 128 << l bits.
func (d *decoder) badLength(f *evexForm, l uint8) {
	switch {
	case l == 3:
		d.bad = true
	case f.flags&evexL128 != 0 && l != 0, f.flags&evexL256 != 0 && l == 0, f.flags&evexL512 != 0 && l != 2:
		d.bad = true
	}
}

// evexRegisters gives the registers their fifth bit.
func (d *decoder) evexRegisters(r *Row, in *Inst) {
	f := &r.evex
	if f.unit == 0 {
		return
	}
	switch f.reg {
	case operandVector:
		in.Reg |= d.high & 1 << 4
	case operandGeneral:
		d.bad = d.bad || d.high&1 != 0
	case operandMask:
		d.bad = d.bad || d.high&1 != 0 || in.Reg > 7
		in.Reg &= 7
	case operandNone:
	}
	in.VVVV |= d.high & 2 << 3
	if in.Flags&InstMem == 0 {
		if f.rm == operandVector {
			in.RM |= d.rex & 2 << 3
		}
		if f.rm == operandMask {
			in.RM &= 7
		}
		return
	}
	if r.flags&instVSIB != 0 {
		in.Index |= d.high & 2 << 3
		in.VVVV = 0
		if f.flags&evexStores == 0 && in.Reg == in.Index {
			d.bad = true
		}
	}
}

// opmaskRegisters: where a mask register is meant, Intel (family 6 model 85) and Zen 5 (family 26 model 2) take no VEX.R and no fourth
// bit of VEX.vvvv, which Zen 4 ignores. VEX.B all ignore.
func (d *decoder) opmaskRegisters(r *Row) {
	if r.File != "opmask" || d.amd && !d.id.isZen5() {
		return
	}
	for i, at := range operandFields(r) {
		if operandKindOf(r.Operands[i]) != operandMask {
			continue
		}
		if at == fieldReg && d.rex&4 != 0 || at == fieldVVVV && d.vvvv > 7 {
			d.bad = true
		}
	}
}

// lacksEVEX reports whether the CPU is one from before EVEX prefixes.
func (d *decoder) lacksEVEX() bool {
	if d.id == nil {
		return false
	}
	has, known := d.id.Has("AVX512F")
	return known && !has || d.id.lacksState()
}

// MemorySize returns the size in bytes of the memory operand of an instruction of r whose
// prefix is e: a displacement of 8 bits counts in units of it.
func (r *Row) MemorySize(e EVEX) int { return r.evex.memory(e) }

// VectorShape says what an EVEX form works on.
type VectorShape struct {
	Length   int // bytes of the vectors
	Element  int // bytes of an element that a mask selects, 0 where none does
	Elements int // that the mask has a bit for
	Memory   int // bytes of the memory operand
	// Zeroes says that elements that the mask leaves out become zero, Broadcasts that memory has one element for all.
	Zeroes, Broadcasts bool
}

// VectorShape returns the shape of an EVEX form that is emulated.
func (in *Inst) VectorShape() VectorShape {
	f := &tablesVar.rows[in.Row].evex
	s := VectorShape{Length: 8 * in.vectorLength(), Element: int(f.elem), Memory: f.memory(in.EVEX), Zeroes: in.EVEX.zeroes()}
	s.Elements = s.Length / int(max(f.unit, f.elem))
	if f.tuple == tupleFixed && f.elem != 0 {
		s.Elements = s.Length / int(f.elem)
	}
	s.Broadcasts = in.EVEX.broadcasts() && in.Flags&InstMem != 0 && f.flags&evexBroadcast != 0
	return s
}
