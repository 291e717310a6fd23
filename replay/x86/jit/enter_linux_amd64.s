#include "textflag.h"

// The way into generated code, and the handler for signals that it causes.

// func enter(code uintptr, cpu *x86.CPU)
// Generated code has the stack pointer as its own, so this frame's is kept by the code at
// code, which comes back with it.
TEXT ·enter(SB), NOSPLIT, $0-16
	MOVQ code+0(FP), AX
	MOVQ cpu+8(FP), DI
	PUSHQ BP
	CALL AX
	POPQ BP
	RET

// func handlerAddress() uintptr
TEXT ·handlerAddress(SB), NOSPLIT, $0-8
	LEAQ ·onSignal(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// onSignal is called by the kernel, with the arguments of a sigaction(2) handler: DI is the
// signal, DX the context. What generated code caused goes on at the way out; the Go
// runtime's own handler has all else. Offsets: linux arch/x86/include/uapi/asm/sigcontext.h,
// behind the 40 bytes before it in ucontext.
TEXT ·onSignal(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVQ 168(DX), AX               // rip
	CMPQ AX, ·codeFrom(SB)
	JCS  chain
	CMPQ AX, ·codeTo(SB)
	JCC  chain
	MOVQ 160(DX), CX               // rsp: the CPU
	ADDQ ·faultOffset(SB), CX
	MOVQ AX, 0(CX)
	MOVQ 216(DX), AX               // cr2
	MOVQ AX, 8(CX)
	MOVQ 192(DX), AX               // err
	MOVQ AX, 16(CX)
	MOVQ 200(DX), AX               // trapno
	MOVQ AX, 24(CX)
	MOVQ 176(DX), AX               // eflags
	MOVQ AX, 32(CX)
	MOVQ ·faultExit(SB), AX
	MOVQ AX, 168(DX)
	RET
chain:
	LEAQ ·chained(SB), AX
	MOVQ (AX)(DI*8), AX
	JMP  AX

// func cpuid(leaf uint32) (a, b, c, d uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL leaf+0(FP), AX
	XORL CX, CX
	CPUID
	MOVL AX, a+8(FP)
	MOVL BX, b+12(FP)
	MOVL CX, c+16(FP)
	MOVL DX, d+20(FP)
	RET
