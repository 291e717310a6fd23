package x86

// The x87 unit and the MMX registers, which are the low parts of its data
// registers. Registers are kept by physical number, as FXSAVE's tag byte and
// MMX count them: st(i) is R[(Top+i)&7].
//
// Sources: SDM vol. 1, ch. 8 (x87) and 9.6 (MMX and the x87 state).

// F80 is a number in the 80-bit format of the x87 registers: M is the
// significand with its explicit integer bit, E the sign (bit 15) and the
// exponent (bits 14 to 0, bias 16383).
type F80 struct {
	M uint64
	E uint16
}

// FPU is the x87 state of one thread, a plain value. The zero FPU is not an
// initialised unit: see [FPU.Reset].
type FPU struct {
	// R holds the registers by physical number.
	R [8]F80
	// FIP and FDP are the addresses of the last x87 instruction that was not a
	// control instruction, and of its memory operand.
	FIP, FDP uint64
	// CW is the control word.
	CW uint16
	// SW is the status word, its TOP field (bits 13 to 11) always zero here.
	SW uint16
	// FOP is the low 11 bits of the last instruction's opcode; FCS and FDS are
	// the selectors that belong to FIP and FDP.
	FOP, FCS, FDS uint16
	// Top is the physical number of st(0), 0 to 7.
	Top uint8
	// Tag has bit i set while physical register i is not empty.
	Tag uint8
}

// Bits of the status and the control word (SDM vol. 1, 8.1.3 and 8.1.5).
const (
	fpuIE = 1 << 0 // invalid operation
	fpuDE = 1 << 1 // denormal operand
	fpuZE = 1 << 2 // division by zero
	fpuOE = 1 << 3 // overflow
	fpuUE = 1 << 4 // underflow
	fpuPE = 1 << 5 // inexact result
	fpuSF = 1 << 6 // stack fault
	fpuES = 1 << 7 // an unmasked exception is pending
	fpuC0 = 1 << 8
	fpuC1 = 1 << 9
	fpuC2 = 1 << 10
	fpuC3 = 1 << 14
	fpuB  = 1 << 15 // copy of ES

	fpuExceptions = 0x3f
	fpuTopShift   = 11
	fpuTopMask    = 7 << fpuTopShift

	// fpuCWInit is the control word after FNINIT: all masked, 64 bits, nearest.
	fpuCWInit = 0x37f
	// fpuCWMask are the bits of the control word that software can set; bit 6
	// reads as one.
	fpuCWMask = 0x1f3f
	fpuCWOne  = 0x0040
)

// Init does what FNINIT does: control, status and tag word and the pointers
// take their initial values, the data registers keep theirs.
func (f *FPU) Init() {
	r := f.R
	*f = FPU{R: r, CW: fpuCWInit}
}

// Reset puts the unit into its initial configuration, as XRSTOR of a component
// in initial state does: Init with all data registers zero.
func (f *FPU) Reset() { *f = FPU{CW: fpuCWInit} }

// Status returns the status word as FNSTSW stores it, with TOP in it.
func (f *FPU) Status() uint16 { return f.SW | uint16(f.Top)<<fpuTopShift }

// SetStatus sets the status word and TOP. ES and B follow from the exception
// flags and the masks in CW, so CW must be set first.
func (f *FPU) SetStatus(sw uint16) {
	f.Top = uint8(sw>>fpuTopShift) & 7
	f.SW = sw &^ fpuTopMask
	f.updateES()
}

// updateES recomputes the summary bits ES and B from the flags and the masks.
func (f *FPU) updateES() {
	f.SW &^= fpuES | fpuB
	if f.SW&^f.CW&fpuExceptions != 0 {
		f.SW |= fpuES | fpuB
	}
}

// Pending says whether an unmasked exception waits to be raised as #MF by the
// next waiting x87 or MMX instruction.
func (f *FPU) Pending() bool { return f.SW&fpuES != 0 }

// MMX returns the MMX register n, 0 to 7.
func (f *FPU) MMX(n uint8) uint64 { return f.R[n&7].M }

// SetMMX sets the MMX register n, 0 to 7: sign and exponent of the x87
// register become ones. The caller has called EnterMMX.
func (f *FPU) SetMMX(n uint8, v uint64) { f.R[n&7] = F80{M: v, E: 0xffff} }

// EnterMMX is the effect of every MMX instruction but EMMS on the x87 state:
// TOP is 0 and no register is empty.
func (f *FPU) EnterMMX() { f.Top, f.Tag = 0, 0xff }

// EMMS marks all registers empty. TOP becomes 0 on AMD and Intel alike.
func (f *FPU) EMMS() { f.Top, f.Tag = 0, 0 }

// FullTag returns the 16-bit tag word of FNSTENV and FNSAVE, which is not kept
// but derived from the contents: 0 valid, 1 zero, 2 special, 3 empty; two bits
// a register, physical register 0 lowest.
func (f *FPU) FullTag() uint16 {
	var t uint16
	for i := range f.R {
		k := uint16(3)
		if f.Tag>>i&1 != 0 {
			k = f.R[i].tag()
		}
		t |= k << (2 * i)
	}
	return t
}

// setFullTag takes a 16-bit tag word: only empty or not is kept.
func (f *FPU) setFullTag(t uint16) {
	f.Tag = 0
	for i := range f.R {
		if t>>(2*i)&3 != 3 {
			f.Tag |= 1 << i
		}
	}
}

// tag classifies a number for the tag word: 0 valid, 1 zero, 2 special
// (NaN, infinity, denormal, unsupported).
func (a F80) tag() uint16 {
	switch e := a.E & 0x7fff; {
	case e == 0 && a.M == 0:
		return 1
	case e == 0 || e == 0x7fff || a.M>>63 == 0:
		return 2
	}
	return 0
}
