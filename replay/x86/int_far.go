package x86

// Far transfers of control that stay in 64-bit user mode. One that leads to the
// 32-bit code segment is refused by name; any other selector raises #GP (SDM
// vol. 2A, CALL; vol. 2B, JMP, RET; IRET).

// codeSegment judges a code selector. A jump or call takes any privilege level
// in it, a return only 3.
func (c *CPU) codeSegment(in *Inst, sel uint16, isReturn bool) Exit {
	if !isReturn {
		sel |= 3
	}
	switch sel {
	case selUserCS:
		return ExitNone
	case selUser32CS:
		return c.refuse(in)
	}
	return c.gp()
}

// onStack makes #SS of the fault of a stack access through an address that is
// not canonical.
func (c *CPU) onStack(e Exit) Exit {
	if e == ExitFault && c.Fault.Kind == FaultNonCanon {
		c.Fault.Kind = FaultSS
	}
	return e
}

// Slots of the stack that RETF and IRET pop, lowest first.
const (
	slotRIP = iota
	slotCS
	slotFlags
	slotRSP
	slotSS
	slots
)

// The orders of reading decide which fault is seen. Intel's are measured (family
// 6 model 207, 2026-11-21), and selectors are read as two bytes.
var (
	upward     = []uint8{slotRIP, slotCS, slotFlags, slotRSP, slotSS}
	intelRETF  = []uint8{slotCS, slotRIP}
	intelIRET  = []uint8{slotFlags, slotCS, slotRIP}
	intelStack = []uint8{slotSS, slotRSP} // when CS has been judged
)

// popped loads slots of the operand size in the order.
func (c *CPU) popped(in *Inst, s *[slots]uint64, order []uint8) Exit {
	for _, i := range order {
		size := in.Size
		if c.ID.Vendor == VendorIntel && (i == slotCS || i == slotSS) {
			size = 2
		}
		v, e := c.loadN(c.R[RSP]+uint64(i)*uint64(in.Size), size)
		if e != ExitNone {
			return c.onStack(e)
		}
		s[i] = v
	}
	return ExitNone
}

func intRETF(c *CPU, in *Inst) Exit {
	order := upward[:2]
	if c.ID.Vendor == VendorIntel {
		order = intelRETF
	}
	var s [slots]uint64
	if e := c.popped(in, &s, order); e != ExitNone {
		return e
	}
	if e := c.codeSegment(in, uint16(s[slotCS]), true); e != ExitNone {
		return e
	}
	if !canonical(s[slotRIP]) {
		return c.badTarget(s[slotRIP])
	}
	c.RIP = s[slotRIP]
	c.R[RSP] += 2*uint64(in.Size) + in.Imm
	c.Seg[CS] = selUserCS
	return ExitNone
}

// iretMask are the flags that IRET changes in user mode.
const iretMask = popfMask | FlagRF

func intIRET(c *CPU, in *Inst) Exit {
	if c.Flags()&FlagNT != 0 {
		return c.gp()
	}
	first, then := upward, []uint8(nil)
	if c.ID.Vendor == VendorIntel {
		first, then = intelIRET, intelStack
	}
	var s [slots]uint64
	if e := c.popped(in, &s, first); e != ExitNone {
		return e
	}
	judged := c.codeSegment(in, uint16(s[slotCS]), true)
	if judged == ExitFault {
		return judged
	}
	if e := c.popped(in, &s, then); e != ExitNone {
		return e
	}
	if judged != ExitNone {
		return judged
	}
	if uint16(s[slotSS]) != selUserDS {
		return c.gp()
	}
	if !canonical(s[slotRIP]) {
		return c.badTarget(s[slotRIP])
	}
	m := uint64(iretMask)
	if in.Size == 2 {
		m &= 0xffff
	}
	c.popFlags(c.Flags()&^m | s[slotFlags]&m)
	c.RIP, c.R[RSP] = s[slotRIP], s[slotRSP]
	c.Seg[CS], c.Seg[SS] = selUserCS, selUserDS
	return ExitNone
}

// farTarget loads and judges the operand of a far jump or call.
func (c *CPU) farTarget(in *Inst) (uint64, Exit) {
	target, sel, e := c.farPointer(in)
	if e != ExitNone {
		return 0, e
	}
	if e = c.codeSegment(in, sel, false); e != ExitNone {
		return 0, e
	}
	return target, ExitNone
}

func intJmpFar(c *CPU, in *Inst) Exit {
	target, e := c.farTarget(in)
	if e != ExitNone {
		return e
	}
	if !canonical(target) {
		return c.badTarget(target)
	}
	c.RIP = target
	return ExitNone
}

// intCallFar pushes CS, then the return address, each of the operand size. What
// is pushed stays where a later step faults (measured on Intel, 2026-11-21).
func intCallFar(c *CPU, in *Inst) Exit {
	target, e := c.farTarget(in)
	if e != ExitNone {
		return e
	}
	size := uint64(in.Size)
	if e = c.storeN(c.R[RSP]-size, in.Size, uint64(c.Seg[CS])); e != ExitNone {
		return c.onStack(e)
	}
	if e = c.storeN(c.R[RSP]-2*size, in.Size, c.next(in)); e != ExitNone {
		return c.onStack(e)
	}
	if !canonical(target) {
		return c.badTarget(target)
	}
	c.R[RSP] -= 2 * size
	c.RIP = target
	return ExitNone
}
