//go:build linux

#include "textflag.h"

// handler is the signal handler of a process that records: the kernel calls it
// with the signal's number in DI, its siginfo_t in SI and the ucontext_t in DX,
// on the thread's alternate stack. It runs no Go code: it writes the siginfo_t
// to a pipe. What belongs to this process's own threads (handBack has the
// signal's bit, and the kernel made it: si_code is above 0) goes to the handler
// of Go's runtime.
TEXT handler<>(SB), NOSPLIT|NOFRAME, $0
	MOVL  8(SI), AX          // si_code
	CMPL  AX, $0
	JLE   take
	MOVQ  ·handBackSet(SB), CX
	BTQ   DI, CX
	JCC   take
	MOVQ  ·runtimeHandler(SB), AX
	JMP   AX
take:
	MOVL  ·signalPipe(SB), DI
	MOVL  $128, DX           // sizeof(siginfo_t)
	MOVL  $1, AX             // SYS_write
	SYSCALL
	RET

// restorer is where the handler returns to (man 2 sigreturn).
TEXT restorer<>(SB), NOSPLIT|NOFRAME, $0
	MOVL $15, AX             // SYS_rt_sigreturn
	SYSCALL
	INT  $3                  // not reached

// func handlerPC() uintptr
TEXT ·handlerPC(SB), NOSPLIT, $0-8
	MOVQ $handler<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func restorerPC() uintptr
TEXT ·restorerPC(SB), NOSPLIT, $0-8
	MOVQ $restorer<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
