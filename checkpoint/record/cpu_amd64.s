//go:build linux

#include "textflag.h"

// func rdtsc() uint64
TEXT ·rdtsc(SB), NOSPLIT, $0-8
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET

// func cpuid(leaf, sub uint32) (a, b, c, d uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL leaf+0(FP), AX
	MOVL sub+4(FP), CX
	CPUID
	MOVL AX, a+8(FP)
	MOVL BX, b+12(FP)
	MOVL CX, c+16(FP)
	MOVL DX, d+20(FP)
	RET

// func xgetbv() uint64
TEXT ·xgetbv(SB), NOSPLIT, $0-8
	MOVL $0, CX
	BYTE $0x0f; BYTE $0x01; BYTE $0xd0
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET

// func rdtscpAux() uint32
TEXT ·rdtscpAux(SB), NOSPLIT, $0-4
	RDTSCP
	MOVL CX, ret+0(FP)
	RET

// func rdrand() (v uint64, ok bool)
TEXT ·rdrand(SB), NOSPLIT, $0-9
	RDRANDQ AX
	SETCS   ok+8(FP)
	MOVQ    AX, v+0(FP)
	RET

// func rdseed() (v uint64, ok bool)
TEXT ·rdseed(SB), NOSPLIT, $0-9
	RDSEEDQ AX
	SETCS   ok+8(FP)
	MOVQ    AX, v+0(FP)
	RET

// func indexRandom(b []byte) int
TEXT ·indexRandom(SB), NOSPLIT, $0-32
	MOVQ b_base+0(FP), SI
	MOVQ b_len+8(FP), CX
	XORQ AX, AX            // how far it is
	MOVQ $0x0f0f0f0f0f0f0f0f, DX
	MOVQ DX, X0
	PUNPCKLQDQ X0, X0
	MOVQ $0xc7c7c7c7c7c7c7c7, DX
	MOVQ DX, X1
	PUNPCKLQDQ X1, X1

sixteen:
	LEAQ 17(AX), DX
	CMPQ DX, CX
	JHI  one
	MOVOU (SI)(AX*1), X2
	MOVOU 1(SI)(AX*1), X3
	PCMPEQB X0, X2
	PCMPEQB X1, X3
	PAND X3, X2
	PMOVMSKB X2, DX
	TESTL DX, DX
	JNE  found
	ADDQ $16, AX
	JMP  sixteen

found:
	BSFL DX, DX
	ADDQ DX, AX
	MOVQ AX, ret+24(FP)
	RET

one:
	LEAQ 2(AX), DX
	CMPQ DX, CX
	JHI  none
	MOVWLZX (SI)(AX*1), DX
	CMPL DX, $0xc70f
	JEQ  here
	INCQ AX
	JMP  one

here:
	MOVQ AX, ret+24(FP)
	RET

none:
	MOVQ $-1, ret+24(FP)
	RET
