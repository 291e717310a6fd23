//go:build linux

#include "textflag.h"

// The kernel calls this as a C function with the signal's number in DI, on the
// signal stack of whatever thread it is, and restores all registers behind it.
TEXT ·onRawSignal(SB), NOSPLIT, $16-0
	MOVB DI, 0(SP)
	MOVL ·rawPipe(SB), DI
	MOVQ SP, SI
	MOVL $1, DX
	MOVL $1, AX // write(2)
	SYSCALL
	RET

// Where a handler returns to (SA_RESTORER).
TEXT ·onRawReturn(SB), NOSPLIT|NOFRAME, $0-0
	MOVL $15, AX // rt_sigreturn(2)
	SYSCALL
	INT  $3

// func rawHandler() uint64
TEXT ·rawHandler(SB), NOSPLIT, $0-8
	LEAQ ·onRawSignal(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func rawReturn() uint64
TEXT ·rawReturn(SB), NOSPLIT, $0-8
	LEAQ ·onRawReturn(SB), AX
	MOVQ AX, ret+0(FP)
	RET
