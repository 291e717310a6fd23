package x86

import "math/bits"

// EVEX integer arithmetic: one element function, one handler.

// evQuads applies f to each quadword of the sources.
//
//go:noinline
func evQuads(f func(a, b uint64) uint64) Handler {
	return func(c *CPU, in *Inst) Exit {
		var o evexOp
		if e := c.open(in, &o); e != ExitNone {
			return e
		}
		for i := range o.quads {
			o.r[i] = f(o.a[i], o.b[i])
		}
		return c.close(in, &o)
	}
}

// evMap applies f to each quadword of the only source.
//
//go:noinline
func evMap(f func(b uint64) uint64) Handler {
	return evQuads(func(_, b uint64) uint64 { return f(b) })
}

// evPairs applies f to each 128-bit lane; each sees the immediate shifted right by
// shift more than the one below it.
//
//go:noinline
func evPairs(f pairOp, shift uint) Handler {
	return func(c *CPU, in *Inst) Exit {
		var o evexOp
		if e := c.open(in, &o); e != ExitNone {
			return e
		}
		imm := in.Imm & 0xff
		for i := 0; i < o.quads; i += 2 {
			p := f(pair{o.a[i], o.a[i+1]}, pair{o.b[i], o.b[i+1]}, imm)
			o.r[i], o.r[i+1] = p[0], p[1]
			imm >>= shift
		}
		return c.close(in, &o)
	}
}

// evThree applies f to each quadword of the destination and the sources.
//
//go:noinline
func evThree(f func(d, a, b uint64) uint64) Handler {
	return evThreeImm(func(d, a, b, _ uint64) uint64 { return f(d, a, b) })
}

// evThreeImm is evThree with the immediate.
//
//go:noinline
func evThreeImm(f func(d, a, b, imm uint64) uint64) Handler {
	return func(c *CPU, in *Inst) Exit {
		var o evexOp
		if e := c.open(in, &o); e != ExitNone {
			return e
		}
		o.r = c.ZMM(in.Reg)
		for i := range o.quads {
			o.r[i] = f(o.r[i], o.a[i], o.b[i], in.Imm)
		}
		return c.close(in, &o)
	}
}

// each makes a function of quadwords from one of elements of width bits.
//
//go:noinline
func each(width uint, f func(a, b uint64) uint64) func(a, b uint64) uint64 {
	return func(a, b uint64) (r uint64) {
		m := uint64(1)<<width - 1
		for i := uint(0); i < 64; i += width {
			r |= f(a>>i&m, b>>i&m) & m << i
		}
		return r
	}
}

// eachThree is each for the destination and two sources.
//
//go:noinline
func eachThree(width uint, f func(d, a, b uint64) uint64) func(d, a, b uint64) uint64 {
	return func(d, a, b uint64) (r uint64) {
		m := uint64(1)<<width - 1
		for i := uint(0); i < 64; i += width {
			r |= f(d>>i&m, a>>i&m, b>>i&m) & m << i
		}
		return r
	}
}

func laneMinUQ(a, b uint64) uint64 { return min(a, b) }
func laneMaxUQ(a, b uint64) uint64 { return max(a, b) }
func laneMinSQ(a, b uint64) uint64 { return uint64(min(int64(a), int64(b))) }
func laneMaxSQ(a, b uint64) uint64 { return uint64(max(int64(a), int64(b))) }
func laneMulLQ(a, b uint64) uint64 { return a * b }

func laneAbsQ(b uint64) uint64 { m := -(b >> 63); return b ^ m - m }

// lanePopW and the like count the one bits of each element, laneZerosD and laneZerosQ
// the zeros above the highest.
func lanePopB(b uint64) (r uint64) {
	for i := uint(0); i < 64; i += 8 {
		r |= uint64(bits.OnesCount8(uint8(b>>i))) << i
	}
	return r
}

func lanePopW(b uint64) uint64 {
	n := lanePopB(b)
	return n&0x00ff00ff00ff00ff + n>>8&0x00ff00ff00ff00ff
}

func lanePopD(b uint64) uint64 {
	return dwords(uint64(bits.OnesCount32(uint32(b))), uint64(bits.OnesCount32(uint32(b>>32))))
}

func lanePopQ(b uint64) uint64 { return uint64(bits.OnesCount64(b)) }

func laneZerosD(b uint64) uint64 {
	return dwords(uint64(bits.LeadingZeros32(uint32(b))), uint64(bits.LeadingZeros32(uint32(b>>32))))
}

