package x86

import "math/bits"

// The arithmetic flags are lazy: an operation leaves its result in State.res
// and its carries in State.aux, and whoever wants a flag computes it. See
// State for the layout. For an addition the carry out of each bit is
// (a&b)|((a|b)&^r), for a subtraction the borrow is (^a&b)|((^a|b)&r); moved
// up so that the operand's top bit is bit 63, bit 63 is CF and bits 63 and 62
// differ when there is an overflow.

const (
	auxCF  = 1 << 63
	auxOF  = 1 << 62 // together with CF: OF = bit 63 xor bit 62
	auxAF  = 1 << 3
	auxSF  = 1 // inverts SF
	auxPF  = 1 << 8
	auxCO  = auxCF | auxOF
	auxAll = auxCF | auxOF | auxAF
)

// Flags returns RFLAGS.
func (s *State) Flags() uint64 { return s.eflags | 2 | s.arithFlags() }

// SetFlags sets RFLAGS.
func (s *State) SetFlags(v uint64) {
	s.eflags = v&^flagsArith | 2
	s.setFlagsRaw(v)
}

// arithFlags returns the six arithmetic flags in their RFLAGS places.
func (s *State) arithFlags() uint64 {
	x := s.aux
	f := x>>63 | x&auxAF<<1 | (x>>63^x>>62&1)<<11
	f |= (s.res>>63 ^ x&auxSF) << 7
	if s.res == 0 {
		f |= FlagZF
	}
	if bits.OnesCount8(uint8(s.res)^uint8(x>>8))&1 == 0 {
		f |= FlagPF
	}
	return f
}

// setFlagsRaw sets the six arithmetic flags from their RFLAGS places; other
// bits of f are ignored.
func (s *State) setFlagsRaw(f uint64) {
	x := f << 63
	x |= (f ^ f>>11) & 1 << 62
	x |= f & FlagAF >> 1
	x |= f >> 7 & 1
	res := ^f >> 6 & 1 // 0 when ZF
	// Parity of res is even when it is 0.
	if pf := f >> 2 & 1; pf == res {
		x |= auxPF
	}
	s.res, s.aux = res, x
}

func (s *State) cf() bool { return int64(s.aux) < 0 }
func (s *State) zf() bool { return s.res == 0 }
func (s *State) sf() bool { return int64(s.res^s.aux<<63) < 0 }
func (s *State) of() bool { return int64(s.aux^s.aux<<1) < 0 }
func (s *State) pf() bool { return bits.OnesCount8(uint8(s.res)^uint8(s.aux>>8))&1 == 0 }

// carry returns CF as 0 or 1.
func (s *State) carry() uint64 { return s.aux >> 63 }

// cond evaluates condition code cc (the low four bits of Jcc, SETcc, CMOVcc).
func (s *State) cond(cc uint8) bool {
	var v bool
	switch cc >> 1 & 7 {
	case 0:
		v = s.of()
	case 1:
		v = s.cf()
	case 2:
		v = s.zf()
	case 3:
		v = s.cf() || s.zf()
	case 4:
		v = s.sf()
	case 5:
		v = s.pf()
	case 6:
		v = s.sf() != s.of()
	default:
		v = s.zf() || s.sf() != s.of()
	}
	return v != (cc&1 != 0)
}

// addFlags sets the flags of r = a + b + carry in, for operands of size bytes.
// The values may have anything above their size.
func (s *State) addFlags(a, b, r uint64, size uint8) {
	s.carries(a&b|(a|b)&^r, r, size)
}

// subFlags sets the flags of r = a - b - borrow in.
func (s *State) subFlags(a, b, r uint64, size uint8) {
	s.carries(^a&b|(^a|b)&r, r, size)
}

func (s *State) carries(v, r uint64, size uint8) {
	sh := 64 - 8*uint(size)
	s.res = signExtend(r, size)
	s.aux = v<<(sh&63)&auxCO | v&auxAF
}

// logicFlags sets the flags of a logical result: CF = OF = AF = 0.
func (s *State) logicFlags(r uint64, size uint8) {
	s.res = signExtend(r, size)
	s.aux = 0
}

// setCO replaces CF and OF and keeps the rest.
func (s *State) setCO(cf, of bool) {
	x := s.aux &^ auxCO
	if cf {
		x |= auxCF
	}
	if cf != of {
		x |= auxOF
	}
	s.aux = x
}

// setCF replaces CF and keeps the rest.
func (s *State) setCF(cf bool) { s.setCO(cf, s.of()) }

// setAF replaces AF and keeps the rest.
func (s *State) setAF(af bool) {
	s.aux &^= auxAF
	if af {
		s.aux |= auxAF
	}
}

// signExtend extends the low size bytes of v to 64 bits.
func signExtend(v uint64, size uint8) uint64 {
	sh := (64 - 8*uint(size)) & 63
	return uint64(int64(v<<sh) >> sh)
}

// zeroExtend cuts v to its low size bytes.
func zeroExtend(v uint64, size uint8) uint64 {
	sh := (64 - 8*uint(size)) & 63
	return v << sh >> sh
}
