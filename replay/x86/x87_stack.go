package x86

// What the x87 handlers share: waiting, pointers, the register stack and its
// faults, raising exceptions.
//
// Every handler is in three steps: it checks for a pending exception and
// reaches its memory, any of which may fault; it notes the instruction's
// addresses; it computes and commits what the unmasked exceptions allow.
//
// in.Imm of an x87 instruction holds the opcode's low three bits and the
// ModRM byte, as FOP does.

// x87Operation returns the digit of the opcode (ModRM.reg).
func x87Operation(in *Inst) uint8 { return uint8(in.Imm>>3) & 7 }

// x87Index returns i of st(i).
func x87Index(in *Inst) uint8 { return uint8(in.Imm) & 7 }

// x87Wait raises #MF where an unmasked exception is pending.
func (c *CPU) x87Wait() Exit {
	if c.FPU.SW&fpuES != 0 {
		return c.fault(FaultMF, 0)
	}
	return ExitNone
}

// x87Note sets the pointers of the last instruction, for one without memory
// operand. What is set when depends on the CPU: AMD keeps all of them for each
// instruction. Intel keeps the opcode only for an instruction that raised an
// unmasked exception (SDM vol. 1, 8.1.9.1), newer ones the operand's address
// too, and no selectors (CPUID leaf 7, EBX bits 6 and 13).
func (c *CPU) x87Note(in *Inst) {
	f := &c.FPU
	f.FIP = c.RIP
	if noSelectors, _ := c.x87Rules(); !noSelectors {
		f.FCS = c.Seg[CS]
	}
	if c.ID.Vendor != VendorIntel {
		f.FOP = uint16(in.Imm) & 0x7ff
	}
}

// x87Rules returns NoSelectors and DataOnException of the CPU's layout.
func (c *CPU) x87Rules() (noSelectors, dataOnException bool) {
	if l := &c.ID.Layout; l.XCR0 != 0 {
		return l.NoSelectors, l.DataOnException
	}
	intel := c.ID.Vendor == VendorIntel // as in DefaultLayout
	return intel, intel
}

// x87NoteMem sets the pointers for an instruction with its operand at a.
func (c *CPU) x87NoteMem(in *Inst, a uint64) {
	c.x87Note(in)
	if _, onException := c.x87Rules(); !onException {
		c.x87NoteData(in, a)
	}
}

func (c *CPU) x87NoteData(in *Inst, a uint64) {
	seg := uint8(DS)
	switch {
	case in.Seg == FS:
		a -= c.FSBase
		seg = FS
	case in.Seg == GS:
		a -= c.GSBase
		seg = GS
	case in.Base == RSP || in.Base == RBP:
		seg = SS
	}
	c.FPU.FDP = a
	if noSelectors, _ := c.x87Rules(); !noSelectors {
		c.FPU.FDS = c.Seg[seg]
	}
}

// x87Raise takes over the exceptions of an operation; ok is false where
// nothing may be stored.
func (c *CPU) x87Raise(in *Inst, x *fctx) (ok bool) {
	if x.ex&^x.cw&fpuExceptions != 0 && c.ID.Vendor == VendorIntel {
		c.FPU.FOP = uint16(in.Imm) & 0x7ff
		if _, onException := c.x87Rules(); onException && in.Flags&InstMem != 0 {
			c.x87NoteData(in, c.ea(in))
		}
	}
	return c.FPU.raise(x)
}

// x87StackFault raises a stack overflow or underflow; ok says that it is
// masked, and the indefinite is to be stored.
func (c *CPU) x87StackFault(in *Inst, overflow bool) (ok bool) {
	x := fctx{cw: c.FPU.CW, ex: fpuIE | fpuSF}
	if overflow {
		x.ex |= fpuC1
	}
	return c.x87Raise(in, &x)
}

// phys returns the physical number of st(i).
func (f *FPU) phys(i uint8) uint8 { return (f.Top + i) & 7 }

// st returns st(i), whether empty or not.
func (f *FPU) st(i uint8) F80 { return f.R[(f.Top+i)&7] }

// full says whether st(i) is not empty.
func (f *FPU) full(i uint8) bool { return f.Tag>>((f.Top+i)&7)&1 != 0 }

// set stores a into st(i).
func (f *FPU) set(i uint8, a F80) {
	p := (f.Top + i) & 7
	f.R[p] = a
	f.Tag |= 1 << p
}

// pop empties st(0) and increments TOP.
func (f *FPU) pop() {
	f.Tag &^= 1 << f.Top
	f.Top = (f.Top + 1) & 7
}

// push decrements TOP and stores a in the new st(0), which the caller has
// found empty or may overwrite.
func (f *FPU) push(a F80) {
	f.Top = (f.Top - 1) & 7
	f.set(0, a)
}

// ctx starts an operation.
func (f *FPU) ctx() fctx { return fctx{cw: f.CW} }

// raise takes over the exceptions of an operation and its C1, which is cleared
// where the operation did not round up. ok is false where nothing may be stored.
func (f *FPU) raise(x *fctx) (ok bool) {
	f.SW = f.SW&^fpuC1 | x.ex
	if x.ex&^f.CW&fpuExceptions != 0 {
		f.SW |= fpuES | fpuB
	}
	return !x.stopped()
}

// setCC sets the condition bits C3, C2, C0 and clears C1.
func (f *FPU) setCC(cc uint16) {
	f.SW = f.SW&^(fpuC0|fpuC1|fpuC2|fpuC3) | cc
}
