package x86

// SGDT, SIDT, SMSW, SLDT and STR with CR4.UMIP set, as Linux has it wherever
// the CPU can: they fault, and the kernel gives dummy values to user mode
// (linux arch/x86/kernel/umip.c, v5.4 and later; measured on Linux 6.18,
// 2026-11-21). Without UMIP the results are the kernel's real ones, which no
// recording holds: refused.

// The dummy values: umip.c, UMIP_DUMMY_GDT_BASE, UMIP_DUMMY_IDT_BASE, CR0_STATE;
// GDT_ENTRY_TSS of asm/segment.h. A process without an LDT reads 0.
const (
	umipGDT = 0xfffffffffffe0000
	umipIDT = 0xffffffffffff0000
	umipCR0 = 0x80050033
	umipTSS = 8 * 8
)

func intSGDT(c *CPU, in *Inst) Exit { return c.umipTable(in, umipGDT) }
func intSIDT(c *CPU, in *Inst) Exit { return c.umipTable(in, umipIDT) }
func intSMSW(c *CPU, in *Inst) Exit { return c.umipWord(in, umipCR0) }
func intSLDT(c *CPU, in *Inst) Exit { return c.umipWord(in, 0) }
func intSTR(c *CPU, in *Inst) Exit  { return c.umipWord(in, umipTSS) }

// hasUMIP: a CPU without is refused, since only its results are unknown.
func (c *CPU) hasUMIP() bool {
	has, known := c.ID.Has("UMIP")
	return has && known
}

// umipTable stores a limit of 0 and the base.
func (c *CPU) umipTable(in *Inst, base uint64) Exit {
	if !c.hasUMIP() {
		return c.refuse(in)
	}
	b := c.scratch[:10]
	b[0], b[1] = 0, 0
	for i := range 8 {
		b[2+i] = byte(base >> (8 * i))
	}
	return c.umipStore(c.ea(in), b)
}

// umipWord gives v: 16 bits to memory, to a register as many as the operand
// size says; other bits stay, since the kernel copies bytes into the saved
// registers.
func (c *CPU) umipWord(in *Inst, v uint64) Exit {
	switch {
	case !c.hasUMIP():
		return c.refuse(in)
	case in.Flags&InstMem != 0:
		b := c.scratch[:2]
		b[0], b[1] = byte(v), byte(v>>8)
		return c.umipStore(c.ea(in), b)
	case in.Size == 8:
		c.R[in.RM&15] = v
	case in.Size == 2:
		c.R[in.RM&15] = c.R[in.RM&15]&^0xffff | v&0xffff
	default:
		c.R[in.RM&15] = c.R[in.RM&15]&^0xffffffff | v
	}
	return ExitNone
}

// umipStore writes as the kernel does: a failure is a page fault at the
// operand's first byte, whatever the reason.
func (c *CPU) umipStore(a uint64, b []byte) Exit {
	e := c.storeBytes(a, b)
	if e == ExitFault {
		kind := c.Fault.Kind
		if kind == FaultNonCanon {
			kind = FaultNotMapped
		}
		c.Fault = Fault{Kind: kind, Access: Store, Addr: a}
	}
	return e
}
