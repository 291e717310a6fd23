package replay

import (
	"fmt"

	"vplay/replay/x86"
)

// Comparison of extended state with a recorded XSAVE image. What the image's bytes mean
// is in x86/xsave_layout.go.

// sameXState reports whether the extended state equals img, an XSAVE image;
// nothing recorded means nothing to compare. The addresses of the last x87
// instruction do not take part: CPUs keep them or not.
func (m *Machine) sameXState(img []byte) bool { return m.diffXState(&m.CPU.State, img) == "" }

// diffXState names the first register in which a thread's extended state differs
// from img.
func (m *Machine) diffXState(got *x86.State, img []byte) string {
	if len(img) == 0 {
		return ""
	}
	var want x86.State
	if err := want.SetXState(img, m.s.layout); err != nil {
		return err.Error()
	}
	for i := range want.V {
		if want.V[i] != got.V[i] {
			return fmt.Sprintf("ymm%d: recorded %x, replayed %x", i, want.V[i], got.V[i])
		}
	}
	if d := diffWide(&want, got); d != "" {
		return d
	}
	if want.MXCSR != got.MXCSR {
		return fmt.Sprintf("mxcsr: recorded %#x, replayed %#x", want.MXCSR, got.MXCSR)
	}
	return diffFPU(&want.FPU, &got.FPU)
}

// diffWide names the first register of AVX-512 that differs.
func diffWide(want, got *x86.State) string {
	for i, k := range want.Wide.K {
		if k != got.Wide.K[i] {
			return fmt.Sprintf("k%d: recorded %#x, replayed %#x", i, k, got.Wide.K[i])
		}
	}
	for i := range uint8(32) {
		if w, g := want.ZMM(i), got.ZMM(i); w != g {
			return fmt.Sprintf("zmm%d: recorded %x, replayed %x", i, w, g)
		}
	}
	return ""
}

func diffFPU(want, got *x86.FPU) string {
	if want.CW != got.CW || want.SW != got.SW || want.Tag != got.Tag || want.Top != got.Top {
		return fmt.Sprintf("x87 control: recorded cw %#x sw %#x top %d tag %#x, replayed cw %#x sw %#x top %d tag %#x",
			want.CW, want.SW, want.Top, want.Tag, got.CW, got.SW, got.Top, got.Tag)
	}
	for i := range want.R {
		if want.R[i] != got.R[i] {
			return fmt.Sprintf("x87 register %d: recorded %x, replayed %x", i, want.R[i], got.R[i])
		}
	}
	return ""
}
