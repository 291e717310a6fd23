package x86

import "sync/atomic"

// The processor as its owner sees it: its identity, its switches, breakpoints and
// interrupts. The registers are in state.go, execution is in run.go and step.go.

// Vendor is the maker of the emulated CPU; it keys undefined flags and
// approximation tables.
type Vendor uint8

// The vendors.
const (
	VendorIntel Vendor = iota
	VendorAMD
)

// CPUIdentity says which CPU is emulated.
type CPUIdentity struct {
	Vendor                  Vendor
	Family, Model, Stepping uint32 // display values; some facts are of an AMD generation (isZen4)
	XCR0                    uint64 // what XGETBV(0) returns
	// Layout places the components of XSAVE areas; with Layout.XCR0 zero
	// DefaultLayout of Vendor and XCR0 is used.
	Layout XLayout
	// TSCAux is what RDPID reads, nil when the recording does not tell.
	TSCAux *uint32
	// Leaves are the answers of the CPUID instruction. With Edited they hide
	// what the CPU executes all the same; Real has those of its own answers
	// that differ.
	Leaves, Real []CPUIDLeaf
	Edited       bool
	// Learnt are the bits that the answers lack all the same; nil says that there are none, and never will be (LearnHidden).
	Learnt *Learnt
}

// CPU executes instructions of one thread. Its exported State may be read
// and written whenever Run and Step are not running; see FlushTLB for what
// the owner must say after changing memory behind its back.
type CPU struct {
	State
	ID    *CPUIdentity
	Bus   Bus
	Fault Fault // set with ExitFault
	// SkipBreak, when set, makes the next Run ignore a breakpoint at the
	// address it starts from; Run clears it.
	SkipBreak bool
	// Sieve, when set, thins out the stops at the one breakpoint it is for.
	Sieve *Sieve
	// Conditions are of the breakpoints at which Pass is asked; nil for none.
	Conditions *Conditions
	// Pass, when set, is asked at each breakpoint that Run comes to, with the state
	// up to date, whether to go on without stopping. It may read the guest's memory
	// in ways that neither change it nor flush anything.
	Pass func() bool
	// OnCode, when set, is called with the code that may be executed from here on, once
	// for each range [from, to) since the last FlushTLB: blocks, of which not every
	// instruction need be executed, and addresses that Run came to where nothing can be.
	OnCode func(from, to uint64)
	// OnInst, when set, is called before each instruction that exec executes, with the state up to date: of
	// TraceEngine's those that it does not execute itself. Before a REP string instruction it is called again for each part
	// that Step executes of it.
	OnInst func(in *Inst)
	// AfterInst, when set, is called behind each instruction that OnInst is called before, with
	// what it came to. With ExitNone and ExitSyscall, and for the owner who then completes it
	// with ExitRDTSC, ExitRDTSCP, ExitCPUID and ExitRandom, it was executed; else nothing was done,
	// but for those iterations of a REP that RepIter counts.
	AfterInst func(in *Inst, e Exit)
	// AskInUse makes XSAVE, XSAVEOPT, XSAVEC and XGETBV stop with ExitInUse where
	// they show more than the state decides. InUse says what, and StepInUse
	// executes the instruction. Without it the state decides alone.
	AskInUse bool

	inUseDoubt  InUse  // of the last ExitInUse
	inUseAnswer uint64 // of StepInUse
	inUseAsked  bool   // StepInUse is running

	stop      uint8       // stopOwner and others: leave the block after this instruction
	stepping  bool        // Step is running: REP stops after one iteration
	interrupt atomic.Bool // Interrupt was called
	breaks    map[uint64]struct{}
	undef     undefined

	scratch  [64]byte // for Bus.Read and Bus.Write, so that nothing escapes
	scratch2 [64]byte
	step     Inst              // the instruction Step decodes
	buildBuf [maxBlock]decoded // of the block that is being made
	opBuf    [maxBlock]op

	engine      Engine
	flushesCode bool // Bus is a CodeFlusher

	shiftAux uint64 // AF after shifts, as a bit of aux: auxAF on AMD, where OF differs too, else 0

	// Host is for an engine whose code finds words of its own there (HostLayout).
	Host [44]uint64
	// HostTable is a table for such code.
	HostTable [HostTableSize]uint64

	code codeCache
	rtlb [tlbSize]tlbEntry
	wtlb [tlbSize]tlbEntry

	rslow, wslow   slowPages
	partialBus     PartialBus // Bus, or nil
	mappedBus      MappedBus  // Bus, or nil
	log            *AccessLog // nil: nobody wants to know all accesses
	rpartial       partialPages
	wpartial       partialPages
	rfills, wfills fills // of rtlb and wtlb

	rpartialFills, wpartialFills fills // of rpartial and wpartial
	revictions, wevictions       evictions
}

