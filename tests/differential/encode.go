package differential

import (
	"slices"
	"strings"

	"vplay/replay/x86"
)

// An encoder turns a table row into bytes. It chooses whatever the row leaves
// open: prefixes, registers, addressing form, immediates; and it chooses the
// registers that make a memory operand land where the generator wants it.

// instruction is what the encoder made, as far as the generator needs it to
// fill in operands.
type instruction struct {
	row   *x86.Row
	bytes []byte
	// Operand size of integer forms in bytes, as far as prefixes say.
	size int
	reg  int // register of ModRM.reg or of the opcode, -1 if none
	rm   int // register of ModRM.rm, -1 if memory or none
	vvvv int
	// Memory operand: base and index are -1 if absent.
	mem         bool
	ripRelative bool
	absolute    bool
	base, index int
	vindex      int // vector register of indexes, -1 if none
	scale       uint
	disp        int64
	dispAt      int // where the 32-bit displacement stands, for RIP-relative and absolute
	seg         byte
	addr32      bool
	lock        bool
	rep         byte
	evex        x86.EVEX
	unit        int // of a displacement of 8 bits, if not 0
	imm         uint64
	immAt       int // where the immediate stands, 0 if none
}

type encoder struct {
	r      *random
	vendor x86.Vendor
}

func (e *encoder) one(n int) bool { return e.r.IntN(n) == 0 }

// encode makes an instruction of row.
func (e *encoder) encode(row *x86.Row) *instruction {
	in := &instruction{row: row, reg: -1, rm: -1, vvvv: -1, base: -1, index: -1, vindex: -1, size: 4}
	enc := &row.Encoding
	rex, op16 := e.chooseWidth(in)
	isEVEX := enc.EVEX && !row.Attr("refuse")
	modrm, sib, dispLen := e.chooseOperands(in, &rex)
	if isEVEX {
		e.chooseEVEX(in)
		if dispLen == 1 {
			in.unit = row.MemorySize(in.evex)
		}
	}
	b := e.prefixes(in, op16)
	if isVEX(enc) {
		b = e.vex(b, in, rex)
	} else {
		b = e.legacy(b, in, rex)
	}
	if e.hasModRM(row) {
		b = append(b, modrm)
		if in.mem && modrm&7 == 4 && modrm < 0xc0 {
			b = append(b, sib)
		}
		if in.mem {
			in.dispAt = len(b)
			b = appendLE(b, uint64(in.disp), dispLen)
			if in.unit != 0 {
				in.disp *= int64(in.unit)
			}
		}
	}
	in.bytes = b
	if !row.Attr("amdimm") || e.vendor == x86.VendorAMD {
		e.immediate(in, op16)
	}
	return in
}

// hasModRM says whether instructions of the row have a ModRM byte.
func (e *encoder) hasModRM(row *x86.Row) bool {
	return row.Encoding.ModRM || row.Attr("intelmodrm") && e.vendor != x86.VendorAMD
}

// chooseWidth decides REX.W and the operand-size prefix.
func (e *encoder) chooseWidth(in *instruction) (rex byte, op16 bool) {
	enc := &in.row.Encoding
	if enc.Prefix == x86.PrefixAny && !isVEX(enc) && e.one(4) {
		op16 = true
		in.size = 2
	}
	switch {
	case enc.W == 1, enc.W < 0 && e.one(3):
		rex |= 8
		in.size = 8
	}
	return rex, op16
}

// chooseOperands decides ModRM, SIB and displacement length, and the REX bits
// (or their VEX equivalents) that belong to them.
func (e *encoder) chooseOperands(in *instruction, rex *byte) (modrm, sib byte, dispLen int) {
	enc := &in.row.Encoding
	if isVEX(enc) {
		in.vvvv = 0
		if enc.VVVV {
			in.vvvv = e.register(in.row, enc.VVVV)
		}
	}
	if enc.PlusR {
		in.reg = e.r.IntN(16)
		*rex |= byte(in.reg >> 3)
	}
	if !e.hasModRM(in.row) {
		return 0, 0, 0
	}
	if enc.Second >= 0 {
		modrm = byte(enc.Second)
		if enc.PlusI {
			modrm = modrm&^7 | byte(e.r.IntN(8))
			in.rm = int(modrm & 7)
		}
		return modrm, 0, 0
	}
	if enc.Digit >= 0 {
		modrm = byte(enc.Digit) << 3
		if e.one(8) {
			*rex |= 4 // ignored
		}
	} else {
		in.reg = e.register(in.row, isVectorReg(in.row))
		if slices.Index(in.row.Operands, "sreg") == 0 && !e.one(8) { // not CS, which cannot be loaded, nor 6 and 7, which are none
			in.reg = in.reg&8 | []int{x86.ES, x86.SS, x86.DS, x86.FS, x86.GS}[e.r.IntN(5)]
		}
		modrm = byte(in.reg&7) << 3
		*rex |= byte(in.reg>>3&1) << 2
	}
	if enc.Mod == x86.ModReg || enc.Mod == x86.ModAny && e.one(2) {
		in.rm = e.register(in.row, isVectorRM(in.row))
		*rex |= byte(in.rm >> 3 & 1)
		return modrm | 0xc0 | byte(in.rm&7), 0, 0
	}
	if in.row.Attr("vsib") {
		m, s, n := e.vectorMemory(in, rex)
		return modrm | m, s, n
	}
	m, s, n := e.memory(in, rex)
	return modrm | m, s, n
}

