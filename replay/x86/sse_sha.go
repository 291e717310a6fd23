package x86

import "math/bits"

// SHA-1 and SHA-256 rounds and message schedules (FIPS 180-4; SDM vol. 2). The
// state words are named as in the manual: SHA-1 keeps A in the highest
// doubleword.

// quad is a register as four doublewords, lowest first.
type quad [4]uint32

func toQuad(v [2]uint64) quad {
	return quad{uint32(v[0]), uint32(v[0] >> 32), uint32(v[1]), uint32(v[1] >> 32)}
}

func (q quad) vec() [2]uint64 {
	return [2]uint64{uint64(q[0]) | uint64(q[1])<<32, uint64(q[2]) | uint64(q[3])<<32}
}

// quadOp applies f to the registers as doublewords. AMD takes a misaligned
// memory operand here; Intel's manual names exception type 4, #GP.
func (c *CPU) quadOp(in *Inst, f func(a, b quad) quad) Exit {
	lo, hi, e := c.vecRM128(in, !c.amd())
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	r := f(toQuad([2]uint64{v[0], v[1]}), toQuad([2]uint64{lo, hi})).vec()
	v[0], v[1] = r[0], r[1]
	return ExitNone
}

func sha1nexte(c *CPU, in *Inst) Exit {
	return c.quadOp(in, func(a, b quad) quad {
		b[3] += bits.RotateLeft32(a[3], 30)
		return b
	})
}

func sha1msg1(c *CPU, in *Inst) Exit {
	return c.quadOp(in, func(a, b quad) quad {
		return quad{b[2] ^ a[0], b[3] ^ a[1], a[0] ^ a[2], a[1] ^ a[3]}
	})
}

func sha1msg2(c *CPU, in *Inst) Exit {
	return c.quadOp(in, func(a, b quad) (r quad) {
		r[3] = bits.RotateLeft32(a[3]^b[2], 1)
		r[2] = bits.RotateLeft32(a[2]^b[1], 1)
		r[1] = bits.RotateLeft32(a[1]^b[0], 1)
		r[0] = bits.RotateLeft32(a[0]^r[3], 1)
		return r
	})
}

// sha1K are the round constants, and sha1F the functions, of SHA-1's four parts.
var sha1K = [4]uint32{0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6}

func sha1F(part, b, c, d uint32) uint32 {
	switch part {
	case 0:
		return b&c ^ ^b&d
	case 2:
		return b&c ^ b&d ^ c&d
	}
	return b ^ c ^ d
}

// sha1rnds4 does four rounds; the first word of the source has E added to it.
func sha1rnds4(c *CPU, in *Inst) Exit {
	part := uint32(in.Imm & 3)
	return c.quadOp(in, func(s, w quad) quad {
		a, b, cc, d, e := s[3], s[2], s[1], s[0], uint32(0)
		for i := 3; i >= 0; i-- {
			t := sha1F(part, b, cc, d) + bits.RotateLeft32(a, 5) + w[i] + e + sha1K[part]
			a, b, cc, d, e = t, a, bits.RotateLeft32(b, 30), cc, d
		}
		return quad{d, cc, b, a}
	})
}

// sha256rnds2 does two rounds with the words and constants in XMM0.
func sha256rnds2(c *CPU, in *Inst) Exit {
	wk := toQuad([2]uint64{c.V[0][0], c.V[0][1]})
	return c.quadOp(in, func(x, y quad) quad {
		a, b, cc, d := y[3], y[2], x[3], x[2]
		e, f, g, h := y[1], y[0], x[1], x[0]
		for i := range 2 {
			s1 := bits.RotateLeft32(e, -6) ^ bits.RotateLeft32(e, -11) ^ bits.RotateLeft32(e, -25)
			s0 := bits.RotateLeft32(a, -2) ^ bits.RotateLeft32(a, -13) ^ bits.RotateLeft32(a, -22)
			t := h + s1 + (e&f ^ ^e&g) + wk[i]
			u := s0 + (a&b ^ a&cc ^ b&cc)
			a, b, cc, d, e, f, g, h = t+u, a, b, cc, d+t, e, f, g
		}
		return quad{f, e, b, a}
	})
}

func sha256Sigma0(w uint32) uint32 {
	return bits.RotateLeft32(w, -7) ^ bits.RotateLeft32(w, -18) ^ w>>3
}

func sha256Sigma1(w uint32) uint32 {
	return bits.RotateLeft32(w, -17) ^ bits.RotateLeft32(w, -19) ^ w>>10
}

func sha256msg1(c *CPU, in *Inst) Exit {
	return c.quadOp(in, func(a, b quad) quad {
		return quad{a[0] + sha256Sigma0(a[1]), a[1] + sha256Sigma0(a[2]), a[2] + sha256Sigma0(a[3]), a[3] + sha256Sigma0(b[0])}
	})
}

func sha256msg2(c *CPU, in *Inst) Exit {
	return c.quadOp(in, func(a, b quad) (r quad) {
		r[0] = a[0] + sha256Sigma1(b[2])
		r[1] = a[1] + sha256Sigma1(b[3])
		r[2] = a[2] + sha256Sigma1(r[0])
		r[3] = a[3] + sha256Sigma1(r[1])
		return r
	})
}
