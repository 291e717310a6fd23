package x86

import "encoding/binary"

// Control instructions: control and status words, environment, the whole
// state in the old formats. They leave the pointers of the last instruction
// alone.

// put stores the 10 bytes of a at b.
func (a F80) put(b []byte) {
	binary.LittleEndian.PutUint64(b, a.M)
	binary.LittleEndian.PutUint16(b[8:], a.E)
}

// f80At returns the number of the 10 bytes at b.
func f80At(b []byte) F80 {
	return F80{M: binary.LittleEndian.Uint64(b), E: binary.LittleEndian.Uint16(b[8:])}
}

// setControl sets the control word as FLDCW does.
func (f *FPU) setControl(cw uint16) {
	f.CW = cw&fpuCWMask | fpuCWOne
	f.updateES()
}

// x87Fwait is FWAIT, which only waits.
func x87Fwait(c *CPU, _ *Inst) Exit { return c.x87Wait() }

// x87Fnop does nothing, but it is the last instruction then.
func x87Fnop(c *CPU, in *Inst) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	return ExitNone
}

// x87Nop is the 8087's FENI and FDISI and the 80287's FSETPM: nothing happens,
// not even waiting.
func x87Nop(*CPU, *Inst) Exit { return ExitNone }

func x87Fldcw(c *CPU, in *Inst) Exit {
	v, _, e := c.x87Operand(in, 2)
	if e != ExitNone {
		return e
	}
	c.FPU.setControl(uint16(v))
	return ExitNone
}

func x87Fnstcw(c *CPU, in *Inst) Exit { return c.store16(c.ea(in), c.FPU.CW) }
func x87Fnstsw(c *CPU, in *Inst) Exit { return c.store16(c.ea(in), c.FPU.Status()) }

func x87FnstswAX(c *CPU, _ *Inst) Exit {
	c.R[RAX] = c.R[RAX]&^0xffff | uint64(c.FPU.Status())
	return ExitNone
}

func x87Fnclex(c *CPU, _ *Inst) Exit {
	c.FPU.SW &^= fpuExceptions | fpuSF | fpuES | fpuB
	return ExitNone
}

func x87Fninit(c *CPU, _ *Inst) Exit {
	c.FPU.Init()
	return ExitNone
}

// x87Ffree empties st(i).
func x87Ffree(c *CPU, in *Inst) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	c.FPU.Tag &^= 1 << c.FPU.phys(x87Index(in))
	c.FPU.SW &^= fpuC1
	return ExitNone
}

// x87Ffreep empties st(i) and pops (the alias DF C0+i).
func x87Ffreep(c *CPU, in *Inst) Exit {
	if e := x87Ffree(c, in); e != ExitNone {
		return e
	}
	c.FPU.pop()
	return ExitNone
}

func x87Fincstp(c *CPU, in *Inst) Exit { return c.x87MoveTop(in, 1) }
func x87Fdecstp(c *CPU, in *Inst) Exit { return c.x87MoveTop(in, 7) }

func (c *CPU) x87MoveTop(in *Inst, by uint8) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	c.FPU.Top = (c.FPU.Top + by) & 7
	c.FPU.SW &^= fpuC1
	return ExitNone
}

// envSize returns the size of an environment: 14 bytes with a 16-bit operand
// size (which REX.W overrides), else 28 (SDM vol. 1, figures 8-9 to 8-12, protected mode).
func envSize(in *Inst) int {
	if in.Flags&(InstOp16|InstW) == InstOp16 {
		return 14
	}
	return 28
}

// putEnv stores the environment; len(b) says which format.
func (f *FPU) putEnv(b []byte) {
	le := binary.LittleEndian
	words := [7]uint32{
		uint32(f.CW) | 0xffff0000, uint32(f.Status()) | 0xffff0000, uint32(f.FullTag()) | 0xffff0000,
		uint32(f.FIP), uint32(f.FCS) | uint32(f.FOP)<<16, uint32(f.FDP), uint32(f.FDS) | 0xffff0000,
	}
	for i, w := range words {
		if len(b) == 14 {
			le.PutUint16(b[2*i:], uint16(w))
		} else {
			le.PutUint32(b[4*i:], w)
		}
	}
}

