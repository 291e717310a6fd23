package dwarf

import "bytes"

// Signal trampolines that no call frame information describes: those of Go, whose runtime has its own, and of musl.
// A handler returns to one, which does nothing but call rt_sigreturn(2). They are known by their code, as in gdb (amd64-linux-tdep.c,
// amd64_linux_sigtramp_start), and the kernel's frame is on the top of the stack then.

// sigreturn is mov $15,%rax; syscall, as glibc, musl and Go have it.
var sigreturn = []byte{0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05}

// gregs are the registers in the order of struct sigcontext, which begins 40 bytes behind the start of struct ucontext
// (linux arch/x86/include/uapi/asm/sigcontext.h, include/uapi/asm-generic/ucontext.h).
var gregs = [...]int{R8, R9, R10, R11, R12, R13, R14, R15, RDI, RSI, RBP, RBX, RDX, RAX, RCX, RSP, RIP}

const gregsAt = 40

// interrupted returns the registers that a signal interrupted, when regs are those of a frame at the beginning of a trampoline.
func interrupted(regs *Regs, mem Memory) (caller Regs, ok bool) {
	var code [9]byte
	sp, known := regs.get(RSP)
	if !known || mem.ReadMemory(regs.V[RIP], code[:]) != len(code) || !bytes.Equal(code[:], sigreturn) {
		return caller, false
	}
	for i, n := range gregs {
		v, ok := load(mem, sp+gregsAt+8*uint64(i))
		if !ok {
			return caller, false
		}
		caller.Set(n, v)
	}
	return caller, true
}
