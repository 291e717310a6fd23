//go:build linux

#include "textflag.h"

// The handler of trapsegv.go. It may be anywhere, and is called by the kernel (man 2 sigaction, SA_SIGINFO):
//
//	SI  siginfo_t: the code is at 8
//	DX  ucontext_t: RIP is at 168 (asm/sigcontext.h)
//
// rt_sigreturn(2) gives the program all registers back, so that any can be used here.
TEXT ·onSegv(SB), NOSPLIT|NOFRAME, $0-0
	PUSHFQ
	ANDQ $~0x40000, 0(SP) // AC: what is read here is not aligned
	POPFQ
	MOVL 8(SI), R12
	CMPL R12, $0x80 // SI_KERNEL: no address is to blame
	JNE  other
	MOVQ 168(DX), CX
	MOVW (CX), AX
	CMPB AX, $0xf4 // HLT
	JEQ  halted
	CMPW AX, $0x310f // RDTSC
	JEQ  tsc
	CMPW AX, $0xa20f // CPUID
	JEQ  cpuid
	CMPW AX, $0x010f
	JNE  behind
	CMPB 2(CX), $0xf9 // RDTSCP
	JNE  behind

tsc:
	MOVL $157, AX // prctl(PR_SET_TSC, PR_TSC_ENABLE)
	MOVL $26, DI
	MOVL $1, SI
	SYSCALL
	TESTQ AX, AX
	JNE  other
	JMP  return

halted:
	// In the place of RDTSC or RDTSCP, which are executed here. Any other the guardian is about to take out.
	MOVQ DX, BX
	MOVL (CX), R13
	MOVL $157, AX // prctl(PR_SET_TSC, PR_TSC_ENABLE)
	MOVL $26, DI
	MOVL $1, SI
	SYSCALL
	CMPW R13, $0x31f4
	JEQ  stamp
	ANDL $0xffffff, R13
	CMPL R13, $0xf901f4
	JNE  return
	RDTSCP
	MOVQ CX, 152(BX) // RCX
	ADDQ $1, 168(BX)
	JMP  stamped

stamp:
	RDTSC

stamped:
	MOVQ AX, 144(BX) // RAX
	MOVQ DX, 136(BX) // RDX
	ADDQ $2, 168(BX)
	JMP  return

cpuid:
	MOVL $158, AX // arch_prctl(ARCH_SET_CPUID, 1)
	MOVL $0x1012, DI
	MOVL $1, SI
	SYSCALL
	TESTQ AX, AX
	JNE  other
	JMP  return

behind:
	// The recorder may have executed the instruction, and been killed before the signal was gone. While
	// instructions fault it is taken for that: another fault comes again.
	PUSHQ $0
	MOVL $157, AX // prctl(PR_GET_TSC, at SP)
	MOVL $25, DI
	MOVQ SP, SI
	SYSCALL
	POPQ AX
	CMPL AX, $2 // PR_TSC_SIGSEGV
	JEQ  tsc

other:
	MOVL $13, AX // rt_sigaction(SIGSEGV, the default, 0, 8)
	MOVL $11, DI
	PUSHQ $0
	PUSHQ $0
	PUSHQ $0
	PUSHQ $0
	MOVQ SP, SI
	XORL DX, DX
	MOVL $8, R10
	SYSCALL
	ADDQ $32, SP
	CMPL R12, $0
	JGT  return
	MOVL $39, AX // it was sent: tgkill(getpid(), gettid(), SIGSEGV)
	SYSCALL
	MOVL AX, DI
	MOVL $186, AX
	SYSCALL
	MOVL AX, SI
	MOVL $11, DX
	MOVL $234, AX
	SYSCALL

return:
	ADDQ $8, SP // what it would return to
	MOVL $15, AX // rt_sigreturn(2)
	SYSCALL
	INT  $3

// func segvHandler() uint64
TEXT ·segvHandler(SB), NOSPLIT, $0-8
	LEAQ ·onSegv(SB), AX
	MOVQ AX, ret+0(FP)
	RET
