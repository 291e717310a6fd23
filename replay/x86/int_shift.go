package x86

import "math/bits"

// Shifts and rotates. What the manuals leave undefined:
//
//   - AF after a shift with a count that is not zero: AMD sets it, Intel
//     clears it.
//   - OF for counts above 1: AMD computes it as for a count of 1 from the
//     result (left: top bit xor CF; right: top two bits), Intel as for a count
//     of 1 from the operand, whatever the count; but ROL and ROR of a register by an
//     immediate other than 1 keep OF there, as do RCL and RCR that move nothing.
//   - 16-bit SHLD and SHRD by more than 16: see shld16 and shrd16.
//
// Measured on AMD family 25 model 17, 2026-11-20, and on Intel family 6 model
// 207, 2026-11-21.

// shiftAF is AF after shifts.
func (c *CPU) shiftAF() bool { return c.amd() }

// shiftOF is OF on Intel after the shift group with a, for any count n but 0.
func (c *CPU) shiftOF(in *Inst, a uint64, n uint, carry bool) bool {
	w := 8 * uint(in.Size)
	op := in.Reg & 7
	switch {
	case op < 2 && in.Opc&^1 == 0xc0 && in.Flags&InstMem == 0 && n != 1, op&^1 == 2 && n%(w+1) == 0:
		return c.of()
	}
	return oneOF(op, a, w, carry)
}

// oneOF is OF after shift or rotate op of a, w bits wide, by 1.
func oneOF(op uint8, a uint64, w uint, carry bool) bool {
	top := a>>(w-1)&1 != 0
	switch op {
	case 1: // ROR: bit 0 moves to the top
		return top != (a&1 != 0)
	case 3: // RCR: the carry does
		return top != carry
	case 5: // SHR: a zero does
		return top
	case 7: // SAR: the top bit stays
		return false
	}
	return top != (a>>(w-2)&1 != 0) // to the left: the bit below moves to the top
}

func intShiftImm(c *CPU, in *Inst) Exit { return c.shift(in, uint(in.Imm)) }
func intShift1(c *CPU, in *Inst) Exit   { return c.shift(in, 1) }
func intShiftCL(c *CPU, in *Inst) Exit  { return c.shift(in, uint(c.R[RCX])) }

// countMask is the mask of shift counts for an operand size.
func countMask(size uint8) uint {
	if size == 8 {
		return 63
	}
	return 31
}

// shift executes the shift group; ModRM.reg says which. A memory operand is
// written even when the count is zero.
func (c *CPU) shift(in *Inst, n uint) Exit {
	n &= countMask(in.Size)
	a, e := c.dest(in, true)
	if e != ExitNone {
		return e
	}
	if n == 0 {
		return c.setRM(in, in.Size, a)
	}
	w := 8 * uint(in.Size)
	top := w - 1
	carry := c.cf()
	var r uint64
	var cf bool
	op := in.Reg & 7
	switch op {
	case 0:
		r = rotl(a, n%w, w)
		cf = r&1 != 0
	case 1:
		r = rotl(a, (w-n%w)%w, w)
		cf = r>>top&1 != 0
	case 2:
		r, cf = rcl(a, n%(w+1), w, carry)
	case 3:
		r, cf = rcl(a, (w+1-n%(w+1))%(w+1), w, carry)
	case 4, 6:
		r = a << n
		cf = n <= w && a>>(w-n)&1 != 0
	case 5:
		r = a >> n
		cf = a>>(n-1)&1 != 0
	case 7:
		s := int64(signExtend(a, in.Size))
		r = uint64(s >> n)
		cf = s>>(n-1)&1 != 0
	}
	if e = c.setRM(in, in.Size, r); e != ExitNone {
		return e
	}
	t := r >> top & 1
	of := t != r>>(top-1)&1
	if op&1 == 0 {
		of = (t != 0) != cf
	}
	if !c.amd() {
		of = c.shiftOF(in, a, n, carry)
	}
	if op >= 4 {
		c.logicFlags(r, in.Size)
		c.setAF(c.shiftAF())
	}
	c.setCO(cf, of)
	return ExitNone
}

// rotl rotates the low w bits of a left by n < w.
func rotl(a uint64, n, w uint) uint64 {
	if n == 0 {
		return a
	}
	r := a<<n | a>>(w-n)
	if w < 64 {
		r &= 1<<w - 1
	}
	return r
}

