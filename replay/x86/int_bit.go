package x86

import (
	"hash/crc32"
	"math/bits"
)

// Bit tests and scans. Undefined flags: BT and its kin leave O, S, A and P
// alone on both vendors. BSF and BSR clear O, S, A and C and set PF from the
// result; with a source of zero the destination is unchanged, all 64 bits of
// it, and PF is set. TZCNT and LZCNT clear S, A and P; OF is kept on AMD and
// cleared on Intel. Measured on AMD family 25 model 17, 2026-11-20, and on
// Intel family 6 model 207, 2026-11-21.

// intBt is BT, BTS, BTR and BTC. With a register as bit offset, a memory
// operand is a bit string that reaches beyond the operand on both sides.
func intBt(c *CPU, in *Inst) Exit {
	op := in.Opc >> 3 & 3 // A3 AB B3 BB: BT BTS BTR BTC
	w := 8 * uint64(in.Size)
	bit := in.Imm
	if in.Opc == 0xba {
		op = in.Reg & 3
	} else {
		bit = signExtend(c.reg(in), in.Size)
	}
	var a, v uint64
	var e Exit
	if in.Flags&InstMem != 0 {
		a = c.ea(in)
		if in.Opc != 0xba {
			a = c.bitAddress(in, int64(bit))
		}
		if op != 0 {
			if e = c.probe(a, int(in.Size), Store); e != ExitNone {
				return e
			}
		}
		v, e = c.loadN(a, in.Size)
		if e != ExitNone {
			return e
		}
	} else {
		v = c.intReg(in.RM, in.Size, true)
	}
	m := uint64(1) << (bit & (w - 1))
	cf := v&m != 0
	switch op {
	case 1:
		v |= m
	case 2:
		v &^= m
	case 3:
		v ^= m
	}
	if op != 0 {
		if in.Flags&InstMem == 0 {
			c.setIntReg(in.RM, in.Size, true, v)
		} else if e = c.storeN(a, in.Size, v); e != ExitNone {
			return e
		}
	}
	c.setCF(cf)
	return ExitNone
}

// bitAddress returns the address of the operand that holds bit number bit.
func (c *CPU) bitAddress(in *Inst, bit int64) uint64 {
	var d int64
	switch in.Size {
	case 2:
		d = bit >> 4 * 2
	case 4:
		d = bit >> 5 * 4
	default:
		d = bit >> 6 * 8
	}
	moved := *in
	moved.Disp += d
	return c.ea(&moved)
}

// scanFlags sets the flags after BSF and BSR. AMD's CPUs up to Zen 3 change ZF
// alone (family 25 model 1, 2026-11-22).
func (c *CPU) scanFlags(src, r uint64) {
	switch {
	case c.amd() && !c.ID.isZen4():
		c.setZF(src == 0)
	case src == 0:
		c.setFlagsRaw(FlagZF | FlagPF)
	case parityEven(r):
		c.setFlagsRaw(FlagPF)
	default:
		c.setFlagsRaw(0)
	}
}

func intBsf(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	r := uint64(bits.TrailingZeros64(v))
	if v != 0 {
		c.setReg(in, r)
	}
	c.scanFlags(v, r)
	return ExitNone
}

func intBsr(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	r := uint64(63 - bits.LeadingZeros64(v|1))
	if v != 0 {
		c.setReg(in, r)
	}
	c.scanFlags(v, r)
	return ExitNone
}

// countFlags sets the flags after TZCNT and LZCNT.
func (c *CPU) countFlags(src, r uint64) {
	of := c.of() && c.ID.Vendor == VendorAMD
	var f uint64
	if src == 0 {
		f |= FlagCF
	}
	if r == 0 {
		f |= FlagZF
	}
	if of {
		f |= FlagOF
	}
	c.setFlagsRaw(f)
}

func intTzcnt(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	r := uint64(8 * in.Size)
	if v != 0 {
		r = uint64(bits.TrailingZeros64(v))
	}
	c.setReg(in, r)
	c.countFlags(v, r)
	return ExitNone
}

func intLzcnt(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	r := uint64(bits.LeadingZeros64(v)) - (64 - 8*uint64(in.Size))
	c.setReg(in, r)
	c.countFlags(v, r)
	return ExitNone
}

func intPopcnt(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	c.setReg(in, uint64(bits.OnesCount64(v)))
	var f uint64
	if v == 0 {
		f = FlagZF
	}
	c.setFlagsRaw(f)
	return ExitNone
}

// castagnoli is the CRC32 instruction's polynomial, bit-reflected.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crc folds the low size bytes of v into the checksum.
func crc(sum uint32, v uint64, size uint8) uint32 {
	for ; size > 0; size-- {
		sum = castagnoli[uint8(sum)^uint8(v)] ^ sum>>8
		v >>= 8
	}
	return sum
}

func intCrc32b(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, 1)
	if e == ExitNone {
		c.R[in.Reg&15] = uint64(crc(uint32(c.R[in.Reg&15]), v, 1))
	}
	return e
}

func intCrc32(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e == ExitNone {
		c.R[in.Reg&15] = uint64(crc(uint32(c.R[in.Reg&15]), v, in.Size))
	}
	return e
}

// byteSwap reverses the low size bytes of v.
func byteSwap(v uint64, size uint8) uint64 {
	return bits.ReverseBytes64(v) >> (64 - 8*uint(size))
}

func intMovbeLoad(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e == ExitNone {
		c.setReg(in, byteSwap(v, in.Size))
	}
	return e
}

func intMovbeStore(c *CPU, in *Inst) Exit {
	return c.setRM(in, in.Size, byteSwap(c.reg(in), in.Size))
}

// intBswap reverses the bytes of a register. With a 16-bit operand the result
// is undefined; both vendors write zero.
func intBswap(c *CPU, in *Inst) Exit {
	if in.Size == 2 {
		c.setReg(in, 0)
		return ExitNone
	}
	c.setReg(in, byteSwap(c.reg(in), in.Size))
	return ExitNone
}
