package slice

import (
	"math/bits"

	"vplay/replay/x86"
)

// The registers as the slice tells them apart. General registers are known by the byte, so
// that al, ah, ax, eax and rax are what they are; vector registers by lanes of eight bytes;
// arithmetic flags by the bit. The x87 unit is one piece: each of its instructions moves the
// stack.

// regSet is a set of parts of registers.
type regSet [regWords]uint64

const (
	regWords = 7
	vecWord  = 2 // words 0 and 1 are the bytes of the general registers
	miscWord = 6

	regParts = regWords * 64
)

// Bits of the last word.
const (
	partFlags   = 0 // eight: the six arithmetic ones, DF, all others
	partMask    = 8 // k0 to k7
	partX87     = 16
	partControl = 17 // of MXCSR
	partSticky  = 18 // MXCSR's exception flags, which are only ever set
	partSelect  = 19
	partFSBase  = 20
	partGSBase  = 21
)

// flagPlaces are the bits of RFLAGS that have a part of their own.
var flagPlaces = [...]uint64{x86.FlagCF, x86.FlagPF, x86.FlagAF, x86.FlagZF, x86.FlagSF, x86.FlagOF, x86.FlagDF}

// ignored are the parts that the slice does not follow: the stack pointer, which is known at
// each instruction. Everything would depend on every push before it.
var ignored = bytesOf(x86.RSP, 0, 8)

// bytesOf returns n bytes of a general register from byte off on.
func bytesOf(reg uint8, off, n int) (s regSet) {
	at := int(reg)*8 + off
	s[at/64] = (1<<n - 1) << (at % 64)
	return s
}

// lanesOf returns lanes [from, to) of a vector register.
func lanesOf(reg uint8, from, to int) (s regSet) {
	at := int(reg) * 8
	s[vecWord+at/64] = (1<<to - 1<<from) << (at % 64)
	return s
}

// part returns one bit of the last word.
func part(n int) (s regSet) {
	s[miscWord] = 1 << n
	return s
}

// flagsOf returns the parts of RFLAGS bits.
func flagsOf(f uint64) (s regSet) {
	for i, b := range flagPlaces {
		if f&b != 0 {
			s[miscWord] |= 1 << (partFlags + i)
		}
		f &^= b
	}
	if f != 0 {
		s[miscWord] |= 1 << (partFlags + len(flagPlaces))
	}
	return s
}

func (s *regSet) add(t regSet) {
	for i := range s {
		s[i] |= t[i]
	}
}

func (s *regSet) remove(t regSet) {
	for i := range s {
		s[i] &^= t[i]
	}
}

func (s regSet) and(t regSet) regSet {
	for i := range s {
		s[i] &= t[i]
	}
	return s
}

func (s *regSet) isEmpty() bool { return *s == regSet{} }

// each calls f for the number of each part in s.
func (s *regSet) each(f func(n int)) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			f(i*64 + bits.TrailingZeros64(w))
		}
	}
}

// piece is up to eight parts of a set that stand together: those of a general register, of a vector
// register, the flags. n is which byte of the set they are, mask a bit each.
type piece struct{ n, mask uint8 }

// pieces calls f for each piece that has a part in s.
func (s *regSet) pieces(f func(p piece)) {
	for i, w := range s {
		for w != 0 {
			at := bits.TrailingZeros64(w) &^ 7
			f(piece{uint8(i*8 + at/8), uint8(w >> at)})
			w &^= 0xff << at
		}
	}
}

// list returns the pieces of s.
func (s *regSet) list() (out []piece) {
	s.pieces(func(p piece) { out = append(out, p) })
	return out
}

// summary has a bit for each piece that has a part in s, so that two sets can be told
// to be disjoint by one comparison.
func (s *regSet) summary() (sum uint64) {
	for i, w := range s {
		sum |= nonzeroBytes(w) << (8 * i)
	}
	return sum
}

// nonzeroBytes has a bit for each byte of w that is not 0.
func nonzeroBytes(w uint64) uint64 {
	const low = 0x7f7f7f7f7f7f7f7f
	return ((w&low + low | w) &^ low >> 7) * 0x0102040810204080 >> 56
}
