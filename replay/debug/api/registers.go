package api

// The registers of a thread as all servers see them. What a protocol calls them, and in
// what order it sends them, is the server's business.

// Registers is the register file of one thread. Arrays are in the processor's
// encoding order: GPR is rax rcx rdx rbx rsp rbp rsi rdi r8…r15, Seg is es cs
// ss ds fs gs.
type Registers struct {
	GPR    [16]uint64
	RIP    uint64
	EFLAGS uint64 // the low 32 bits are shown
	Seg    [6]uint16

	FSBase, GSBase uint64
	// OrigRAX is the system call number while the thread is inside a call
	// and all ones otherwise.
	OrigRAX uint64

	FCW, FSW uint16
	FTW      uint16 // the full tag word, two bits per physical register
	FOP      uint16
	FIP, FDP uint64      // as FXSAVE64 stores them
	ST       [8][10]byte // ST(0) first

	MXCSR uint32
	// YMM holds the vector registers, low quadword first: xmm is the first
	// two quadwords.
	YMM [16][4]uint64

	// What AVX-512 adds: mask registers, bits 256 to 511 of the sixteen registers of YMM, and
	// sixteen more.
	K    [8]uint64
	High [16][4]uint64
	More [16][8]uint64

	// Missing lists the groups that are not known at this position, although
	// Process.Features has them: clients show <unavailable>.
	Missing Features
}
