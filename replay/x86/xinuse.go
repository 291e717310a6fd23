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
// That is what the state decides. Both makers' CPUs also count components as in
// use that are in their initial state, for reasons outside of the program:
//
//   - An AMD EPYC of family 25 model 1 under KVM (2026-11-22, 3*10^6 tries each):
//     XMM after VZEROALL 1 in 10^4, after zeros loaded from memory nearly always;
//     YMM after such a load; x87 after any load and pop, for good. An interrupt
//     between may clear such a bit or set one.
//   - Intel under a hypervisor: the SSE bit, as above.
//
// What depends on that is asked of the CPU's owner (CPU.AskInUse).
//
// The bits are State.NotInUse. Blocks know nothing of the SSE bit: while it says
// not in use, instructions are executed one by one (CPU.runOn), and CPU.exec
// looks at it. What sets the other bits goes through the handlers of
// useHandlers, which CPU.handler returns.

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
type rowUse struct {
	reg, mem, wide uint8
	dest           destinations
	scalar         bool // of AVX-512, whatever the length
}

// of returns the components for one instruction.
func (u *rowUse) of(in *Inst) uint8 {
	if u.dest&(destMask|destZMM) != 0 {
		return u.ofWide(in)
	}
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

// UsesAVX reports whether in puts the upper halves of YMM registers in use (State.NotInUse).
func (in *Inst) UsesAVX() bool { return tablesVar.rows[in.Row].use.of(in)&xfeatAVX != 0 }

// useOf works the components out from the row's operands.
func useOf(r *Row) (u rowUse) {
	if r.Handler == "intUD" || r.Attr("refuse") {
		return u
	}
	u.scalar = r.Encoding.EVEX && r.Attr("lig")
	if u.dest = destinationsOf(r); r.Encoding.EVEX || r.File == "opmask" {
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
// More may be in use than that: see doubtful.
func (s *State) inUse(v Vendor) uint64 {
	var u uint64
	if s.PKRU != 0 {
		u |= xfeatPKRU
	}
	if v == VendorIntel {
		return u | xfeatModelled&^uint64(s.NotInUse)
	}
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
	return u | s.Wide.inUse()
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

// doubtful are the components that a CPU may count as in use although they are
// in their initial state.
func doubtful(v Vendor) uint64 {
	if v == VendorIntel {
		return xfeatSSE
	}
	return xfeatModelled
}

// InUse is what an instruction would show or store beyond what the state decides.
type InUse struct {
	// Maybe are the components in question, as bits of XSTATE_BV: each may count as
	// in use or not. They are in their initial state.
	Maybe uint64
	// Area is the address of the XSAVE area, the byte at Area+XSaveHeader shows
	// them; 0 for XGETBV, whose result in rax does.
	Area uint64
	// Parts are the bytes of these components in the area.
	Parts []InUsePart
	// Optional says that a part is stored only if its component counts as in use.
	Optional bool
}

// InUsePart is a piece of a component in an XSAVE area.
type InUsePart struct {
	Component uint64 // a bit of XSTATE_BV
	Addr      uint64
	Bytes     []byte // in the initial state
}

// XSaveHeader is the offset of XSTATE_BV in an XSAVE area (SDM vol. 1, 13.4.2).
const XSaveHeader = xsaveHeader

// doubt makes the InUse of a save to an area at a.
func (c *CPU) doubt(a uint64, l *XLayout, at *[64]uint32, maybe uint64, mxcsr, wide, optional bool) InUse {
	u := InUse{Maybe: maybe, Area: a, Optional: optional}
	c.eachPart(l, at, maybe, mxcsr, wide, func(component uint64, off uint32, b []byte) {
		u.Parts = append(u.Parts, InUsePart{component, a + uint64(off), append([]byte(nil), b...)})
	})
	return u
}

// shown returns the components of wanted that an instruction is to show as in use:
// those of inuse, which the state decides, and of the others what the owner says.
// The exit is ExitInUse where the owner is to be asked, with what doubt returns.
func (c *CPU) shown(inuse, wanted uint64, doubt func(maybe uint64) InUse) (uint64, Exit) {
	maybe := wanted &^ inuse & doubtful(c.ID.Vendor)
	switch {
	case maybe == 0 || !c.AskInUse:
		return inuse, ExitNone
	case c.inUseAsked:
		return inuse | c.inUseAnswer&maybe, ExitNone
	}
	c.inUseDoubt = doubt(maybe)
	return inuse, ExitInUse
}

// InUse returns what the last ExitInUse was about.
func (c *CPU) InUse() InUse { return c.inUseDoubt }

// StepInUse is Step for the instruction of an ExitInUse: of the components in
// question those in components count as in use.
func (c *CPU) StepInUse(components uint64) Exit {
	c.inUseAnswer, c.inUseAsked = components, true
	e := c.Step()
	c.inUseAsked = false
	return e
}

// AtXRSTOR reports whether the instruction at RIP is an XRSTOR, and the address
// of its area.
func (c *CPU) AtXRSTOR() (area uint64, is bool) {
	in := &c.step
	if c.decodeAt(c.RIP, in) != ExitNone || tablesVar.rows[in.Row].Mnemonic != "XRSTOR" {
		return 0, false
	}
	return c.ea(in), true
}
