// Package x86 is the processor: state, decoder tables, and interpreter of
// user-mode x86-64 instructions, exact to the undefined flag.
//
// It imports nothing of vplay. Memory is reached through [Bus], which the
// owner of the guest address space implements. Time is the count of retired
// instructions in [State].Retired, exact at every exit of [CPU.Run].
//
// One row per instruction form stands in isa/*.txt; internal/isagen makes the
// decoder tables, the names and the coverage list from them. See RATIONALE.md.
//
// Where things are: decode.go turns bytes and rows into an [Inst]; code.go
// keeps predecoded blocks and knows when they are stale; bind.go binds
// instructions to the cases of the generated loop in run_gen.go; run.go,
// engine.go and step.go are the ways to execute; mem.go is the way to memory; flags.go the
// lazy flags; effects.go says what an instruction reads and writes; int_*.go,
// sse_*.go, mmx*.go and x87_*.go are the handlers.
//
// Invariants: a handler that returns a fault has changed nothing but what the
// architecture says; between two instructions State is exact, whatever made
// Run stop; the same State and memory give the same run on every host.
//
// What it does not do: privileged and system state, 32-bit and 16-bit modes,
// and instructions whose result is not a function of the state (RDTSC, CPUID
// and system calls are exits, RDRAND and the like are refused by name).
package x86

// Register numbers in encoding order, indexes of State.R.
const (
	RAX = iota
	RCX
	RDX
	RBX
	RSP
	RBP
	RSI
	RDI
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
)

// Segment register numbers in encoding order, indexes of State.Seg.
const (
	ES = iota
	CS
	SS
	DS
	FS
	GS
)

// RFLAGS bits (SDM vol. 1, 3.4.3).
const (
	FlagCF = 1 << 0
	FlagPF = 1 << 2
	FlagAF = 1 << 4
	FlagZF = 1 << 6
	FlagSF = 1 << 7
	FlagTF = 1 << 8
	FlagIF = 1 << 9
	FlagDF = 1 << 10
	FlagOF = 1 << 11
	FlagNT = 1 << 14
	FlagRF = 1 << 16
	FlagAC = 1 << 18
	FlagID = 1 << 21

	flagsArith = FlagCF | FlagPF | FlagAF | FlagZF | FlagSF | FlagOF
)

// Vec is a vector register, low quadword first: an XMM register is Vec[0:2],
// a YMM register the whole.
type Vec [4]uint64

// State is the architectural state of one thread: a plain value that may be
// copied to take a snapshot. The flags are lazy: use [State.Flags] and
// [State.SetFlags].
type State struct {
	R   [16]uint64
	RIP uint64

	// Lazy arithmetic flags. res is the last result, sign-extended to 64
	// bits: ZF is res == 0, SF its top bit xor aux bit 0, PF the parity of
	// its low byte xor bits 8 to 15 of aux. aux holds the carries: bit 63 is
	// CF, bit 63 xor bit 62 is OF, bit 3 is AF. All other bits of aux are zero.
	res, aux uint64
	// eflags holds the other flags: DF, IF, NT, AC, ID, TF, RF and bit 1.
	eflags uint64

	FSBase, GSBase uint64
	Seg            [6]uint16

	V     [16]Vec
	MXCSR uint32
	FPU   FPU
	// NotInUse has a bit, as in XINUSE, for each component that an Intel CPU knows
	// to be in its initial configuration; 0 on AMD, where the values say that.
	NotInUse uint8

	// Wide is what AVX-512 adds.
	Wide Wide
	// PKRU has the rights of protection keys (SDM vol. 3A, 4.6.2), which XSAVE stores. Accesses do not look at it: one that
	// it forbids is a fault of the recording.
	PKRU uint32

	// Retired counts instructions since the owner last set it. A REP string
	// instruction counts once, when it is finished.
	Retired uint64
	// RepIter counts the iterations that the REP instruction at RIP has
	// finished since it began; 0 elsewhere.
	RepIter uint64
}