// rcl rotates the low w bits of a and the carry left by n <= w.
func rcl(a uint64, n, w uint, cf bool) (uint64, bool) {
	if n == 0 {
		return a, cf
	}
	r := a << n
	if n > 1 {
		r |= a >> (w + 1 - n)
	}
	if cf {
		r |= 1 << (n - 1)
	}
	if w < 64 {
		r &= 1<<w - 1
	}
	return r, a>>(w-n)&1 != 0
}

// doubleCount is the count of SHLD and SHRD.
func (c *CPU) doubleCount(in *Inst) uint {
	n := uint(c.R[RCX])
	if in.Opc&1 == 0 {
		n = uint(in.Imm)
	}
	return n & countMask(in.Size)
}

func intShld(c *CPU, in *Inst) Exit { return c.doubleShift(in, (*CPU).shld) }
func intShrd(c *CPU, in *Inst) Exit { return c.doubleShift(in, (*CPU).shrd) }

// doubleShift shifts the destination by op, which gets the width w and the
// count n in bits and is not asked when n is 0.
func (c *CPU) doubleShift(in *Inst, op func(c *CPU, a, b uint64, w, n uint) (r uint64, cf, of bool)) Exit {
	n := c.doubleCount(in)
	a, e := c.dest(in, true)
	if e != ExitNone {
		return e
	}
	if n == 0 {
		return c.setRM(in, in.Size, a)
	}
	r, cf, of := op(c, a, c.reg(in), 8*uint(in.Size), n)
	return c.doubleResult(in, r, cf, of)
}

func (c *CPU) shld(a, b uint64, w, n uint) (r uint64, cf, of bool) {
	if w == 16 {
		return c.shld16(a, b, n)
	}
	r = a<<n | b>>(w-n)
	cf = a>>(w-n)&1 != 0
	if !c.amd() {
		return r, cf, oneOF(4, a, w, false)
	}
	return r, cf, (r>>(w-1)&1 != 0) != cf
}

func (c *CPU) shrd(a, b uint64, w, n uint) (r uint64, cf, of bool) {
	if w == 16 {
		r, cf = c.shrd16(a, b, n)
	} else {
		r = a>>n | b<<(w-n)
		cf = a>>(n-1)&1 != 0
	}
	if !c.amd() {
		return r, cf, oneOF(3, a, w, b&1 != 0)
	}
	return r, cf, (r>>(w-1)^r>>(w-2))&1 != 0
}

func (c *CPU) doubleResult(in *Inst, r uint64, cf, of bool) Exit {
	if e := c.setRM(in, in.Size, r); e != ExitNone {
		return e
	}
	c.logicFlags(r, in.Size)
	c.setAF(c.shiftAF())
	c.setCO(cf, of)
	return ExitNone
}

// shld16 shifts a left by n from 1 to 31. Above 16 AMD goes on with b again
// and Intel with a, and AMD's CF and OF are those of shifting a alone.
func (c *CPU) shld16(a, b uint64, n uint) (r uint64, cf, of bool) {
	if c.ID.Vendor == VendorAMD {
		r = (a<<32 | b<<16 | b) << n >> 32 & 0xffff
		s := a << n
		cf = s>>16&1 != 0
		return r, cf && n <= 16, (s>>15&1 != 0 && n <= 15) != (cf && n <= 16)
	}
	w := a<<32 | b<<16 | a
	r = w << n >> 32 & 0xffff
	return r, w>>(48-n)&1 != 0, oneOF(4, a, 16, false)
}

// shrd16 shifts a right by n from 1 to 31. Above 16 AMD goes on with b again,
// and clears CF; Intel goes on with a.
func (c *CPU) shrd16(a, b uint64, n uint) (r uint64, cf bool) {
	if c.ID.Vendor == VendorAMD {
		w := b<<32 | b<<16 | a
		return w >> n & 0xffff, n <= 16 && w>>(n-1)&1 != 0
	}
	w := a<<32 | b<<16 | a
	return w >> n & 0xffff, w>>(n-1)&1 != 0
}

// parityEven says whether the low byte of v has an even number of ones.
func parityEven(v uint64) bool { return bits.OnesCount8(uint8(v))&1 == 0 }
