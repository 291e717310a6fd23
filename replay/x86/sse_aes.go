package x86

import "math/bits"

// AES rounds (FIPS 197; SDM vol. 2, AESENC and the like) and PCLMULQDQ. A
// register holds the state by columns: byte 4c+r is row r of column c. One
// table look-up does SubBytes and MixColumns for a byte.

// aesTables are the S-box and its inverse, each alone and followed by its
// column mix: byte i of a word is what the input contributes to row i when it
// stands in row 0.
type aesTables struct {
	sbox, inv [256]uint8
	enc, dec  [256]uint32
	mix       [256]uint32 // the inverse mix alone
}

var aesTab = makeAESTables()

func makeAESTables() (t aesTables) {
	p, q := uint8(1), uint8(1) // p runs through the field by 3, q is its inverse
	for {
		p ^= gfDouble(p)
		q = gfDivide3(q)
		s := q ^ bits.RotateLeft8(q, 1) ^ bits.RotateLeft8(q, 2) ^ bits.RotateLeft8(q, 3) ^ bits.RotateLeft8(q, 4) ^ 0x63
		t.sbox[p] = s
		if p == 1 {
			break
		}
	}
	t.sbox[0] = 0x63
	for i := range t.sbox {
		t.inv[t.sbox[i]] = uint8(i)
	}
	for i := range 256 {
		s := t.sbox[i]
		s2 := gfDouble(s)
		t.enc[i] = uint32(s2) | uint32(s)<<8 | uint32(s)<<16 | uint32(s2^s)<<24
		t.mix[i] = inverseColumn(uint8(i))
	}
	for i := range 256 {
		t.dec[i] = t.mix[t.inv[i]]
	}
	return t
}

// gfDouble multiplies by x in AES's field, gfDivide3 divides by x+1.
func gfDouble(a uint8) uint8 { return a<<1 ^ -(a>>7)&0x1b }

func gfDivide3(a uint8) uint8 {
	a ^= a << 1
	a ^= a << 2
	a ^= a << 4
	return a ^ -(a>>7)&0x09
}

// inverseColumn is 14, 9, 13, 11 times a, lowest byte first.
func inverseColumn(a uint8) uint32 {
	a2 := gfDouble(a)
	a4 := gfDouble(a2)
	a8 := gfDouble(a4)
	return uint32(a8^a4^a2) | uint32(a8^a)<<8 | uint32(a8^a4^a)<<16 | uint32(a8^a2^a)<<24
}

// stateByte returns byte n, 0 to 15, of a state.
func stateByte(s pair, n int) uint8 { return uint8(s[n>>3&1] >> (n & 7 * 8)) }

// aesRound applies t to the rows of each column, taken from column c+dir*row.
func aesRound(s pair, t *[256]uint32, dir int) (r pair) {
	for c := range 4 {
		w := t[stateByte(s, c*4)]
		w ^= bits.RotateLeft32(t[stateByte(s, (c+dir)&3*4+1)], 8)
		w ^= bits.RotateLeft32(t[stateByte(s, (c+2*dir)&3*4+2)], 16)
		w ^= bits.RotateLeft32(t[stateByte(s, (c+3*dir)&3*4+3)], 24)
		r[c>>1] |= uint64(w) << (c & 1 * 32)
	}
	return r
}

// aesLast is a round without the column mix.
func aesLast(s pair, t *[256]uint8, dir int) (r pair) {
	for n := range 16 {
		c, row := n>>2, n&3
		b := t[stateByte(s, (c+row*dir)&3*4+row)]
		r[n>>3] |= uint64(b) << (n & 7 * 8)
	}
	return r
}

func xor128(a, b pair) pair { return pair{a[0] ^ b[0], a[1] ^ b[1]} }

func pairAesenc(a, b pair, _ uint64) pair     { return xor128(aesRound(a, &aesTab.enc, 1), b) }
func pairAesenclast(a, b pair, _ uint64) pair { return xor128(aesLast(a, &aesTab.sbox, 1), b) }
func pairAesdec(a, b pair, _ uint64) pair     { return xor128(aesRound(a, &aesTab.dec, -1), b) }
func pairAesdeclast(a, b pair, _ uint64) pair { return xor128(aesLast(a, &aesTab.inv, -1), b) }
func pairAesimc(_, b pair, _ uint64) pair     { return aesRound(b, &aesTab.mix, 0) }

func pairAeskeygenassist(_, b pair, imm uint64) (r pair) {
	for i := range r {
		w := subWord(uint32(b[i] >> 32))
		r[i] = uint64(w) | uint64(bits.RotateLeft32(w, -8)^uint32(uint8(imm)))<<32
	}
	return r
}

// pairClmul multiplies the quadwords that imm[0] and imm[4] choose.
func pairClmul(a, b pair, imm uint64) (r pair) {
	r[0], r[1] = clmul(a[imm&1], b[imm>>4&1])
	return r
}

func aesenc(c *CPU, in *Inst) Exit          { return c.vecOp2(in, pairAesenc) }
func aesenclast(c *CPU, in *Inst) Exit      { return c.vecOp2(in, pairAesenclast) }
func aesdec(c *CPU, in *Inst) Exit          { return c.vecOp2(in, pairAesdec) }
func aesdeclast(c *CPU, in *Inst) Exit      { return c.vecOp2(in, pairAesdeclast) }
func aesimc(c *CPU, in *Inst) Exit          { return c.vecOp2(in, pairAesimc) }
func aeskeygenassist(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairAeskeygenassist) }
func pclmulqdq(c *CPU, in *Inst) Exit       { return c.vecOp2(in, pairClmul) }

func subWord(w uint32) uint32 {
	t := &aesTab.sbox
	return uint32(t[w&0xff]) | uint32(t[w>>8&0xff])<<8 | uint32(t[w>>16&0xff])<<16 | uint32(t[w>>24])<<24
}