// setEnv loads an environment.
func (f *FPU) setEnv(b []byte) {
	le := binary.LittleEndian
	var w [7]uint32
	for i := range w {
		if len(b) == 14 {
			w[i] = uint32(le.Uint16(b[2*i:]))
		} else {
			w[i] = le.Uint32(b[4*i:])
		}
	}
	f.CW = uint16(w[0])&fpuCWMask | fpuCWOne
	f.SetStatus(uint16(w[1]))
	f.setFullTag(uint16(w[2]))
	f.FIP, f.FDP = uint64(w[3]), uint64(w[5])
	f.FCS, f.FDS = uint16(w[4]), uint16(w[6])
	f.FOP = uint16(w[4]>>16) & 0x7ff
}

// dropSelectors follows each load of the pointers: a CPU without FCS and FDS
// (CPUID leaf 7, EBX bit 13) does not take them from memory either.
func (c *CPU) dropSelectors() {
	if noSelectors, _ := c.x87Rules(); noSelectors {
		c.FPU.FCS, c.FPU.FDS = 0, 0
	}
}

// probeArea checks an area of n bytes in the order that decides which address
// a fault reports: Zen looks at the first bytes, then at the last one.
func (c *CPU) probeArea(a uint64, first, n int, k Access) Exit {
	if e := c.probe(a, first, k); e != ExitNone {
		return e
	}
	if e := c.probe(a+uint64(n)-1, 1, k); e != ExitNone {
		return e
	}
	return c.probe(a, n, k)
}

// x87StoreArea and x87LoadArea store and load an environment or more.
func (c *CPU) x87StoreArea(in *Inst, b []byte) Exit {
	a := c.ea(in)
	if e := c.probeArea(a, envSize(in)/7, len(b), Store); e != ExitNone {
		return e
	}
	return c.storeBytes(a, b)
}

func (c *CPU) x87LoadArea(in *Inst, b []byte) Exit {
	a := c.ea(in)
	if e := c.probeArea(a, envSize(in)/7, len(b), Load); e != ExitNone {
		return e
	}
	return c.loadBytes(a, b)
}

// x87Fnstenv stores the environment and masks all exceptions.
func x87Fnstenv(c *CPU, in *Inst) Exit {
	var b [28]byte
	env := b[:envSize(in)]
	c.FPU.putEnv(env)
	if e := c.x87StoreArea(in, env); e != ExitNone {
		return e
	}
	c.FPU.setControl(c.FPU.CW | fpuExceptions)
	return ExitNone
}

func x87Fldenv(c *CPU, in *Inst) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	var b [28]byte
	env := b[:envSize(in)]
	if e := c.x87LoadArea(in, env); e != ExitNone {
		return e
	}
	c.FPU.setEnv(env)
	c.dropSelectors()
	return ExitNone
}

// x87Fnsave stores the environment and the registers, st(0) first, and
// initialises the unit.
func x87Fnsave(c *CPU, in *Inst) Exit {
	var b [108]byte
	n := envSize(in)
	c.FPU.putEnv(b[:n])
	for i := range uint8(8) {
		c.FPU.st(i).put(b[n+10*int(i):])
	}
	if e := c.x87StoreArea(in, b[:n+80]); e != ExitNone {
		return e
	}
	c.FPU.Init()
	return ExitNone
}

func x87Frstor(c *CPU, in *Inst) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	var b [108]byte
	n := envSize(in)
	if e := c.x87LoadArea(in, b[:n+80]); e != ExitNone {
		return e
	}
	c.FPU.setEnv(b[:n])
	c.dropSelectors()
	for i := range uint8(8) {
		c.FPU.R[c.FPU.phys(i)] = f80At(b[n+10*int(i):])
	}
	return ExitNone
}
