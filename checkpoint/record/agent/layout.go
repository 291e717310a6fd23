package agent

import (
	_ "embed"
	"encoding/binary"
)

//go:generate sh src/build.sh

//go:embed agent.bin
var blob []byte

// Code returns the agent's code, which runs at any address that is a multiple of a page. It
// must not be changed.
func Code() []byte { return blob }

// The agent's mapping, by offset in bytes from its start: code, then what it shares with the
// supervisor. Each thread has one. src/block.h has the same numbers.
const (
	TextSize     = 0x3000
	Block        = TextSize // where the base of GS is
	rows         = 0x4000
	rowCount     = 512
	callCount    = 480 // of them, by number
	rowSize      = 24
	jumps        = 0x9000
	jumpSlots    = 1024
	jumpSlotSize = 16
	referred     = 0xd000
	ring         = 0xe000
	ringSize     = 1 << 20
	Size         = ring + ringSize // of the mapping
)

// Offsets in the block.
const (
	blockEntry      = 0x00
	blockHead       = 0x08
	blockHead0      = 0x10
	blockPhase      = 0x18
	blockAttention  = 0x1c
	blockResult     = 0x20
	blockRegs       = 0x30
	blockFS         = 0xc8
	blockSelf       = 0xd0
	blockFourth     = 0xd8
	blockCommon     = 0xe0
	blockMany       = 0xe8
	blockTimed      = 0xf0
	blockPatient    = 0xf4
	blockBegan      = 0x100
	blockLast       = 0x108
	blockFSByStops  = 0x1a0
	blockUntil      = 0x1a8
	blockClock      = 0x1b8
	blockTogether   = 0x1c0
	blockMasked     = 0x1c8
	blockClosed     = 0x1cc
	blockStood      = 0x1e0
	blockReferred   = 0x1e8
	blockWritable   = 0x200
	writableCount   = 24
	blockAbout      = 0x400
	descriptors     = 1024
	blockSupervised = 0x800
	blockTraps      = 0x804
	blockAction     = 0x808
	blockAffinity   = 0x828
	affinitySize    = 128
	blockProbe      = 0x8a8
	blockGuest      = 0x938
	blockListed     = 0x958
	blockReferring  = 0x95c
	blockMapped     = 0x960
	mappedCount     = 96
	blockSize       = 0xf60
	blockOwnRCX     = 0xf68
	blockOwnR11     = 0xf70
	blockTSC        = 0xf78
	blockTSCBegan   = 0xf80
	blockTSCTime    = 0xf88
	blockTSCRate    = 0xf90
	blockTSCAux     = 0xf98
)

// Offsets in what a stub tells the agent of its site, three words.
const (
	StubRIP    = 0  // behind the instruction
	StubReturn = 8  // where the program goes on
	StubInsn   = 16 // the size of RDTSC or RDTSCP; 0 for SYSCALL
	StubSize   = 24
)

// Where, from the base of GS, the stub of RDTSC or RDTSCP keeps the registers that SYSCALL changes.
const (
	OwnRCX = blockOwnRCX
	OwnR11 = blockOwnR11
)

// Labels are offsets of places in the code.
type Labels struct {
	Entry    uint64 // where stubs jump to
	Began    uint64 // from here on RSP is saved
	Numbered uint64 // and RAX
	Kept     uint64 // and all that will change, flags included
	Entered  uint64 // from here on the phase is Entered, or a later one
	Tail     uint64 // from here up to Gate the call is in the ring
	Gate     uint64 // where the call is made
	Made     uint64 // behind the SYSCALL instruction of the gate
	Noted    uint64 // up to here the call's result is in RAX
	Asked    uint64 // behind the SYSCALL instruction that asks for the supervisor
	Sysed    uint64 // behind the SYSCALL instruction of the agent's own calls
	Handler  uint64 // of SIGSYS
	Restorer uint64
	End      uint64
}

// Places returns the code's labels.
func Places() Labels {
	at := func(i int) uint64 { return uint64(binary.LittleEndian.Uint32(blob[4*i:])) }
	return Labels{
		Entry: at(0), Entered: at(1), Tail: at(2), Made: at(3), Noted: at(4), Asked: at(5), End: at(6),
		Began: at(7), Numbered: at(8), Kept: at(9), Gate: at(10), Sysed: at(11), Handler: at(12), Restorer: at(13),
	}
}
