package x86

import "unsafe"

// What a compiler to host code (package jit) needs of the processor: where its parts lie,
// and the ways to execute what the compiler leaves to others.

// HostLayout says where generated code finds the parts of a CPU, in bytes from its
// beginning. The CPU never moves.
type HostLayout struct {
	R, V           int32 // State.R and State.V
	FSBase, GSBase int32
	MXCSR          int32
	// The translation caches: TLBEntries entries of 16 bytes, the address of a page and
	// its bytes in the host's memory. The page of address a is in entry a>>12 mod
	// TLBEntries, or its entry has another page's address.
	LoadTLB, StoreTLB int32
	// Pages for direct use in part: PartialEntries entries of 32 bytes, the address of a page, its bytes, the bits
	// of those that are plain, and what an access adds to the count. The page of address a is in entry a>>12 mod PartialEntries.
	LoadPartial, StorePartial int32
	Host                      int32 // CPU.Host
	HostTable                 int32 // CPU.HostTable
}

// HostTableSize is how many words CPU.HostTable has.
const HostTableSize = 256

// TLBEntries is the size of a translation cache.
const TLBEntries = tlbSize

// Layout returns the layout of every CPU.
func Layout() HostLayout {
	var c CPU
	return HostLayout{
		R: int32(unsafe.Offsetof(c.R)), V: int32(unsafe.Offsetof(c.V)),
		FSBase: int32(unsafe.Offsetof(c.FSBase)), GSBase: int32(unsafe.Offsetof(c.GSBase)),
		MXCSR:   int32(unsafe.Offsetof(c.MXCSR)),
		LoadTLB: int32(unsafe.Offsetof(c.rtlb)), StoreTLB: int32(unsafe.Offsetof(c.wtlb)),
		LoadPartial: int32(unsafe.Offsetof(c.rpartial)), StorePartial: int32(unsafe.Offsetof(c.wpartial)),
		Host: int32(unsafe.Offsetof(c.Host)), HostTable: int32(unsafe.Offsetof(c.HostTable)),
	}
}

// Direct returns the host's address of the n bytes at a, if the translation cache has them for that kind of access on one page, else 0.
func (c *CPU) Direct(a, n uint64, store bool) uintptr {
	t := &c.rtlb
	if store {
		t = &c.wtlb
	}
	e := &t[a>>12&tlbMask]
	if off := a - e.base; off <= pageSize-n {
		return uintptr(unsafe.Pointer(e.page)) + uintptr(off)
	}
	return 0
}

// ArithFlags returns the six arithmetic flags in their RFLAGS places.
func (s *State) ArithFlags() uint64 { return s.arithFlags() }

// SetArithFlags sets the six arithmetic flags from their RFLAGS places; other bits of
// f are ignored.
func (s *State) SetArithFlags(f uint64) { s.setFlagsRaw(f) }

// AddFlags sets the arithmetic flags of r = a + b, for operands of size bytes.
func (s *State) AddFlags(a, b, r uint64, size uint8) { s.addFlags(a, b, r, size) }

// SubFlags sets those of r = a - b.
func (s *State) SubFlags(a, b, r uint64, size uint8) { s.subFlags(a, b, r, size) }

// LogicFlags sets those of the result r of AND, OR, XOR or TEST.
func (s *State) LogicFlags(r uint64, size uint8) { s.logicFlags(r, size) }

// Execute executes in, which stands at RIP, and retires it, as a part of Engine.Run.
// goesOn reports that the engine may go on behind it; else it must leave with e.
func (c *CPU) Execute(in *Inst) (e Exit, goesOn bool) {
	e = c.exec(in)
	if e == ExitNone && c.stop&stopOwner != 0 {
		e = ExitAttention
	}
	goesOn = e == ExitNone && c.stop == 0 && !c.apart() && !c.interrupt.Load()
	c.stop = 0
	return e, goesOn
}

// MustLook reports whether an engine must leave before the next instruction, because
// CPU.Run has something to look at.
func (c *CPU) MustLook(limit uint64) bool {
	return c.Retired >= limit || c.eflags&(FlagTF|FlagAC) != 0 || c.apart() ||
		c.interrupt.Load() || c.HasBreakpoint(c.RIP)
}

// HasBreakpoint reports whether there is a breakpoint at pc.
func (c *CPU) HasBreakpoint(pc uint64) bool {
	_, has := c.breaks[pc]
	return has
}
