package x86

import "math/bits"

// The string comparisons PCMPESTRI, PCMPESTRM, PCMPISTRI and PCMPISTRM (SDM
// vol. 2B, 4.1, "Imm8 control byte operation for PCMPxSTRx").
// The first operand is the set, range list or needle, the second
// the string that is searched.

// strOperand is one operand: up to 16 bytes or 8 words, and how many of them
// are valid.
type strOperand struct {
	el [16]int32
	n  int
}

// loadStr splits a register into elements as imm[1:0] says: bytes or words,
// unsigned or signed.
func loadStr(v [2]uint64, imm uint64) (s strOperand, count int) {
	width := uint64(8) << (imm & 1)
	count = int(128 / width)
	for i := range count {
		p := uint64(i) * width
		x := v[p>>6] >> (p & 63)
		switch imm & 3 {
		case 0:
			s.el[i] = int32(uint8(x))
		case 1:
			s.el[i] = int32(uint16(x))
		case 2:
			s.el[i] = int32(int8(x))
		case 3:
			s.el[i] = int32(int16(x))
		}
	}
	return s, count
}

// implicitLen is the number of elements before the first zero.
func (s *strOperand) implicitLen(count int) int {
	for i := range count {
		if s.el[i] == 0 {
			return i
		}
	}
	return count
}

// explicitLen is the magnitude of a length register, at most count.
func explicitLen(r uint64, wide bool, count int) int {
	v := int64(int32(r))
	if wide {
		v = int64(r)
	}
	if v < 0 {
		v = -v
	}
	if v < 0 || v > int64(count) { // -v of the least integer is negative
		return count
	}
	return int(v)
}

// aggregate computes IntRes1: one bit for each element of the second operand.
func aggregate(a, b *strOperand, count int, mode uint64) (r uint32) {
	for j := range count {
		hit := false
		switch mode {
		case 0: // equal any
			for i := 0; i < a.n && j < b.n; i++ {
				hit = hit || a.el[i] == b.el[j]
			}
		case 1: // ranges
			for i := 0; i+1 < a.n && j < b.n; i += 2 {
				hit = hit || a.el[i] <= b.el[j] && b.el[j] <= a.el[i+1]
			}
		case 2: // equal each
			hit = j >= a.n && j >= b.n || j < a.n && j < b.n && a.el[j] == b.el[j]
		case 3: // equal ordered
			hit = true
			for i := 0; i < a.n && i+j < count; i++ {
				hit = hit && i+j < b.n && a.el[i] == b.el[i+j]
			}
		}
		if hit {
			r |= 1 << j
		}
	}
	return r
}

// compareStrings does the common part: it returns IntRes2 and the number of
// elements, and the flags.
func compareStrings(a, b *strOperand, count int, imm uint64) (res uint32, flags uint64) {
	res = aggregate(a, b, count, imm>>2&3)
	all := uint32(1)<<count - 1
	switch imm >> 4 & 3 {
	case 1:
		res ^= all
	case 3:
		res ^= uint32(1)<<b.n - 1
	}
	flags = b2u(res != 0)*FlagCF | b2u(b.n < count)*FlagZF | b2u(a.n < count)*FlagSF | uint64(res&1)*FlagOF
	return res, flags
}

// pcmpstr executes one of the four: with explicit lengths, and with an index
// or a mask as result. Its memory operand need not be aligned.
func (c *CPU) pcmpstr(in *Inst, explicit, index bool) Exit {
	lo, hi, e := c.vecRM128(in, false)
	if e != ExitNone {
		return e
	}
	imm := in.Imm
	v := &c.V[in.Reg&15]
	a, count := loadStr([2]uint64{v[0], v[1]}, imm)
	b, _ := loadStr([2]uint64{lo, hi}, imm)
	if explicit {
		wide := in.Flags&InstW != 0
		a.n, b.n = explicitLen(c.R[RAX], wide, count), explicitLen(c.R[RDX], wide, count)
	} else {
		a.n, b.n = a.implicitLen(count), b.implicitLen(count)
	}
	res, flags := compareStrings(&a, &b, count, imm)
	c.setFlagsRaw(flags)
	if index {
		c.R[RCX] = strIndex(res, count, imm&0x40 != 0)
		return ExitNone
	}
	m := uint64(res)
	x := &c.V[0]
	switch {
	case imm&0x40 == 0:
		x[0], x[1] = m, 0
	case count == 16:
		x[0], x[1] = blendMask(m, 8), blendMask(m>>8, 8)
	default:
		x[0], x[1] = blendMask(m, 16), blendMask(m>>4, 16)
	}
	return ExitNone
}

// strIndex is the least (or greatest, with most) set bit of res, count if there
// is none.
func strIndex(res uint32, count int, most bool) uint64 {
	switch {
	case res == 0:
		return uint64(count)
	case most:
		return uint64(bits.Len32(res) - 1)
	}
	return uint64(bits.TrailingZeros32(res))
}

func pcmpestrm(c *CPU, in *Inst) Exit { return c.pcmpstr(in, true, false) }
func pcmpestri(c *CPU, in *Inst) Exit { return c.pcmpstr(in, true, true) }
func pcmpistrm(c *CPU, in *Inst) Exit { return c.pcmpstr(in, false, false) }
func pcmpistri(c *CPU, in *Inst) Exit { return c.pcmpstr(in, false, true) }