// vectorMemory chooses a base, a vector of indexes and a displacement. The
// three vector registers of a gather must differ; seldom they do not.
func (e *encoder) vectorMemory(in *instruction, rex *byte) (modrm, sib byte, dispLen int) {
	in.mem = true
	in.vindex = e.register(in.row, true)
	for !e.one(16) && (in.vindex == in.reg || in.row.Encoding.VVVV && (in.vvvv == in.reg || in.vvvv == in.vindex)) {
		in.vindex = e.register(in.row, true)
		if in.row.Encoding.VVVV {
			in.vvvv = e.register(in.row, true)
		}
	}
	in.base = e.r.IntN(16)
	in.scale = uint(e.r.IntN(4))
	mod := byte(e.r.IntN(3))
	if mod == 0 && in.base&7 == 5 {
		mod = 1
	}
	dispLen = []int{0, 1, 4}[mod]
	if mod != 0 {
		in.disp = int64(int8(e.r.Uint32()))
	}
	*rex |= byte(in.base>>3) | byte(in.vindex>>3&1)<<1
	return mod<<6 | 4, byte(in.scale<<6) | byte(in.vindex&7)<<3 | byte(in.base&7), dispLen
}

// memory chooses an addressing form; the displacement is final except for
// RIP-relative and absolute forms, which the generator aims.
func (e *encoder) memory(in *instruction, rex *byte) (modrm, sib byte, dispLen int) {
	in.mem = true
	switch e.r.IntN(12) {
	case 0:
		in.ripRelative = true
		return 5, 0, 4
	case 1: // SIB without base and index
		in.absolute = true
		return 4, 0x25, 4
	}
	mod := byte(e.r.IntN(3))
	dispLen = []int{0, 1, 4}[mod]
	switch mod {
	case 1:
		in.disp = int64(int8(e.r.Uint32()))
	case 2:
		in.disp = int64(int32(e.r.Uint32()))
		if e.one(2) {
			in.disp >>= 20
		}
	}
	in.base = e.r.IntN(16)
	useSIB := in.base&7 == 4 || e.one(3)
	if mod == 0 && in.base&7 == 5 {
		mod, dispLen = 1, 1 // [rbp] and [r13] need a displacement
	}
	*rex |= byte(in.base >> 3)
	if !useSIB {
		return mod<<6 | byte(in.base&7), 0, dispLen
	}
	index := e.r.IntN(16)
	in.scale = uint(e.r.IntN(4))
	if index != 4 {
		in.index = index
	}
	*rex |= byte(index>>3) << 1
	return mod<<6 | 4, byte(in.scale<<6) | byte(index&7)<<3 | byte(in.base&7), dispLen
}

// prefixes emits legacy prefixes: those the row demands, those that mean
// something, and sometimes those that should not.
func (e *encoder) prefixes(in *instruction, op16 bool) []byte {
	var p []byte
	enc := &in.row.Encoding
	if in.mem || usesStringMemory(in.row) {
		switch e.r.IntN(8) {
		case 0:
			in.seg = []byte{0x64, 0x65}[e.r.IntN(2)]
		case 1:
			in.seg = []byte{0x26, 0x2e, 0x36, 0x3e}[e.r.IntN(4)]
		}
		if in.seg != 0 {
			p = append(p, in.seg)
		}
		if e.one(8) {
			in.addr32 = true
			p = append(p, 0x67)
		}
	}
	if op16 {
		p = append(p, 0x66)
	}
	if !isVEX(enc) {
		p = e.mandatory(p, in)
	}
	if in.row.Attr("lock") && in.mem && e.one(3) || !isVEX(enc) && e.one(300) {
		in.lock = true
		p = append(p, 0xf0)
	}
	for i := len(p) - 1; i > 0; i-- {
		j := e.r.IntN(i + 1)
		p[i], p[j] = p[j], p[i]
	}
	return p
}

