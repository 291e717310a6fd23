package dataflow

import "vplay/replay/x86"

// A signal's frame holds the registers that were, and sigreturn brings them back: so values
// are followed through handlers.

// FrameRegs is the order of general registers in struct sigcontext_64 (linux
// arch/x86/include/uapi/asm/sigcontext.h, v6.1).
var FrameRegs = [...]uint8{x86.R8, x86.R9, x86.R10, x86.R11, x86.R12, x86.R13, x86.R14, x86.R15, x86.RDI, x86.RSI, x86.RBP, x86.RBX, x86.RDX, x86.RAX, x86.RCX}

// Offsets in struct ucontext.
const (
	FrameContext = 40                      // of the registers
	FrameFlags   = FrameContext + 8*(15+2) // behind RSP and RIP
	FrameFlagsN  = 8                       // bytes
)

// AllFlags is every bit of RFLAGS.
const AllFlags = ^uint64(0)
