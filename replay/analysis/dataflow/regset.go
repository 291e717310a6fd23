package dataflow

import (
	"math/bits"

	"vplay/replay/x86"
)

// The registers as data flows tell them apart. General registers are known by the byte, so
// that al, ah, ax, eax and rax are what they are; vector registers by lanes of eight bytes;
// arithmetic flags by the bit. The x87 unit is one piece: each of its instructions moves the
// stack.

// RegSet is a set of parts of registers.
type RegSet [regWords]uint64

// Words of a RegSet, and how many parts it has.
const (
	regWords = 7
	VecWord  = 2 // words 0 and 1 are the bytes of the general registers, words from here on the lanes of vector registers
	MiscWord = 6

	RegParts = regWords * 64
)

// Bits of the last word.
const (
	PartFlags   = 0 // eight: the six arithmetic ones, DF, all others
	PartMask    = 8 // k0 to k7
	PartX87     = 16
	PartControl = 17 // of MXCSR
	PartSticky  = 18 // MXCSR's exception flags, which are only ever set
	PartSelect  = 19
	PartFSBase  = 20
	PartGSBase  = 21
)

// FlagPlaces are the bits of RFLAGS that have a part of their own.
var FlagPlaces = [...]uint64{x86.FlagCF, x86.FlagPF, x86.FlagAF, x86.FlagZF, x86.FlagSF, x86.FlagOF, x86.FlagDF}

// Ignored are the parts that are not followed: the stack pointer, which is known at
// each instruction. Everything would depend on every push before it.
var Ignored = BytesOf(x86.RSP, 0, 8)

// BytesOf returns n bytes of a general register from byte off on.
func BytesOf(reg uint8, off, n int) (s RegSet) {
	at := int(reg)*8 + off
	s[at/64] = (1<<n - 1) << (at % 64)
	return s
}

// LanesOf returns lanes [from, to) of a vector register.
func LanesOf(reg uint8, from, to int) (s RegSet) {
	at := int(reg) * 8
	s[VecWord+at/64] = (1<<to - 1<<from) << (at % 64)
	return s
}

// Part returns one bit of the last word.
func Part(n int) (s RegSet) {
	s[MiscWord] = 1 << n
	return s
}

// FlagsOf returns the parts of RFLAGS bits.
func FlagsOf(f uint64) (s RegSet) {
	for i, b := range FlagPlaces {
		if f&b != 0 {
			s[MiscWord] |= 1 << (PartFlags + i)
		}
		f &^= b
	}
	if f != 0 {
		s[MiscWord] |= 1 << (PartFlags + len(FlagPlaces))
	}
	return s
}

// Add adds t to s.
func (s *RegSet) Add(t RegSet) {
	for i := range s {
		s[i] |= t[i]
	}
}

// Remove takes t out of s.
func (s *RegSet) Remove(t RegSet) {
	for i := range s {
		s[i] &^= t[i]
	}
}

// And returns what is in both.
func (s RegSet) And(t RegSet) RegSet {
	for i := range s {
		s[i] &= t[i]
	}
	return s
}

// IsEmpty reports whether s has nothing.
func (s *RegSet) IsEmpty() bool { return *s == RegSet{} }

// Each calls f for the number of each part in s.
func (s *RegSet) Each(f func(n int)) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			f(i*64 + bits.TrailingZeros64(w))
		}
	}
}

// Piece is up to eight parts of a set that stand together: those of a general register, of a vector
// register, the flags. N is which byte of the set they are, Mask has a bit for each.
type Piece struct{ N, Mask uint8 }

// Pieces calls f for each piece that has a part in s.
func (s *RegSet) Pieces(f func(p Piece)) {
	for i, w := range s {
		for w != 0 {
			at := bits.TrailingZeros64(w) &^ 7
			f(Piece{uint8(i*8 + at/8), uint8(w >> at)})
			w &^= 0xff << at
		}
	}
}

// list returns the pieces of s.
func (s *RegSet) list() (out []Piece) {
	s.Pieces(func(p Piece) { out = append(out, p) })
	return out
}

// Summary has a bit for each piece that has a part in s, so that two sets can be told
// to be disjoint by one comparison.
func (s *RegSet) Summary() (sum uint64) {
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
