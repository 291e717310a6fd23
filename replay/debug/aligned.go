package debug

import (
	"fmt"
	"slices"

	"vplay/checkpoint"
	"vplay/replay/x86"
)

// Accesses that were refused because of their alignment. Code that a compiler made from
// types or intrinsics that promise it uses MOVAPS and the like; the signal is that of an
// address that is not canonical, and says no address either.

// anyCPU decodes the instructions of all CPUs.
var anyCPU = &x86.CPUIdentity{Vendor: x86.VendorAMD}

// Misaligned names the address that the instruction in b would access, and the registers
// that it is made of, where it raises #GP because that is no multiple of what it wants
// (SDM vol. 1, 4.1.1 and 10.4.1.1). "" where it is one.
func Misaligned(st *x86.State, b []byte) string {
	in, err := x86.DecodeInst(b, st.RIP, anyCPU)
	if err != nil || in.Flags&x86.InstMem == 0 {
		return ""
	}
	want := alignment(&in)
	a := (&x86.CPU{State: *st}).Address(&in)
	if want == 0 || a%want == 0 {
		return ""
	}
	s := fmt.Sprintf("%#x is no multiple of %d, as this instruction wants it", a, want)
	sep := ": "
	for _, r := range []uint8{in.Base, in.Index} {
		if r < x86.NoReg {
			s += fmt.Sprintf("%s%%%s=%#x", sep, checkpoint.RegNames[r], st.R[r])
			sep = ", "
		}
	}
	return s
}

// alignment is what the address of in's memory operand must be a multiple of, in bytes; 0
// for any address. Those of EVEX are not known here: what they want depends on their masks, too.
func alignment(in *x86.Inst) uint64 {
	row := &x86.Rows()[in.Row]
	isWide := in.Flags&x86.InstL != 0
	switch {
	case slices.Contains(row.Attrs, "align32") && isWide:
		return 32
	case slices.Contains(row.Attrs, "align32"), slices.Contains(row.Attrs, "align16"), row.Mnemonic == "CMPXCHG16B":
		return 16
	}
	return 0
}
