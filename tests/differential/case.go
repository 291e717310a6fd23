package differential

import (
	"vplay/replay/x86"
)

// A case: an instruction with registers and memory, for the CPU and for the emulator.

// The sandbox: addresses both sides agree on. See the package comment.
const (
	DataBase     = 0x20001000
	ReadOnlyPage = 0x20005000
	LastPage     = 0x20008000
	CodeBase     = 0x30000000
	CodeSize     = 0x2000

	pageSize      = 4096
	writablePages = 4
	maxCode       = 64
	sandboxPages  = 6 // 4 read-write, 1 read-only, LastPage
	lastIndex     = sandboxPages - 1
	readOnlyIndex = 4
	defaultFlags  = 0x202
	defaultMXCSR  = 0x1f80
	defaultStack  = DataBase + 2*pageSize
	mxcsrBits     = 0xffff
)

// flagsLoadable are the RFLAGS bits a case may set: status flags, DF, NT, AC, ID.
const flagsLoadable = x86.FlagCF | x86.FlagPF | x86.FlagAF | x86.FlagZF | x86.FlagSF | x86.FlagOF |
	x86.FlagDF | x86.FlagNT | x86.FlagAC | x86.FlagID

// Regs is the register state of a case, before or after: a comparable value.
// Seg is only reported and compared, never loaded.
type Regs struct {
	R              [16]uint64
	RIP, Flags     uint64
	FSBase, GSBase uint64
	Seg            [6]uint16
	V              [16]x86.Vec
	Wide           x86.Wide
	MXCSR          uint32
	FPU            x86.FPU
}

// zmm returns vector register n, 0 to 31, setZMM sets it.
func (r *Regs) zmm(n int) (z [8]uint64) {
	if n >= 16 {
		return r.Wide.More[n-16]
	}
	copy(z[:4], r.V[n][:])
	copy(z[4:], r.Wide.High[n][:])
	return z
}

func (r *Regs) setZMM(n int, z [8]uint64) {
	if n >= 16 {
		r.Wide.More[n-16] = z
		return
	}
	r.V[n], r.Wide.High[n] = x86.Vec(z[:4]), x86.Vec(z[4:])
	r.Wide.Look()
}

// Patch is bytes written into the sandbox before a case runs.
type Patch struct {
	Addr  uint64
	Bytes []byte
}

// Case is one experiment.
type Case struct {
	// Row is the index of the table row the case was made for, -1 if none.
	Row int
	// Code is up to 64 bytes of instructions, executed from CodeBase+Offset.
	Code   []byte
	Offset uint32
	// Steps is how many instructions Code holds; it bounds both sides.
	Steps int
	// Lens are their lengths, nil when there is one.
	Lens []int
	// WritableCode lets the code modify itself. What it did to the code pages
	// is not compared: only what executing it did.
	WritableCode bool
	In           Regs
	Patches      []Patch
}

// Trap numbers as the kernel reports them (linux arch/x86/include/asm/trapnr.h).
const (
	trapDE = 0
	trapDB = 1
	trapBP = 3
	trapOF = 4
	trapUD = 6
	trapSS = 12
	trapGP = 13
	trapPF = 14
	trapMF = 16
	trapAC = 17
	trapXM = 19
)

// Trap is the exception that ended a case; the zero Trap is none.
type Trap struct {
	Taken  bool
	Vector uint32
	// For page faults: the address, whether a page was there (protection),
	// and the kind of access.
	Addr       uint64
	Protection bool
	Write      bool
	Fetch      bool
}

// Run is a stretch of changed bytes.
type Run struct {
	Addr  uint64
	Bytes []byte
}

// Outcome is what a case came to on one side.
type Outcome struct {
	Out Regs
	// Trap is the exception at Out.RIP. Running onto INT3 behind a branch is
	// one too: both sides do.
	Trap Trap
	// Changed are the sandbox bytes that differ from before, ascending.
	Changed []Run
	// Problem says why there is no outcome ("" if there is one): the harness
	// timed out, the emulator does not know the instruction.
	Problem string
}

// clone returns an outcome that shares no memory with o.
func (o *Outcome) clone() Outcome {
	c := *o
	c.Changed = make([]Run, len(o.Changed))
	for i, r := range o.Changed {
		c.Changed[i] = Run{r.Addr, append([]byte(nil), r.Bytes...)}
	}
	return c
}

// DefaultRegs is the state a case line starts from: what it does not name.
func DefaultRegs() Regs {
	r := Regs{Flags: defaultFlags, MXCSR: defaultMXCSR}
	r.R[x86.RSP] = defaultStack
	r.Seg = [6]uint16{x86.CS: 0x33, x86.SS: 0x2b}
	r.FPU.Reset()
	return r
}

// baseImage is what the sandbox holds before patches: six pages of
// pseudo-random bytes, the same in every run.
var baseImage = makeBaseImage()

func makeBaseImage() *[sandboxPages][pageSize]byte {
	var m [sandboxPages][pageSize]byte
	s := uint64(0x9e3779b97f4a7c15)
	for p := range m {
		for i := range m[p] {
			s ^= s << 13
			s ^= s >> 7
			s ^= s << 17
			m[p][i] = byte(s >> 32)
		}
	}
	return &m
}

// pageIndex returns the sandbox page that holds a, or -1.
func pageIndex(a uint64) int {
	switch {
	case a >= DataBase && a < DataBase+(writablePages+1)*pageSize:
		return int(a-DataBase) / pageSize
	case a >= LastPage && a < LastPage+pageSize:
		return lastIndex
	}
	return -1
}

// pageAddress is the inverse of pageIndex.
func pageAddress(i int) uint64 {
	if i == lastIndex {
		return LastPage
	}
	return DataBase + uint64(i)*pageSize
}
