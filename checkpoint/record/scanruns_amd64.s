//go:build linux

#include "textflag.h"

// scanRuns copies pages to slots, a page that is the same as the one before it not again. It runs
// in a shadow: it may be anywhere, has no stack, and uses SSE2 alone.
//
//	SI   first page, and the next one to be looked at
//	DX   how many pages there are, at least one
//	BX   how many have been looked at; it is 0 at first
//	DI   slot
//	R9   how many pages in a row have the slot's content, 32 bits for each slot
//	R10  how many slots there are, at least one
//	R11  where to go at the end
//
// Where a page cannot be read, it faults, and BX says how many there are in front of it.
TEXT ·scanRuns(SB), NOSPLIT|NOFRAME, $0-0
content:
	MOVQ $0, AX

copy:
	MOVO  (SI)(AX*1), X0
	MOVO  16(SI)(AX*1), X1
	MOVO  32(SI)(AX*1), X2
	MOVO  48(SI)(AX*1), X3
	MOVO  X0, (DI)(AX*1)
	MOVO  X1, 16(DI)(AX*1)
	MOVO  X2, 32(DI)(AX*1)
	MOVO  X3, 48(DI)(AX*1)
	ADDQ  $64, AX
	CMPQ  AX, $4096
	JNE   copy
	MOVL  $0, (R9)

same:
	INCL (R9)
	INCQ BX
	ADDQ $4096, SI
	CMPQ BX, DX
	JEQ  done
	MOVQ $0, AX

compare:
	MOVO     (SI)(AX*1), X0
	MOVO     16(SI)(AX*1), X1
	MOVO     32(SI)(AX*1), X2
	MOVO     48(SI)(AX*1), X3
	PCMPEQB  (DI)(AX*1), X0
	PCMPEQB  16(DI)(AX*1), X1
	PCMPEQB  32(DI)(AX*1), X2
	PCMPEQB  48(DI)(AX*1), X3
	PAND     X1, X0
	PAND     X3, X2
	PAND     X2, X0
	PMOVMSKB X0, CX
	CMPL     CX, $0xffff
	JNE      other
	ADDQ     $64, AX
	CMPQ     AX, $4096
	JNE      compare
	JMP      same

other:
	DECQ R10
	JEQ  done
	ADDQ $4096, DI
	ADDQ $4, R9
	JMP  content

done:
	JMP R11

// func scanCode() uint64
TEXT ·scanCode(SB), NOSPLIT, $0-8
	LEAQ ·scanRuns(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func copyCode(to []byte, from uint64)
TEXT ·copyCode(SB), NOSPLIT, $0-32
	MOVQ to_base+0(FP), DI
	MOVQ to_len+8(FP), CX
	MOVQ from+24(FP), SI
	CLD
	REP; MOVSB
	RET

// func scanHere(pages, slots *byte, counts *uint32, n, room uint64) (done uint64)
TEXT ·scanHere(SB), NOSPLIT, $8-48
	MOVQ pages+0(FP), SI
	MOVQ slots+8(FP), DI
	MOVQ counts+16(FP), R9
	MOVQ n+24(FP), DX
	MOVQ room+32(FP), R10
	LEAQ back<>(SB), R11
	XORL BX, BX
	CALL ·scanRuns(SB)
	MOVQ BX, done+40(FP)
	RET

TEXT back<>(SB), NOSPLIT|NOFRAME, $0-0
	RET
