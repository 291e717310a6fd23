//go:build linux

#include "textflag.h"

// func probeTSC(stack *byte, found *uint32) (pid int64)
//
// It makes a process that shares this one's memory, runs on the stack that ends at the address, and has found say what came of it;
// it goes on when that has ended. The process has RDTSC fault, executes it, and its handler, a copy of its own, ends it. No other
// signal may come in between: its handlers are Go's.
TEXT ·probeTSC(SB), NOSPLIT, $16-24
	MOVQ $~(1<<10), AX // all but SIGSEGV
	MOVQ AX, 0(SP)
	MOVL $14, AX // rt_sigprocmask(SIG_SETMASK, 0(SP), 8(SP), 8)
	MOVL $2, DI
	LEAQ 0(SP), SI
	LEAQ 8(SP), DX
	MOVL $8, R10
	SYSCALL
	MOVQ found+8(FP), R12
	MOVQ stack+0(FP), SI
	MOVL $56, AX // clone(CLONE_VM | CLONE_VFORK)
	MOVL $0x4100, DI
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	SYSCALL
	TESTQ AX, AX
	JEQ  child
	MOVQ AX, pid+16(FP)
	MOVL $14, AX // rt_sigprocmask(SIG_SETMASK, 8(SP), 0, 8)
	MOVL $2, DI
	LEAQ 8(SP), SI
	XORL DX, DX
	MOVL $8, R10
	SYSCALL
	RET

child:
	// struct kernel_sigaction below the end of the stack: handler, flags, restorer, mask
	MOVQ SP, BX
	LEAQ ·onProbe(SB), AX
	MOVQ AX, -32(BX)
	MOVQ $0x04000000, CX // SA_RESTORER
	MOVQ CX, -24(BX)
	MOVQ AX, -16(BX) // it does not return
	MOVQ $0, -8(BX)
	MOVL $13, AX // rt_sigaction(SIGSEGV, it, 0, 8)
	MOVL $11, DI
	LEAQ -32(BX), SI
	XORL DX, DX
	MOVL $8, R10
	SYSCALL
	TESTQ AX, AX
	JNE  end
	MOVL $157, AX // prctl(PR_SET_TSC, PR_TSC_SIGSEGV)
	MOVL $26, DI
	MOVL $2, SI
	SYSCALL
	TESTQ AX, AX
	JNE  end
	LEAQ -64(BX), SP
	MOVL $1, (R12) // it faults
	RDTSC
	MOVL $2, (R12) // it runs

end:
	MOVL $60, AX // exit(0)
	XORL DI, DI
	SYSCALL
	INT  $3

// The handler of its SIGSEGV.
TEXT ·onProbe(SB), NOSPLIT|NOFRAME, $0-0
	MOVL $60, AX // exit(0)
	XORL DI, DI
	SYSCALL
	INT  $3
