package x86

// Segments as Linux has them (arch/x86/include/asm/segment.h,
// arch/x86/kernel/cpu/common.c): the descriptors of privilege level 3 in the
// GDT. Those for threads (set_thread_area) and a local descriptor table
// (modify_ldt) are not modelled: 64-bit programs have neither.

// descriptor is what LAR and LSL tell of a segment.
type descriptor struct {
	access uint32 // bits 8 to 23 of the descriptor's upper half
	limit  uint32
	write  bool
}

// gdt has the descriptors that user mode can see, by selector without
// privilege level. The CPU's and node's number is the limit of one.
var gdt = map[uint16]descriptor{
	selUser32CS &^ 3: {0xcffb00, 0xffffffff, false},
	selUserDS &^ 3:   {0xcff300, 0xffffffff, true},
	selUserCS &^ 3:   {0xaffb00, 0xffffffff, false},
	selCPUNode &^ 3:  {0x40f500, 0, false},
}

// selected returns the descriptor that the 16-bit operand selects.
func (c *CPU) selected(in *Inst) (d descriptor, sel uint16, ok bool, e Exit) {
	v, e := c.rm(in, 2)
	sel = uint16(v) &^ 3
	d, ok = gdt[sel]
	return d, sel, ok, e
}

func intVERR(c *CPU, in *Inst) Exit {
	_, _, ok, e := c.selected(in)
	if e == ExitNone {
		c.setZF(ok)
	}
	return e
}

func intVERW(c *CPU, in *Inst) Exit {
	d, _, _, e := c.selected(in)
	if e == ExitNone {
		c.setZF(d.write)
	}
	return e
}

func intLAR(c *CPU, in *Inst) Exit {
	d, _, ok, e := c.selected(in)
	if e != ExitNone {
		return e
	}
	c.setZF(ok)
	if ok {
		c.setReg(in, uint64(d.access))
	}
	return ExitNone
}

// intLSL: where the vDSO's getcpu asks for its CPU, the answer is the
// recording's.
func intLSL(c *CPU, in *Inst) Exit {
	d, sel, ok, e := c.selected(in)
	if e != ExitNone {
		return e
	}
	if sel == selCPUNode&^3 {
		if c.ID.TSCAux == nil {
			return c.refuse(in)
		}
		d.limit = *c.ID.TSCAux
	}
	c.setZF(ok)
	if ok {
		c.setReg(in, uint64(d.limit))
	}
	return ExitNone
}

// intRDPID reads IA32_TSC_AUX, in which Linux keeps the numbers of CPU and node
// (vol. 4; arch/x86/kernel/cpu/common.c, setup_getcpu).
func intRDPID(c *CPU, in *Inst) Exit {
	if c.ID.TSCAux == nil {
		return c.refuse(in)
	}
	c.R[in.RM&15] = uint64(*c.ID.TSCAux)
	return ExitNone
}

// intLoadFar is LSS, LFS and LGS (0F B2, B4, B5): an offset, and behind it the
// selector.
func intLoadFar(c *CPU, in *Inst) Exit {
	offset, sel, e := c.farPointer(in)
	if e != ExitNone {
		return e
	}
	if e = c.loadSeg(in.Opc&7, sel); e == ExitNone {
		c.setReg(in, offset)
	}
	return e
}

// farPointer loads the memory operand m16:16, m16:32 or m16:64. AMD has no
// 64-bit offset (APM vol. 3, JMP (Far), LDS): with REX.W the operand is m16:32
// and the offset is zero-extended (family 25 model 1, 2026-11-22).
func (c *CPU) farPointer(in *Inst) (offset uint64, sel uint16, e Exit) {
	size := in.Size
	if c.ID.Vendor == VendorAMD {
		size = min(size, 4)
	}
	a := c.ea(in)
	if offset, e = c.loadN(a, size); e == ExitNone {
		sel, e = c.load16(a + uint64(size))
	}
	return offset, sel, e
}
