package differential

import (
	"fmt"
	"slices"
	"strings"

	"vplay/replay/x86"
)

// Cases with AVX-512: the fields of EVEX prefixes, and the registers.

// wideState are the bits of XCR0 for AVX-512 (SDM vol. 1, 13.1).
const wideState = 0xe0

// register chooses a register: 0 to 31 of the vector operands of EVEX rows, 0 to 7 of mask
// registers, mostly.
func (e *encoder) register(row *x86.Row, isVector bool) int {
	switch {
	case row.Attr("refuse"):
	case row.Encoding.EVEX && isVector:
		return e.r.IntN(32)
	case (row.Encoding.EVEX || row.File == "opmask") && slices.Contains(row.Operands, "k") && !e.one(30):
		return e.r.IntN(8)
	}
	return e.r.IntN(16)
}

// inRM returns the place of the operand that ModRM.rm names.
func inRM(row *x86.Row) int {
	for i, o := range row.Operands {
		if strings.Contains(o, "mmm") || o[0] == 'm' || o == "vm" || strings.HasPrefix(o, "rm") || strings.HasPrefix(o, "r32m") {
			return i
		}
	}
	if row.Encoding.Opcode == 0x11 && row.Encoding.Map == 1 {
		return 0 // VMOVSS and VMOVSD between registers
	}
	last := len(row.Operands) - 1
	if last >= 0 && row.Operands[last] == "imm8" {
		last--
	}
	return last
}

func isVectorOperand(o string) bool { return o[0] == 'x' || o[0] == 'y' || o[0] == 'z' }

// isVectorRM and isVectorReg report whether ModRM.rm and ModRM.reg name vector registers.
func isVectorRM(row *x86.Row) bool {
	i := inRM(row)
	return i >= 0 && isVectorOperand(row.Operands[i])
}

func isVectorReg(row *x86.Row) bool {
	switch i := inRM(row); {
	case len(row.Operands) == 0:
		return false
	case i == 0 && len(row.Operands) > 1:
		return isVectorOperand(row.Operands[len(row.Operands)-1]) || isVectorOperand(row.Operands[1])
	}
	return isVectorOperand(row.Operands[0])
}

// chooseEVEX chooses the mask, zeroing, broadcast or rounding, and the vector length: what
// the row allows, and seldom anything.
func (e *encoder) chooseEVEX(in *instruction) {
	r, row := e.r, in.row
	if e.one(40) {
		in.evex = x86.EVEX(r.IntN(128))
		return
	}
	length := r.IntN(3)
	switch {
	case row.Attr("l128"):
		length = 0
	case row.Attr("l256"):
		length = 1 + r.IntN(2)
	case row.Attr("l512"):
		length = 2
	}
	has := func(l ...string) bool {
		return slices.ContainsFunc(row.Attrs, func(a string) bool { return slices.Contains(l, a) })
	}
	f := x86.EVEX(0)
	if has("fv4", "fv8", "hv4") && in.mem && e.one(3) || has("er", "sae") && !in.mem && e.one(2) {
		f |= 16
		if has("er") && !in.mem {
			length = r.IntN(4)
		}
	}
	if has("e1", "e2", "e4", "e8") && !e.one(3) || has("needmask") {
		f |= x86.EVEX(1 + r.IntN(7))
		if !has("merge") && e.one(2) && !(in.mem && inRM(row) == 0) {
			f |= 8
		}
	}
	in.evex = f | x86.EVEX(length)<<5
}

// evexPrefix emits the prefix and the opcode.
func (e *encoder) evexPrefix(b []byte, in *instruction, rex, pp byte) []byte {
	high := func(n int) byte { return byte(max(n, 0) >> 4 & 1) }
	x := rex >> 1 & 1
	if !in.mem && in.rm >= 0 {
		x = high(in.rm)
	}
	v := high(in.vvvv)
	if in.vindex >= 0 {
		v = high(in.vindex)
	}
	enc := &in.row.Encoding
	p0 := (^(rex>>2&1)&1)<<7 | (^x&1)<<6 | (^(rex&1)&1)<<5 | (^high(in.reg)&1)<<4 | enc.Map
	p1 := rex>>3&1<<7 | byte(^in.vvvv&15)<<3 | 4 | pp
	f := byte(in.evex)
	p2 := f>>3&1<<7 | f>>5&3<<5 | f>>4&1<<4 | (^v&1)<<3 | f&7
	return append(b, 0x62, p0, p1, p2, enc.Opcode)
}

// wideRegisters fills what AVX-512 adds: for its own rows, and now and then for others, which must
// keep or clear it.
func (g *Generator) wideRegisters(in *Regs, row *x86.Row, ins *instruction, l lane) {
	isWide := row != nil && (row.Encoding.EVEX || row.File == "opmask")
	if !g.wide || !isWide && (row != nil && !usesVectors(row) || !g.one(8)) {
		return
	}
	r := g.r
	for i := range in.Wide.K {
		in.Wide.K[i] = []uint64{0, ^uint64(0), r.Uint64(), r.Uint64(), r.Uint64() & r.Uint64() & r.Uint64(), 1 << r.IntN(64)}[r.IntN(6)]
	}
	named := map[int]bool{}
	if isWide && ins != nil {
		named = map[int]bool{ins.reg: true, ins.rm: true, ins.vvvv: true, ins.vindex: true}
	}
	for n := range 32 {
		z := in.zmm(n)
		for i := range z {
			switch {
			case named[n]:
				z[i] = randQuad(l, r)
			case n >= 16 || i >= 4:
				z[i] = r.Uint64()
			}
		}
		if n < 16 && !named[n] && g.one(4) {
			clear(z[4:])
		}
		in.setZMM(n, z)
	}
	if isWide && ins != nil && ins.reg >= 0 && ins.rm >= 0 && g.one(3) { // equal, or nearly
		z, w := in.zmm(ins.rm), in.zmm(max(ins.vvvv, 0))
		for i := range z {
			if !g.one(3) {
				z[i] = w[i]
			}
		}
		in.setZMM(ins.rm, z)
	}
}

// disturbWide changes the registers of AVX-512 that are not in read.
func (g *Generator) disturbWide(to *Regs, read *x86.Uses) {
	for i := range to.Wide.K {
		if read.K>>i&1 == 0 {
			to.Wide.K[i] = g.r.Uint64()
		}
	}
	for n := range 32 {
		if read.V>>n&1 != 0 {
			continue
		}
		z := to.zmm(n)
		for i := range z {
			if n >= 16 || i >= 4 {
				z[i] = g.r.Uint64()
			}
		}
		to.setZMM(n, z)
	}
}

// wide compares the registers of AVX-512.
func (c *comparison) wide(k, p *Case, a, b *Outcome, e *x86.Effects) {
	for i := range a.Out.Wide.K {
		c.word(fmt.Sprintf("k%d", i), k.In.Wide.K[i], p.In.Wide.K[i], a.Out.Wide.K[i], b.Out.Wide.K[i], e.Write.K>>i&1 != 0)
	}
	for n := range 32 {
		x0, y0, x, y := k.In.zmm(n), p.In.zmm(n), a.Out.zmm(n), b.Out.zmm(n)
		for i := range x {
			if n >= 16 || i >= 4 {
				c.word(fmt.Sprintf("zmm%d", n), x0[i], y0[i], x[i], y[i], e.Write.V>>n&1 != 0)
			}
		}
	}
}
