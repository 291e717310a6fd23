package x86

import "strings"

// Which state components are in use (XINUSE; SDM vol. 1, 13.6). AMD's CPUs
// decide by value. Intel's keep a bit for each component, which instructions
// set whatever they write and which few things clear: this file is about those.
//
// Measured on an Intel Xeon of family 6 model 207, 2026-11-21, by each row of
// the tables from XINUSE = 0 (tests/differential, TestInUse):
//
//   - x87: set by every x87 and MMX instruction but FNSTCW, FNSTSW and the
//     empty FENI, FDISI, FSETPM, thus also by FNINIT, FNSTENV and FWAIT.
//   - SSE: set by whatever writes a vector register, and by LDMXCSR.
//   - AVX: set by whatever writes a vector register in a 256-bit form, also
//     where the result has 128 bits (VEXTRACTI128), not by scalar forms with
//     VEX.L. VZEROUPPER clears it, VZEROALL clears both.
//   - Context switches keep all three (10^5 switches). Under a hypervisor the
//     SSE bit becomes set at any time (every CPUID, most interrupts): the
//     recorder therefore sets it where the kernel has cleared it.
//
// The bits are State.NotInUse. Blocks know nothing of the SSE bit: while it says
// not in use, instructions are executed one by one (CPU.runOn), and CPU.exec
// looks at it. What sets the other bits goes through the handlers of
// useHandlers, which the decoder binds.

// useHandlers execute an instruction and then mark the components of their
// index as in use.
var useHandlers = func() (t [xfeatModelled + 1]Handler) {
	for mask := range t {
		t[mask] = func(c *CPU, in *Inst) Exit {
			e := tablesVar.rows[in.Row].fn(c, in)
			if e == ExitNone {
				c.NotInUse &^= uint8(mask)
			}
			return e
		}
	}
	return t
}()

// rowUse says which components an instruction of a row puts in use: with a
// register or a memory operand, and in addition where VEX.L is set.
type rowUse struct{ reg, mem, wide uint8 }

// of returns the components for one instruction.
func (u *rowUse) of(in *Inst) uint8 {
	mask := u.reg
	if in.Flags&InstMem != 0 {
		mask = u.mem
	}
	if in.Flags&InstL != 0 && mask&xfeatSSE != 0 {
		mask |= u.wide
	}
	return mask
}

// readsX87 are the handlers of x87 rows that leave XINUSE alone.
var readsX87 = map[string]bool{"x87Fnstcw": true, "x87Fnstsw": true, "x87FnstswAX": true, "x87Nop": true}

// readsVector are the mnemonics, without V, whose first operand is a vector
// register that is not written.
var readsVector = map[string]bool{
	"COMISS": true, "COMISD": true, "UCOMISS": true, "UCOMISD": true, "PTEST": true, "TESTPS": true, "TESTPD": true,
	"PCMPESTRI": true, "PCMPISTRI": true, "MASKMOVDQU": true,
}

// useOf works the components out from the row's operands.
func useOf(r *Row) (u rowUse) {
	if r.Handler == "intUD" || r.Attr("refuse") {
		return u
	}
	if r.File == "x87" || r.File == "mmx" {
		if !readsX87[r.Handler] {
			u.reg, u.mem = xfeatX87, xfeatX87
		}
		return u
	}
	for i, o := range r.Operands {
		switch {
		case strings.HasPrefix(o, "xmm") || strings.HasPrefix(o, "ymm"):
			if o[0] == 'y' || r.Encoding.L == 1 {
				u.wide = xfeatAVX
			}
			if i > 0 || readsVector[strings.TrimPrefix(r.Mnemonic, "V")] {
				continue
			}
			u.reg |= xfeatSSE
			if len(o) == 3 {
				u.mem |= xfeatSSE // "xmmm128" is memory there
			}
		case o == "mm":
			u.reg |= xfeatX87
			u.mem |= xfeatX87
		case o == "mmm64": // CVTPI2PS and CVTPI2PD from memory leave the x87 unit alone
			u.reg |= xfeatX87
		}
	}
	if strings.TrimPrefix(r.Mnemonic, "V") == "LDMXCSR" {
		u.mem |= xfeatSSE
	}
	return u
}

// unuse marks components as not in use. Where that takes SSE, the block ends:
// what follows is executed by itself until it is in use again.
func (c *CPU) unuse(components uint8) {
	if c.ID.Vendor != VendorIntel {
		return
	}
	c.NotInUse |= components
	if components&xfeatSSE != 0 {
		c.stop |= stopCode
	}
}

// inUse is XINUSE: the modelled components that are not in their initial
// state. MXCSR is looked at apart from it (inUseMXCSR). AMD's Zen decides by
// value, the x87 pointers left out.
//
// Zen has a hidden bit besides: after FLDZ, FSTP st(0) the x87 unit counts as
// in use until FNCLEX or a load of its state, which a context switch is too.
// No program can rely on that, and it is not modelled.
func (s *State) inUse(v Vendor) uint64 {
	if v == VendorIntel {
		return xfeatModelled &^ uint64(s.NotInUse)
	}
	var u uint64
	f := s.FPU
	f.FIP, f.FDP, f.FOP, f.FCS, f.FDS = 0, 0, 0, 0, 0
	if f != (FPU{CW: fpuCWInit}) {
		u |= xfeatX87
	}
	var lo, hi uint64
	for i := range s.V {
		lo |= s.V[i][0] | s.V[i][1]
		hi |= s.V[i][2] | s.V[i][3]
	}
	if lo != 0 {
		u |= xfeatSSE
	}
	if hi != 0 {
		u |= xfeatAVX
	}
	return u
}

// inUseMXCSR is inUse where MXCSR counts to the SSE component: in the
// compacted format (SDM vol. 1, 13.10) and for XGETBV(1).
func (s *State) inUseMXCSR(v Vendor) uint64 {
	u := s.inUse(v)
	if s.MXCSR != mxcsrInit {
		u |= xfeatSSE
	}
	return u
}
