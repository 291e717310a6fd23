package x86

import "math/bits"

// Lane arithmetic on one quadword, shared by MMX (one quadword), SSE (two) and
// the AVX forms (four).
//
// A quadword is a vector of eight bytes, four words or two doublewords, lane 0
// in the low bits. Where it is cheaper than a loop the lanes are computed side
// by side (SWAR): the top bit of each lane is kept out of the sum so that no
// carry leaves the lane, and put back by exclusive or.
//
// In every function a is the destination (first source) and b the second.

// The top bits of the lanes of each width.
const (
	topB = 0x8080808080808080
	topW = 0x8000800080008000
	topD = 0x8000000080000000
)

// swarAdd adds lanes whose top bits are top.
func swarAdd(a, b, top uint64) uint64 { return ((a &^ top) + (b &^ top)) ^ ((a ^ b) & top) }

// swarSub subtracts lanes whose top bits are top.
func swarSub(a, b, top uint64) uint64 { return ((a | top) - (b &^ top)) ^ (^(a ^ b) & top) }

// spreadB, spreadW and spreadD turn a set of top bits into full-lane masks.
func spreadB(t uint64) uint64 { return (t >> 7) * 0xff }
func spreadW(t uint64) uint64 { return (t >> 15) * 0xffff }
func spreadD(t uint64) uint64 { return (t >> 31) * 0xffffffff }

// swarGE returns the top bits of the lanes where a >= b, unsigned.
func swarGE(a, b, top uint64) uint64 {
	d := (a | top) - (b &^ top)
	return ((a &^ b) | (^(a ^ b) & d)) & top
}

// swarEQ returns the top bits of the lanes where a == b.
func swarEQ(a, b, top uint64) uint64 {
	x := a ^ b
	return ^(((x &^ top) + ^top) | x) & top
}

// pick takes a where mask is set and b elsewhere.
func pick(mask, a, b uint64) uint64 { return b ^ ((a ^ b) & mask) }

func laneAddB(a, b uint64) uint64 { return swarAdd(a, b, topB) }
func laneAddW(a, b uint64) uint64 { return swarAdd(a, b, topW) }
func laneAddD(a, b uint64) uint64 { return swarAdd(a, b, topD) }
func laneAddQ(a, b uint64) uint64 { return a + b }
func laneSubB(a, b uint64) uint64 { return swarSub(a, b, topB) }
func laneSubW(a, b uint64) uint64 { return swarSub(a, b, topW) }
func laneSubD(a, b uint64) uint64 { return swarSub(a, b, topD) }
func laneSubQ(a, b uint64) uint64 { return a - b }

func laneAnd(a, b uint64) uint64  { return a & b }
func laneAndn(a, b uint64) uint64 { return ^a & b }
func laneOr(a, b uint64) uint64   { return a | b }
func laneXor(a, b uint64) uint64  { return a ^ b }

func laneEqB(a, b uint64) uint64 { return spreadB(swarEQ(a, b, topB)) }
func laneEqW(a, b uint64) uint64 { return spreadW(swarEQ(a, b, topW)) }
func laneEqD(a, b uint64) uint64 { return spreadD(swarEQ(a, b, topD)) }
func laneEqQ(a, b uint64) uint64 {
	if a == b {
		return ^uint64(0)
	}
	return 0
}

func laneGtB(a, b uint64) uint64 { return ^spreadB(swarGE(b^topB, a^topB, topB)) }
func laneGtW(a, b uint64) uint64 { return ^spreadW(swarGE(b^topW, a^topW, topW)) }
func laneGtD(a, b uint64) uint64 { return ^spreadD(swarGE(b^topD, a^topD, topD)) }
func laneGtQ(a, b uint64) uint64 {
	if int64(a) > int64(b) {
		return ^uint64(0)
	}
	return 0
}