// Reasons to leave the block after the current instruction.
const (
	stopOwner = 1 << iota // the owner asked: ExitAttention
	stopCode              // code or its translation may have changed: look the next block up
	stopTrap              // TF was set: a #DB follows the next instruction
	stopTell              // the log of accesses has something to tell; the block goes on
)

// undefined is what Undefined reports.
type undefined struct {
	bytes [15]byte
	n     int
	name  string
}

// New returns a CPU in the state of a fresh process: all registers zero, the
// x87 unit and MXCSR initialised, interrupts enabled, and of the state
// components SSE alone in use. A nil id is the zero one.
func New(bus Bus, id *CPUIdentity) *CPU {
	c := new(CPU)
	c.Renew(bus, id)
	return c
}

// Renew makes c what New returns, for who makes thousands: a CPU has 330 kB.
// Preconditions: nobody else has c, and its engine has been left by SetEngine.
func (c *CPU) Renew(bus Bus, id *CPUIdentity) {
	if id == nil {
		id = &CPUIdentity{}
	}
	*c = CPU{ID: id, Bus: bus, engine: defaultEngine}
	c.SetFlags(FlagIF)
	c.MXCSR = 0x1f80
	c.FPU.Reset()
	if id.Vendor == VendorIntel {
		c.NotInUse = xfeatX87 | xfeatAVX | xfeatWide
	}
	_, c.flushesCode = bus.(CodeFlusher)
	c.partialBus, _ = bus.(PartialBus)
	c.mappedBus, _ = bus.(MappedBus)
	if id.Vendor == VendorAMD {
		c.shiftAux = auxAF
	}
	c.rfills.fillAll()
	c.wfills.fillAll()
	c.rpartialFills.fillAll()
	c.wpartialFills.fillAll()
	c.FlushTLB()
}

// Attention asks Run to stop with ExitAttention after the current
// instruction, or after the current iteration of a REP string instruction. It
// may be called from the methods of Bus while Run is running.
func (c *CPU) Attention() { c.stop |= stopOwner }

// tell has the log of accesses tell what the instruction has accessed that came to e.
func (c *CPU) tell(e Exit) {
	if c.stop&stopTell != 0 {
		c.stop &^= stopTell
		c.log.executed(c, e)
	}
}

// Interrupt asks Run to return ExitAttention within about a millisecond. It
// may be called from any goroutine.
func (c *CPU) Interrupt() { c.interrupt.Store(true) }

// Interrupting reports whether Interrupt was called since Interrupted last was.
func (c *CPU) Interrupting() bool { return c.interrupt.Load() }

// Interrupted reports whether Interrupt was called since Interrupted last
// was, and clears that.
func (c *CPU) Interrupted() bool { return c.interrupt.Swap(false) }

// SetBreakpoints replaces the set of breakpoints: Run returns ExitBreak before
// it executes an instruction at one of addrs. Code that has none of the addresses that
// entered or left the set stays decoded.
func (c *CPU) SetBreakpoints(addrs []uint64) {
	before := c.breaks
	c.breaks = nil
	if len(addrs) > 0 {
		c.breaks = make(map[uint64]struct{}, len(addrs))
		for _, a := range addrs {
			c.breaks[a] = struct{}{}
		}
	}
	for a := range before {
		if _, stays := c.breaks[a]; !stays {
			c.engine.Breakpoint(c, a)
		}
	}
	for a := range c.breaks {
		if _, was := before[a]; !was {
			c.engine.Breakpoint(c, a)
		}
	}
}

// AddBreakpoint adds a breakpoint to the set.
func (c *CPU) AddBreakpoint(a uint64) {
	if _, has := c.breaks[a]; has {
		return
	}
	if c.breaks == nil {
		c.breaks = map[uint64]struct{}{}
	}
	c.breaks[a] = struct{}{}
	c.engine.Breakpoint(c, a)
}

// RemoveBreakpoint takes one away.
func (c *CPU) RemoveBreakpoint(a uint64) {
	if _, has := c.breaks[a]; has {
		delete(c.breaks, a)
		c.engine.Breakpoint(c, a)
	}
}

// Undefined returns the bytes at RIP and the name of the instruction, where
// known, for the last ExitUnsupported. The slice is valid until the next Run.
func (c *CPU) Undefined() (bytes []byte, name string) {
	return c.undef.bytes[:c.undef.n], c.undef.name
}

// fault records a guest exception and returns ExitFault.
func (c *CPU) fault(k FaultKind, addr uint64) Exit {
	c.Fault = Fault{Kind: k, Addr: addr}
	return ExitFault
}

// gp raises #GP(0), ud raises #UD.
func (c *CPU) gp() Exit { return c.fault(FaultGP, 0) }
func (c *CPU) ud() Exit { return c.fault(FaultUD, c.RIP) }
