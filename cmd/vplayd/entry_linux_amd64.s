#include "textflag.h"

// The executable's entry point, in front of the Go runtime's own.
//
// Go's runtime reserves about 1.2 GiB of address space before any Go code runs,
// and dies of a trace where it is not to be had (ulimit -v). So the limit is
// looked at first. The linker takes this symbol, which allows duplicates
// (DUPOK), for the runtime's of the same name when it reads this package first,
// as it does for an executable; a test holds that. Where it takes the runtime's,
// as in test executables, only this check is missing.
TEXT _rt0_amd64_linux(SB), NOSPLIT|NOFRAME|DUPOK, $0
	SUBQ    $16, SP
	MOVL    $97, AX                 // SYS_getrlimit
	MOVL    $9, DI                  // RLIMIT_AS
	MOVQ    SP, SI
	SYSCALL
	MOVQ    0(SP), CX
	ADDQ    $16, SP
	MOVL    $0x80000000, DX         // 2 GiB
	TESTQ   AX, AX
	JNE     run
	CMPQ    CX, DX
	JCS     refuse
run:
	JMP     _rt0_amd64(SB)

refuse:
	MOVL    $1, AX                  // SYS_write
	MOVL    $2, DI
	LEAQ    lowLimit<>(SB), SI
	MOVL    $244, DX
	SYSCALL
	// 125, exitRecorder, for record, whose own codes must not look like a
	// program's; 1, exitFailed, for all else.
	MOVL    $1, DI
	CMPQ    0(SP), $2               // argc
	JCS     exit
	MOVQ    16(SP), AX              // argv[1]
	MOVL    0(AX), CX
	CMPL    CX, $0x6f636572         // "reco"
	JNE     exit
	MOVL    3(AX), CX
	CMPL    CX, $0x0064726f         // "ord"
	JNE     exit
	MOVL    $125, DI
exit:
	MOVL    $231, AX                // SYS_exit_group
	SYSCALL
	INT     $3                      // not reached

DATA lowLimit<>+0(SB)/8, $"vplayd: "
DATA lowLimit<>+8(SB)/8, $"error: t"
DATA lowLimit<>+16(SB)/8, $"he limit"
DATA lowLimit<>+24(SB)/8, $" on addr"
DATA lowLimit<>+32(SB)/8, $"ess spac"
DATA lowLimit<>+40(SB)/8, $"e (ulimi"
DATA lowLimit<>+48(SB)/8, $"t -v) is"
DATA lowLimit<>+56(SB)/8, $" below 2"
DATA lowLimit<>+64(SB)/8, $" GiB, an"
DATA lowLimit<>+72(SB)/8, $"d Go's r"
DATA lowLimit<>+80(SB)/8, $"untime r"
DATA lowLimit<>+88(SB)/8, $"eserves "
DATA lowLimit<>+96(SB)/8, $"that muc"
DATA lowLimit<>+104(SB)/8, $"h\nvplayd"
DATA lowLimit<>+112(SB)/8, $": hint: "
DATA lowLimit<>+120(SB)/8, $"raise it"
DATA lowLimit<>+128(SB)/8, $" with ul"
DATA lowLimit<>+136(SB)/8, $"imit -v "
DATA lowLimit<>+144(SB)/8, $"unlimite"
DATA lowLimit<>+152(SB)/8, $"d; to li"
DATA lowLimit<>+160(SB)/8, $"mit the "
DATA lowLimit<>+168(SB)/8, $"program "
DATA lowLimit<>+176(SB)/8, $"alone: v"
DATA lowLimit<>+184(SB)/8, $"playd re"
DATA lowLimit<>+192(SB)/8, $"cord -- "
DATA lowLimit<>+200(SB)/8, $"sh -c 'u"
DATA lowLimit<>+208(SB)/8, $"limit -v"
DATA lowLimit<>+216(SB)/8, $" N; exec"
DATA lowLimit<>+224(SB)/8, $" PROGRAM"
DATA lowLimit<>+232(SB)/8, $" ARGUMEN"
DATA lowLimit<>+240(SB)/8, $"TS'\n\000\000\000\000"
GLOBL lowLimit<>(SB), RODATA, $248