func laneMinUB(a, b uint64) uint64 { return pick(spreadB(swarGE(a, b, topB)), b, a) }
func laneMinUW(a, b uint64) uint64 { return pick(spreadW(swarGE(a, b, topW)), b, a) }
func laneMinUD(a, b uint64) uint64 { return pick(spreadD(swarGE(a, b, topD)), b, a) }
func laneMaxUB(a, b uint64) uint64 { return pick(spreadB(swarGE(a, b, topB)), a, b) }
func laneMaxUW(a, b uint64) uint64 { return pick(spreadW(swarGE(a, b, topW)), a, b) }
func laneMaxUD(a, b uint64) uint64 { return pick(spreadD(swarGE(a, b, topD)), a, b) }
func laneMinSB(a, b uint64) uint64 { return laneMinUB(a^topB, b^topB) ^ topB }
func laneMinSW(a, b uint64) uint64 { return laneMinUW(a^topW, b^topW) ^ topW }
func laneMinSD(a, b uint64) uint64 { return laneMinUD(a^topD, b^topD) ^ topD }
func laneMaxSB(a, b uint64) uint64 { return laneMaxUB(a^topB, b^topB) ^ topB }
func laneMaxSW(a, b uint64) uint64 { return laneMaxUW(a^topW, b^topW) ^ topW }
func laneMaxSD(a, b uint64) uint64 { return laneMaxUD(a^topD, b^topD) ^ topD }

// carries returns the top bits of the lanes where s = a+b carried out.
func carries(a, b, s, top uint64) uint64 { return ((a & b) | ((a | b) &^ s)) & top }

func laneAddUSB(a, b uint64) uint64 {
	s := swarAdd(a, b, topB)
	return s | spreadB(carries(a, b, s, topB))
}

func laneAddUSW(a, b uint64) uint64 {
	s := swarAdd(a, b, topW)
	return s | spreadW(carries(a, b, s, topW))
}

func laneSubUSB(a, b uint64) uint64 {
	return swarSub(a, b, topB) & spreadB(swarGE(a, b, topB))
}

func laneSubUSW(a, b uint64) uint64 {
	return swarSub(a, b, topW) & spreadW(swarGE(a, b, topW))
}

// satB and satW are the limits that a signed result saturates to, chosen per
// lane by the sign of a.
func satB(a uint64) uint64 { return ^uint64(topB) + (a & topB >> 7) }
func satW(a uint64) uint64 { return ^uint64(topW) + (a & topW >> 15) }

func laneAddSB(a, b uint64) uint64 {
	s := swarAdd(a, b, topB)
	return pick(spreadB((a^s)&(b^s)&topB), satB(a), s)
}

func laneAddSW(a, b uint64) uint64 {
	s := swarAdd(a, b, topW)
	return pick(spreadW((a^s)&(b^s)&topW), satW(a), s)
}

func laneSubSB(a, b uint64) uint64 {
	s := swarSub(a, b, topB)
	return pick(spreadB((a^b)&(a^s)&topB), satB(a), s)
}

func laneSubSW(a, b uint64) uint64 {
	s := swarSub(a, b, topW)
	return pick(spreadW((a^b)&(a^s)&topW), satW(a), s)
}

func laneAvgB(a, b uint64) uint64 { return (a | b) - ((a^b)&^0x0101010101010101)>>1 }
func laneAvgW(a, b uint64) uint64 { return (a | b) - ((a^b)&^0x0001000100010001)>>1 }

// laneSad sums the absolute differences of the eight bytes.
func laneSad(a, b uint64) uint64 {
	d := laneSubUSB(a, b) | laneSubUSB(b, a)
	s := d&0x00ff00ff00ff00ff + d>>8&0x00ff00ff00ff00ff
	return s * 0x0001000100010001 >> 48
}

// laneAbs* make every lane non-negative; the smallest number stays as it is.
func laneAbsB(b uint64) uint64 { m := spreadB(b & topB); return swarSub(b^m, m, topB) }
func laneAbsW(b uint64) uint64 { m := spreadW(b & topW); return swarSub(b^m, m, topW) }
func laneAbsD(b uint64) uint64 { m := spreadD(b & topD); return swarSub(b^m, m, topD) }

// laneSign* negate a where b is negative and clear it where b is zero.
func laneSignB(a, b uint64) uint64 {
	m := spreadB(b & topB)
	return swarSub(a^m, m, topB) &^ laneEqB(b, 0)
}

func laneSignW(a, b uint64) uint64 {
	m := spreadW(b & topW)
	return swarSub(a^m, m, topW) &^ laneEqW(b, 0)
}