func laneZerosQ(b uint64) uint64 { return uint64(bits.LeadingZeros64(b)) }

// laneMadd52L and laneMadd52H add the lower or upper half of a product of 52 bits each.
func laneMadd52L(d, a, b uint64) uint64 {
	_, lo := bits.Mul64(a&(1<<52-1), b&(1<<52-1))
	return d + lo&(1<<52-1)
}

func laneMadd52H(d, a, b uint64) uint64 {
	hi, lo := bits.Mul64(a&(1<<52-1), b&(1<<52-1))
	return d + (hi<<12 | lo>>52)
}

// satS32 saturates to a signed doubleword.
func satS32(v int64) uint64 { return uint64(max(-1<<31, min(1<<31-1, v))) }

// dotBytes is the sum of products of four unsigned bytes and four signed ones, dotWords
// that of two signed words each.
func dotBytes(a, b uint64) (s int64) {
	for i := 0; i < 32; i += 8 {
		s += int64(uint8(a>>i)) * int64(int8(b>>i))
	}
	return s
}

func dotWords(a, b uint64) int64 { return sw(a, 0)*sw(b, 0) + sw(a, 1)*sw(b, 1) }

var (
	laneDotB  = eachThree(32, func(d, a, b uint64) uint64 { return d + uint64(dotBytes(a, b)) })
	laneDotBS = eachThree(32, func(d, a, b uint64) uint64 { return satS32(int64(int32(d)) + dotBytes(a, b)) })
	laneDotW  = eachThree(32, func(d, a, b uint64) uint64 { return d + uint64(dotWords(a, b)) })
	laneDotWS = eachThree(32, func(d, a, b uint64) uint64 { return satS32(int64(int32(d)) + dotWords(a, b)) })
)

// laneMultishift makes each byte from eight bits of b, rotated right by the byte of a.
func laneMultishift(a, b uint64) (r uint64) {
	for i := 0; i < 64; i += 8 {
		r |= bits.RotateLeft64(b, -int(a>>i&63)) & 0xff << i
	}
	return r
}

// laneTernlog looks each bit up in imm, by the bits of d, a and b.
func laneTernlog(d, a, b, imm uint64) (r uint64) {
	for i := range uint64(8) {
		if imm>>i&1 != 0 {
			r |= (d ^ (i>>2&1 - 1)) & (a ^ (i>>1&1 - 1)) & (b ^ (i&1 - 1))
		}
	}
	return r
}

// conflicts sets, for each element of width bits, the bits of the equal ones below it.
//
//go:noinline
func conflicts(width uint) Handler {
	return func(c *CPU, in *Inst) Exit {
		var o evexOp
		if e := c.open(in, &o); e != ExitNone {
			return e
		}
		for i := range o.n {
			var m uint64
			for j := range i {
				if element(&o.b, width, i) == element(&o.b, width, j) {
					m |= 1 << j
				}
			}
			setElement(&o.r, width, i, m)
		}
		return c.close(in, &o)
	}
}

// element returns element i of width bits, zero-extended, setElement replaces it.
func element(z *zmm, width uint, i int) uint64 {
	at := uint(i) * width
	return z[at>>6&7] >> (at & 63) & (^uint64(0) >> (64 - width))
}

func setElement(z *zmm, width uint, i int, v uint64) {
	at, m := uint(i)*width, ^uint64(0)>>(64-width)
	q := &z[at>>6&7]
	*q = *q&^(m<<(at&63)) | v&m<<(at&63)
}

// evDoubleSad is VDBPSADBW: sums of four absolute differences of bytes, of doublewords of b
// that the immediate selects and of a.
func evDoubleSad(c *CPU, in *Inst) Exit {
	var o evexOp
	if e := c.open(in, &o); e != ExitNone {
		return e
	}
	for i := 0; i < o.quads; i += 2 {
		t := pairShufd(pair{}, pair{o.b[i], o.b[i+1]}, in.Imm)
		for j := range 2 {
			next := uint64(0)
			if j == 0 {
				next = t[1]
			}
			q := o.a[i+j]
			s := func(a, b uint64) uint64 { return laneSad(a&0xffffffff, b&0xffffffff) }
			u := func(n uint) uint64 { // bytes n to n+3 of the shuffled lane
				return t[j]>>(8*n) | next<<(64-8*n)
			}
			o.r[i+j] = words(s(q, u(0)), s(q, u(1)), s(q>>32, u(2)), s(q>>32, u(3)))
		}
	}
	return c.close(in, &o)
}
