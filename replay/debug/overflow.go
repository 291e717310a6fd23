package debug

import (
	"fmt"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay"
	"vplay/replay/x86"
)

// Crashes because a thread's stack was full.

// nearStack is how far from the stack pointer an access may be that is one to the stack, as the
// frames of functions are large.
const nearStack = 1 << 16

// guardGap is how far below a stack the kernel lets nothing be mapped (linux mm/mmap.c,
// stack_guard_gap). What pthreads have there is smaller.
const guardGap = 1 << 20

// StackOverflow says that the thread that ended the program had used up its stack: it accessed
// memory near its stack pointer that lies right below something writable, and is not writable
// itself. "" where that is not so.
func StackOverflow(f *replay.FinalImage) string {
	si := abi.Siginfo(f.Siginfo)
	if !si.IsFault() || si.Signo() != abi.SIGSEGV {
		return ""
	}
	stack, ok := fullStack(f.Maps, si.Addr(), f.Current().State.R[x86.RSP])
	if !ok {
		return ""
	}
	return fmt.Sprintf("overflow: all of %#x-%#x is used (%.1f MB), and %%rsp is %#x", stack.Start, stack.End,
		float64(stack.End-stack.Start)/1e6, f.Current().State.R[x86.RSP])
}

// fullStack returns the mapping that an access to addr is right below, as one of a full stack is.
func fullStack(maps []checkpoint.Mapping, addr, sp uint64) (stack checkpoint.Mapping, ok bool) {
	if addr == 0 || addr-(sp-nearStack) >= 2*nearStack {
		return stack, false
	}
	for _, g := range maps {
		switch {
		case g.Prot&checkpoint.ProtWrite == 0 || g.End <= addr:
		case g.Start <= addr:
			return g, false
		case !ok || g.Start < stack.Start:
			stack, ok = g, true
		}
	}
	return stack, ok && stack.Start-addr <= guardGap
}
