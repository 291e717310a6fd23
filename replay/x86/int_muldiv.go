package x86

import "math/bits"

// Multiplication and division. SF, ZF, AF and PF after a multiplication are
// undefined: AMD leaves them alone, Intel sets SF and PF from the low half of
// the product and clears ZF and AF. All flags after a division are undefined: AMD clears SF, ZF
// and PF, sets AF and keeps CF and OF; Intel keeps all.
// Measured on AMD family 25 model 17, 2026-11-20, and on Intel family 6 model
// 207, 2026-11-21.

// resNonZero is a bit of State.res that is neither SF nor in the byte of PF: set, ZF is clear.
const resNonZero = 1 << 62

// mulFlags sets the flags after a multiplication.
func (c *CPU) mulFlags(lo uint64, size uint8, over bool) {
	if c.ID.Vendor != VendorAMD {
		c.logicFlags(lo, size)
		c.res |= resNonZero
	}
	c.setCO(over, over)
}

// divFlags sets the flags after a division.
func (c *CPU) divFlags() {
	if c.ID.Vendor == VendorAMD {
		c.setFlagsRaw(c.arithFlags()&(FlagCF|FlagOF) | FlagAF)
	}
}

// setProduct stores a double-width result in rdx:rax, or ax for bytes.
func (c *CPU) setProduct(size uint8, lo, hi uint64) {
	if size == 1 {
		c.setIntReg(RAX, 2, true, lo&0xff|hi<<8)
		return
	}
	c.setIntReg(RAX, size, true, lo)
	c.setIntReg(RDX, size, true, hi)
}

func intMul(c *CPU, in *Inst) Exit {
	b, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	a := zeroExtend(c.R[RAX], in.Size)
	hi, lo := bits.Mul64(a, b)
	if in.Size < 8 {
		hi = lo >> (8 * in.Size)
	}
	c.setProduct(in.Size, lo, hi)
	c.mulFlags(lo, in.Size, hi != 0)
	return ExitNone
}

// mulSigned returns the signed product of a and b, both sign-extended from
// size bytes, and whether it does not fit.
func mulSigned(a, b uint64, size uint8) (lo, hi uint64, over bool) {
	h, lo := bits.Mul64(a, b)
	h -= uint64(int64(a)>>63) & b
	h -= uint64(int64(b)>>63) & a
	if size == 8 {
		return lo, h, h != uint64(int64(lo)>>63)
	}
	return lo, lo >> (8 * size), signExtend(lo, size) != lo
}

func intImul1(c *CPU, in *Inst) Exit {
	b, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	lo, hi, over := mulSigned(signExtend(c.R[RAX], in.Size), signExtend(b, in.Size), in.Size)
	c.setProduct(in.Size, lo, hi)
	c.mulFlags(lo, in.Size, over)
	return ExitNone
}

func intImul2(c *CPU, in *Inst) Exit {
	b, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	lo, _, over := mulSigned(signExtend(c.reg(in), in.Size), signExtend(b, in.Size), in.Size)
	c.setReg(in, lo)
	c.mulFlags(lo, in.Size, over)
	return ExitNone
}

func intImul3(c *CPU, in *Inst) Exit {
	b, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	lo, _, over := mulSigned(in.Imm, signExtend(b, in.Size), in.Size)
	c.setReg(in, lo)
	c.mulFlags(lo, in.Size, over)
	return ExitNone
}

// dividend returns the double-width dividend.
func (c *CPU) dividend(size uint8) (hi, lo uint64) {
	if size == 1 {
		return c.R[RAX] >> 8 & 0xff, c.R[RAX] & 0xff
	}
	return zeroExtend(c.R[RDX], size), zeroExtend(c.R[RAX], size)
}

func intDiv(c *CPU, in *Inst) Exit {
	d, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	hi, lo := c.dividend(in.Size)
	if d <= hi {
		return c.fault(FaultDE, c.RIP)
	}
	var q, r uint64
	if in.Size == 8 {
		q, r = bits.Div64(hi, lo, d)
	} else {
		n := hi<<(8*in.Size) | lo
		q, r = n/d, n%d
	}
	c.setProduct(in.Size, q, r)
	c.divFlags()
	return ExitNone
}

func intIdiv(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	hi, lo := c.dividend(in.Size)
	d := int64(signExtend(v, in.Size))
	var q, r int64
	ok := d != 0
	switch {
	case !ok:
	case in.Size == 8:
		q, r, ok = idiv128(int64(hi), lo, d)
	default:
		n := int64(signExtend(hi<<(8*in.Size)|lo, 2*in.Size))
		if in.Size == 4 && d == -1 && n == -1<<63 {
			ok = false
			break
		}
		q, r = n/d, n%d
		ok = int64(signExtend(uint64(q), in.Size)) == q
	}
	if !ok {
		return c.fault(FaultDE, c.RIP)
	}
	c.setProduct(in.Size, uint64(q), uint64(r))
	c.divFlags()
	return ExitNone
}

// idiv128 divides hi:lo by d, truncating; ok is false when the quotient does
// not fit in 64 bits. d is not zero.
func idiv128(hi int64, lo uint64, d int64) (q, r int64, ok bool) {
	h, l := uint64(hi), lo
	if hi < 0 {
		var b uint64
		l, b = bits.Sub64(0, l, 0)
		h, _ = bits.Sub64(0, h, b)
	}
	ud := uint64(d)
	if d < 0 {
		ud = -ud
	}
	if h >= ud {
		return 0, 0, false
	}
	uq, ur := bits.Div64(h, l, ud)
	neg := (hi < 0) != (d < 0)
	if uq > 1<<63 || uq == 1<<63 && !neg {
		return 0, 0, false
	}
	q, r = int64(uq), int64(ur)
	if neg {
		q = -q
	}
	if hi < 0 {
		r = -r
	}
	return q, r, true
}