// mandatory appends the F2, F3, 66 that select the row, or, where they have
// their ordinary meaning, sometimes a repeat prefix.
func (e *encoder) mandatory(p []byte, in *instruction) []byte {
	switch in.row.Encoding.Prefix {
	case x86.PrefixNP:
	case x86.Prefix66:
		return append(p, 0x66)
	case x86.PrefixF2:
		in.rep = 0xf2
	case x86.PrefixF3:
		in.rep = 0xf3
	case x86.PrefixAny:
		n := 24
		if usesStringMemory(in.row) {
			n = 3
		}
		switch e.r.IntN(n) {
		case 0:
			in.rep = 0xf2
		case 1:
			in.rep = 0xf3
		}
	}
	if in.rep != 0 {
		p = append(p, in.rep)
	}
	return p
}

// legacy emits REX, escape bytes and opcode.
func (e *encoder) legacy(b []byte, in *instruction, rex byte) []byte {
	enc := &in.row.Encoding
	if rex != 0 || e.one(8) {
		b = append(b, 0x40|rex)
	}
	switch enc.Map {
	case 1:
		b = append(b, 0x0f)
	case 2:
		b = append(b, 0x0f, 0x38)
	case 3:
		b = append(b, 0x0f, 0x3a)
	}
	op := enc.Opcode
	if enc.PlusR {
		op += byte(in.reg & 7)
	}
	return append(b, op)
}

// isVEX says whether the row is encoded with VEX, or with EVEX or XOP, which are
// like it.
func isVEX(enc *x86.Encoding) bool { return enc.VEX || enc.EVEX || enc.XOP }

// vex emits the VEX prefix, two bytes long where that is possible, or the EVEX or
// XOP prefix, and the opcode.
func (e *encoder) vex(b []byte, in *instruction, rex byte) []byte {
	enc := &in.row.Encoding
	l := byte(0)
	if enc.L == 1 || enc.L < 0 && e.one(2) {
		l = 4
	}
	pp := map[x86.Prefix]byte{x86.PrefixNP: 0, x86.Prefix66: 1, x86.PrefixF3: 2, x86.PrefixF2: 3}[enc.Prefix]
	tail := byte(^in.vvvv&15)<<3 | l | pp
	switch {
	case enc.EVEX && !in.row.Attr("refuse"):
		return e.evexPrefix(b, in, rex, pp)
	case enc.EVEX:
		return append(b, 0x62, (^rex&7)<<5|0x10|enc.Map, rex>>3<<7|tail|4, l<<3|8, enc.Opcode)
	case enc.XOP:
		return append(b, 0x8f, (^rex&7)<<5|(enc.Map+8), rex>>3<<7|tail, enc.Opcode)
	}
	if enc.Map == 1 && rex&^4 == 0 && e.one(2) {
		b = append(b, 0xc5, (^rex>>2&1)<<7|tail)
	} else {
		b = append(b, 0xc4, (^rex&7)<<5|enc.Map, rex>>3<<7|tail)
	}
	return append(b, enc.Opcode)
}

// immediate appends a biased random immediate.
func (e *encoder) immediate(in *instruction, op16 bool) {
	n := 0
	second := 0
	switch in.row.Encoding.Imm {
	case x86.ImmNone:
		return
	case x86.ImmB, x86.ImmIs4:
		n = 1
	case x86.ImmW:
		n = 2
	case x86.ImmD:
		n = 4
	case x86.ImmZ:
		n = 4
		if op16 && in.size != 8 && (e.vendor == x86.VendorAMD || !isRelative(in.row)) {
			n = 2 // Intel ignores the prefix before branches
		}
	case x86.ImmV:
		n = in.size
	case x86.ImmWB:
		n, second = 2, 1
	case x86.ImmMoffs:
		n = 8
		if in.addr32 {
			n = 4
		}
	}
	in.immAt = len(in.bytes)
	in.imm = randInt(e.r)
	in.bytes = appendLE(in.bytes, in.imm, n)
	if second != 0 {
		in.bytes = append(in.bytes, byte(e.r.IntN(40)))
	}
}

func appendLE(b []byte, v uint64, n int) []byte {
	for range n {
		b = append(b, byte(v))
		v >>= 8
	}
	return b
}

// usesStringMemory says whether the row addresses memory by rsi or rdi.
func usesStringMemory(row *x86.Row) bool {
	for _, p := range []string{"MOVS", "STOS", "LODS", "SCAS", "CMPS", "INS", "OUTS"} {
		rest, ok := strings.CutPrefix(row.Mnemonic, p)
		if ok && len(rest) <= 1 && row.Encoding.Map == 0 {
			return true
		}
	}
	return false
}

// isRelative says whether the row is a relative branch of 32 bits.
func isRelative(row *x86.Row) bool {
	return len(row.Operands) == 1 && strings.HasPrefix(row.Operands[0], "rel")
}