// Bus is the guest's memory as the interpreter needs it. Addresses are
// linear. A Bus belongs to one CPU and is used by one goroutine.
type Bus interface {
	// Translate returns the host bytes of the page at page-aligned address a
	// for the kind of access. With fast, the CPU may keep the pointer in its
	// translation cache until FlushTLB or FlushTLBPage and access it
	// directly; without, every access must go through Read or Write. A nil
	// page means that the access faults: use Read or Write to learn how. Pages
	// begin at multiples of 64 bytes, so that what is aligned in the guest is
	// aligned in the host; others are taken for slow ones.
	Translate(a uint64, k Access) (page *[4096]byte, fast bool)
	// Read copies len(b) bytes at a, which may cross pages. On a fault b's
	// content is undefined and nothing else happened.
	Read(a uint64, b []byte) Fault
	// Write stores b at a, which may cross pages: all of it or nothing.
	Write(a uint64, b []byte) Fault
	// Probe says whether an access of n bytes at a would fault, without doing it.
	Probe(a uint64, n int, k Access) Fault
	// Fetch copies up to len(b) instruction bytes at a; n is how many could
	// be read before f.
	Fetch(a uint64, b []byte) (n int, f Fault)
	// CodeID marks the page at page-aligned address a as holding decoded code
	// and returns an identity of its content: it is different after any write
	// to the page that changes it. While the mark stands, Translate for Store is not fast for
	// this page. 0 means that the page cannot be executed. Asking does not count as
	// executing; Translate and Fetch for Exec do.
	CodeID(a uint64) uint64
}

// CodeFlusher is a Bus that itself calls CPU.FlushTLBPage, before Write
// returns, for every address of a page marked by CodeID that is written.
// Stores to other slow pages, such as watched ones, then do not end the
// running block.
type CodeFlusher interface {
	Bus
	FlushesCode()
}

// Access is a kind of memory access.
type Access uint8

// The kinds of access.
const (
	Load Access = iota
	Store
	Exec
)

// FaultKind says why an access or an instruction faulted.
type FaultKind uint8

// The kinds of fault. FaultNone is the zero Fault.
const (
	FaultNone        FaultKind = iota
	FaultNotMapped             // #PF, page not present in the map
	FaultProtection            // #PF, page protected against this access
	FaultNotCaptured           // the recording lacks the byte: replay cannot go on
	FaultBeyondEOF             // SIGBUS: mapped, but behind the end of the file
	FaultNonCanon              // #GP: non-canonical address
	FaultGP                    // #GP(0) of an instruction (alignment of movaps, privileged, ...)
	FaultDE                    // #DE divide error
	FaultUD                    // #UD undefined instruction as the CPU sees it
	FaultMF                    // #MF x87 exception pending
	FaultXM                    // #XM SIMD exception unmasked
	FaultAC                    // #AC alignment check
	FaultBP                    // INT3
	FaultDB                    // #DB (INT1, or TF set)
	FaultOF                    // INTO and INT n where not #GP
	FaultSS                    // #SS: non-canonical address through rsp, rbp or a stack instruction (SIGBUS)
)

// Fault is a guest exception: a value, not an error.
type Fault struct {
	Kind   FaultKind
	Access Access
	Addr   uint64 // the linear address that faulted, for memory kinds
}

// Exit says why [CPU.Run] returned. Below ExitFault the instruction at RIP is
// the next one to execute.
type Exit uint8

// The reasons to leave Run.
const (
	// ExitNone is what a handler returns to go on; Run never returns it.
	ExitNone Exit = iota
	// ExitLimit: State.Retired has reached the limit given to Run.
	ExitLimit
	// ExitBreak: a breakpoint stands at RIP, which was not executed.
	ExitBreak
	// ExitAttention: the owner asked for a stop with CPU.Attention, as watch
	// hits do. The instruction before RIP is complete (or one iteration of
	// the REP instruction at RIP).
	ExitAttention
	// ExitSyscall: SYSCALL retired; rip is behind it, rcx = rip, r11 = flags.
	ExitSyscall
	// ExitRDTSC, ExitRDTSCP, ExitCPUID, ExitRandom (RDRAND, RDSEED): the instruction at RIP was not executed.
	ExitRDTSC
	ExitRDTSCP
	ExitCPUID
	ExitRandom
	// ExitInUse: the instruction at RIP, which was not executed, shows which
	// state components are in use, and the state does not decide that: see
	// CPU.AskInUse.
	ExitInUse
	// ExitFault: CPU.Fault says which; the instruction at RIP did nothing
	// but what the architecture lets a faulting instruction do (REP and
	// gather progress).
	ExitFault
	// ExitUnsupported: the bytes at RIP are an instruction outside the
	// emulated set; CPU.Undefined has the bytes and, where known, the name.
	ExitUnsupported
)
