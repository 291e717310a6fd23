//go:build linux && amd64

package record

import (
	"sync"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// Registers in the recording's form: the general ones, and the extended state as an XSAVE
// image. When they are read and set is for the files of the stops.

// regsOf converts the kernel's register file to the recording's.
func regsOf(r *ptrace.Regs) checkpoint.Regs {
	return checkpoint.Regs{
		R: [16]uint64{
			r.Rax, r.Rcx, r.Rdx, r.Rbx, r.Rsp, r.Rbp, r.Rsi, r.Rdi,
			r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15,
		},
		RIP: r.Rip, RFLAGS: r.Eflags, FSBase: r.Fs_base, GSBase: r.Gs_base,
		CS: uint16(r.Cs), SS: uint16(r.Ss), DS: uint16(r.Ds), ES: uint16(r.Es), FS: uint16(r.Fs), GS: uint16(r.Gs),
	}
}

// register returns a general register by its number (Intel SDM volume 2, table 2-2).
func register(r *ptrace.Regs, n byte) *uint64 {
	return [...]*uint64{
		&r.Rax, &r.Rcx, &r.Rdx, &r.Rbx, &r.Rsp, &r.Rbp, &r.Rsi, &r.Rdi,
		&r.R8, &r.R9, &r.R10, &r.R11, &r.R12, &r.R13, &r.R14, &r.R15,
	}[n&15]
}

// debugRegs returns the registers for an event that needs only their hash.
func (s *session) debugRegs(r *checkpoint.Regs) *checkpoint.Regs {
	if s.opt.FullRegs {
		return r
	}
	return nil
}

// Where XSTATE_BV stands in an XSAVE image, and its bit of the XMM registers
// (SDM vol. 1, 13.4.2).
const (
	xstateBV  = 512
	xstateSSE = 1 << 1
)

// isIntel says whether this CPU keeps XINUSE apart from the values.
var isIntel = sync.OnceValue(func() bool {
	_, b, c, d := cpuid(0, 0)
	return b == 0x756e6547 && d == 0x49656e69 && c == 0x6c65746e // GenuineIntel
})

// getXState returns a copy of the XSAVE image in the standard format.
//
// Intel's CPUs have a bit that says whether the XMM registers are in use, which
// XSAVEC shows to programs. The kernel clears it for a new image and for a
// signal handler, and under a hypervisor any exit to it may set it again. It is
// set here, with the registers' values as they are, so that it cannot change
// behind the recording's back.
func getXState(pid int) ([]byte, error) {
	var buf [ptrace.XStateMax]byte
	n, err := ptrace.GetXState(pid, buf[:])
	if err != nil {
		return nil, err
	}
	img := append([]byte(nil), buf[:n]...)
	if isIntel() && len(img) > xstateBV && img[xstateBV]&xstateSSE == 0 {
		img[xstateBV] |= xstateSSE
		if err := ptrace.SetXState(pid, img); err != nil {
			return nil, err
		}
	}
	return img, nil
}