func laneSignD(a, b uint64) uint64 {
	m := spreadD(b & topD)
	return swarSub(a^m, m, topD) &^ laneEqD(b, 0)
}

// sw returns word i of q, sign-extended; uw zero-extended.
func sw(q uint64, i uint) int64  { return int64(int16(q >> (16 * i))) }
func uw(q uint64, i uint) uint64 { return q >> (16 * i) & 0xffff }

// words joins four words, of which only the low 16 bits count.
func words(w0, w1, w2, w3 uint64) uint64 {
	return w0&0xffff | w1&0xffff<<16 | w2&0xffff<<32 | w3<<48
}

// dwords joins two doublewords, of which only the low 32 bits count.
func dwords(d0, d1 uint64) uint64 { return d0&0xffffffff | d1<<32 }

func laneMulLW(a, b uint64) uint64 {
	return words(a*b, (a>>16)*(b>>16), (a>>32)*(b>>32), (a>>48)*(b>>48))
}

func laneMulHW(a, b uint64) uint64 {
	return words(uint64(sw(a, 0)*sw(b, 0)>>16), uint64(sw(a, 1)*sw(b, 1)>>16),
		uint64(sw(a, 2)*sw(b, 2)>>16), uint64(sw(a, 3)*sw(b, 3)>>16))
}

func laneMulHUW(a, b uint64) uint64 {
	return words(uw(a, 0)*uw(b, 0)>>16, uw(a, 1)*uw(b, 1)>>16,
		uw(a, 2)*uw(b, 2)>>16, uw(a, 3)*uw(b, 3)>>16)
}

// mulHRS is PMULHRSW on one word: the product scaled by 2^-15, rounded.
func mulHRS(x, y int64) uint64 { return uint64((x*y>>14 + 1) >> 1) }

func laneMulHRSW(a, b uint64) uint64 {
	return words(mulHRS(sw(a, 0), sw(b, 0)), mulHRS(sw(a, 1), sw(b, 1)),
		mulHRS(sw(a, 2), sw(b, 2)), mulHRS(sw(a, 3), sw(b, 3)))
}

func laneMulLD(a, b uint64) uint64 { return dwords(a*b, (a>>32)*(b>>32)) }
func laneMulUDQ(a, b uint64) uint64 {
	return (a & 0xffffffff) * (b & 0xffffffff)
}
func laneMulDQ(a, b uint64) uint64 { return uint64(int64(int32(a)) * int64(int32(b))) }

func laneMaddWD(a, b uint64) uint64 {
	return dwords(uint64(sw(a, 0)*sw(b, 0)+sw(a, 1)*sw(b, 1)),
		uint64(sw(a, 2)*sw(b, 2)+sw(a, 3)*sw(b, 3)))
}

// laneMaddUBSW multiplies unsigned bytes of a by signed bytes of b, adds
// neighbours and saturates to signed words.
func laneMaddUBSW(a, b uint64) (r uint64) {
	for i := 0; i < 64; i += 16 {
		s := int64(uint8(a>>i))*int64(int8(b>>i)) + int64(uint8(a>>(i+8)))*int64(int8(b>>(i+8)))
		r |= uint64(uint16(satS16(s))) << i
	}
	return r
}

func satS8(v int64) int8 {
	return int8(max(-128, min(127, v)))
}

func satS16(v int64) int16 {
	return int16(max(-32768, min(32767, v)))
}

func satU8(v int64) uint8 {
	return uint8(max(0, min(255, v)))
}

func satU16(v int64) uint16 {
	return uint16(max(0, min(65535, v)))
}

// moveMask8 gathers the top bits of eight bytes, lane 0 in bit 0.
func moveMask8(q uint64) uint64 { return (q & topB) * 0x0002040810204081 >> 56 }

// shiftL*, shiftR* and shiftA* shift every lane by the same count, which the
// instructions take as an unsigned 64-bit number.
func laneShlW(a, n uint64) uint64 {
	if n > 15 {
		return 0
	}
	m := uint64(0xffff<<n&0xffff) * 0x0001000100010001
	return a << n & m
}

func laneShlD(a, n uint64) uint64 {
	if n > 31 {
		return 0
	}
	return dwords(a<<n, a>>32<<n)
}

