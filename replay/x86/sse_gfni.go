package x86

import "math/bits"

// GFNI: bytes as elements of AES's field (SDM vol. 2, GF2P8MULB and the like),
// and SSE4A, AMD's bit field moves (APM vol. 4, EXTRQ, INSERTQ).

// gfMul multiplies two field elements.
func gfMul(a, b uint8) (r uint8) {
	for ; b != 0; b >>= 1 {
		if b&1 != 0 {
			r ^= a
		}
		a = gfDouble(a)
	}
	return r
}

// gfInverse has the inverse of every element, 0 for 0.
var gfInverse = func() (t [256]uint8) {
	for i := range t {
		x := uint8(i)
		r := uint8(1)
		for range 7 { // x^254 = x^2 * x^4 * ... * x^128
			x = gfMul(x, x)
			r = gfMul(r, x)
		}
		t[i] = r
	}
	t[0] = 0
	return t
}()

func laneGFMul(a, b uint64) (r uint64) {
	for i := 0; i < 64; i += 8 {
		r |= uint64(gfMul(uint8(a>>i), uint8(b>>i))) << i
	}
	return r
}

// affineByte multiplies a bit matrix, whose first row is the highest byte, by
// x and adds imm.
func affineByte(matrix uint64, x, imm uint8) (r uint8) {
	for i := range 8 {
		row := uint8(matrix >> (8 * (7 - i)))
		r |= uint8(bits.OnesCount8(row&x)&1) << i
	}
	return r ^ imm
}

func pairAffine(a, b pair, imm uint64) (r pair) {
	for i := range 16 {
		s := i & 7 * 8
		r[i>>3] |= uint64(affineByte(b[i>>3], uint8(a[i>>3]>>s), uint8(imm))) << s
	}
	return r
}

func pairAffineInv(a, b pair, imm uint64) pair {
	for i := range a {
		var q uint64
		for s := 0; s < 64; s += 8 {
			q |= uint64(gfInverse[uint8(a[i]>>s)]) << s
		}
		a[i] = q
	}
	return pairAffine(a, b, imm)
}

func gf2p8mulb(c *CPU, in *Inst) Exit {
	return c.vecOp(in, laneGFMul)
}

func gf2p8affineqb(c *CPU, in *Inst) Exit {
	return c.vecOp2(in, pairAffine)
}

func gf2p8affineinvqb(c *CPU, in *Inst) Exit {
	return c.vecOp2(in, pairAffineInv)
}

func vgf2p8mulb(c *CPU, in *Inst) Exit {
	return c.vexOp(in, laneGFMul)
}

func vgf2p8affineqb(c *CPU, in *Inst) Exit {
	return c.vexLanes(in, pairAffine, 0)
}

func vgf2p8affineinvqb(c *CPU, in *Inst) Exit {
	return c.vexLanes(in, pairAffineInv, 0)
}

// fieldMask is a mask of n bits, 64 for 0.
func fieldMask(n uint64) uint64 {
	if n &= 63; n == 0 {
		return ^uint64(0)
	}
	return 1<<n - 1
}

// setField writes the result of EXTRQ and INSERTQ; the high quadword is
// undefined and becomes zero on AMD family 19h.
func (c *CPU) setField(n uint8, q uint64) Exit {
	v := &c.V[n&15]
	v[0], v[1] = q, 0
	return ExitNone
}

func extract(q, length, index uint64) uint64 { return q >> (index & 63) & fieldMask(length) }

func insert(q, field, length, index uint64) uint64 {
	m, i := fieldMask(length), index&63
	return q&^(m<<i) | field&m<<i
}

// The immediate forms hold length and index in two bytes, the others in the
// source register: EXTRQ in its low, INSERTQ in its high quadword.
func extrqImm(c *CPU, in *Inst) Exit {
	if !c.amd() {
		return c.ud()
	}
	return c.setField(in.RM, extract(c.V[in.RM&15][0], in.Imm, in.Imm>>8))
}

func extrq(c *CPU, in *Inst) Exit {
	if !c.amd() {
		return c.ud()
	}
	s := c.V[in.RM&15][0]
	return c.setField(in.Reg, extract(c.V[in.Reg&15][0], s, s>>8))
}

func insertqImm(c *CPU, in *Inst) Exit {
	if !c.amd() {
		return c.ud()
	}
	return c.setField(in.Reg, insert(c.V[in.Reg&15][0], c.V[in.RM&15][0], in.Imm, in.Imm>>8))
}

func insertq(c *CPU, in *Inst) Exit {
	if !c.amd() {
		return c.ud()
	}
	s := c.V[in.RM&15]
	return c.setField(in.Reg, insert(c.V[in.Reg&15][0], s[0], s[1], s[1]>>8))
}

func movntss(c *CPU, in *Inst) Exit {
	if !c.amd() {
		return c.ud()
	}
	return movssStore(c, in)
}

func movntsd(c *CPU, in *Inst) Exit {
	if !c.amd() {
		return c.ud()
	}
	return movsdXStore(c, in)
}