func laneShlQ(a, n uint64) uint64 { return a << n }

func laneShrW(a, n uint64) uint64 {
	if n > 15 {
		return 0
	}
	m := uint64(0xffff>>n) * 0x0001000100010001
	return a >> n & m
}

func laneShrD(a, n uint64) uint64 {
	if n > 31 {
		return 0
	}
	return a&0xffffffff>>n | a>>32>>n<<32
}

func laneShrQ(a, n uint64) uint64 { return a >> n }

func laneSarW(a, n uint64) uint64 {
	n = min(n, 15)
	return words(uint64(sw(a, 0)>>n), uint64(sw(a, 1)>>n), uint64(sw(a, 2)>>n), uint64(sw(a, 3)>>n))
}

func laneSarD(a, n uint64) uint64 {
	n = min(n, 31)
	return dwords(uint64(int32(a)>>n), uint64(int32(a>>32)>>n))
}

// interleaveB and interleaveW zip the low four bytes (two words) of a and b,
// a's lane first.
func interleaveB(a, b uint64) uint64 { return widenBW(a) | widenBW(b)<<8 }

func interleaveW(a, b uint64) uint64 {
	return a&0xffff | b&0xffff<<16 | a>>16&0xffff<<32 | b>>16&0xffff<<48
}

// widenBW zero-extends the low four bytes to words.
func widenBW(q uint64) uint64 {
	q &= 0xffffffff
	q = (q | q<<16) & 0x0000ffff0000ffff
	return (q | q<<8) & 0x00ff00ff00ff00ff
}

// packSSWB packs the four words of q into four bytes with signed saturation.
func packSSWB(q uint64) (r uint64) {
	for i := uint(0); i < 4; i++ {
		r |= uint64(uint8(satS8(sw(q, i)))) << (8 * i)
	}
	return r
}

func packUSWB(q uint64) (r uint64) {
	for i := uint(0); i < 4; i++ {
		r |= uint64(satU8(sw(q, i))) << (8 * i)
	}
	return r
}

func packSSDW(q uint64) uint64 {
	return uint64(uint16(satS16(int64(int32(q))))) | uint64(uint16(satS16(int64(int32(q>>32)))))<<16
}

func packUSDW(q uint64) uint64 {
	return uint64(satU16(int64(int32(q)))) | uint64(satU16(int64(int32(q>>32))))<<16
}

// haddW and the like add neighbouring lanes of one quadword into its low half.
func haddW(q uint64) uint64 { return (q+q>>16)&0xffff | (q>>32+q>>48)&0xffff<<16 }
func haddD(q uint64) uint64 { return (q + q>>32) & 0xffffffff }
func hsubW(q uint64) uint64 { return (q-q>>16)&0xffff | (q>>32-q>>48)&0xffff<<16 }
func hsubD(q uint64) uint64 { return (q - q>>32) & 0xffffffff }
func haddSW(q uint64) uint64 {
	return uint64(uint16(satS16(sw(q, 0)+sw(q, 1)))) | uint64(uint16(satS16(sw(q, 2)+sw(q, 3))))<<16
}

func hsubSW(q uint64) uint64 {
	return uint64(uint16(satS16(sw(q, 0)-sw(q, 1)))) | uint64(uint16(satS16(sw(q, 2)-sw(q, 3))))<<16
}

// shuffleB8 is PSHUFB on one quadword table (the MMX form).
func shuffleB8(a, b uint64) (r uint64) {
	for i := 0; i < 64; i += 8 {
		if s := b >> i; s&0x80 == 0 {
			r |= a >> (s & 7 * 8) & 0xff << i
		}
	}
	return r
}

// shuffleW selects four words of q by two-bit fields of imm.
func shuffleW(q, imm uint64) uint64 {
	return words(q>>(imm&3*16), q>>(imm>>2&3*16), q>>(imm>>4&3*16), q>>(imm>>6&3*16))
}

// clmul is the carry-less product of two quadwords.
func clmul(a, b uint64) (lo, hi uint64) {
	for b != 0 {
		n := uint(bits.TrailingZeros64(b))
		b &= b - 1
		lo ^= a << n
		hi ^= a >> (64 - n)
	}
	return lo, hi
}
