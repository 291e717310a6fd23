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
	JMP     slack<>(SB)

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

// A recorder's timers may be late by a millisecond (prctl(2), PR_SET_TIMERSLACK; 50 us are usual). sysmon, a thread of
// Go's runtime, looks around each 20 us for as long as a program is recorded, which was a twentieth of what recording
// costs. Its slack is that of the first thread when it is made, before any Go code runs. What vplayd was started with is for
// the programs that it starts (timerslack_linux_amd64.go).
//
// On the stack are argc and the arguments, of which one is the verb.
TEXT slack<>(SB), NOSPLIT|NOFRAME, $0
	MOVQ    0(SP), BX               // argc
next:
	SUBQ    $1, BX
	JLE     done
	MOVQ    8(SP)(BX*8), AX
	MOVL    0(AX), CX
	CMPL    CX, $0x6f636572         // "reco"
	JEQ     record
	CMPL    CX, $0x61747461         // "atta"
	JNE     next
	MOVL    3(AX), CX
	CMPL    CX, $0x00686361         // "ach"
	JEQ     found
	JMP     next
record:
	MOVL    3(AX), CX
	CMPL    CX, $0x0064726f         // "ord"
	JNE     next
found:
	MOVL    $157, AX                // SYS_prctl
	MOVL    $30, DI                 // PR_GET_TIMERSLACK
	SYSCALL
	CMPQ    AX, $1000000
	JGE     done                    // it is as great, or
	CMPQ    AX, $0                  // there is none
	JLE     done
	MOVQ    AX, ·timerSlack(SB)
	MOVL    $157, AX
	MOVL    $29, DI                 // PR_SET_TIMERSLACK
	MOVL    $1000000, SI
	SYSCALL
done:
	JMP     launch<>(SB)

// The launcher (checkpoint/record/launch.go), which waits for the recorder and becomes the recorded
// program, needs nothing of Go, whose start would be a fifth of what it costs to record a
// short program. So it stands here once more. It is left to Go, in package record, where the descriptor
// is not written in digits alone: there the environment is to be changed.
//
// On the stack are argc, argv[0], "__launch", FD, PROG, the arguments of PROG, 0, and the environment.
TEXT launch<>(SB), NOSPLIT|NOFRAME, $0
	CMPQ    0(SP), $5               // argc
	JCS     runtime
	MOVQ    16(SP), AX              // argv[1]
	MOVQ    $0x68636e75616c5f5f, CX // "__launch"
	CMPQ    0(AX), CX
	JNE     runtime
	CMPB    8(AX), $0
	JNE     runtime
	MOVQ    24(SP), BX
	XORL    R12, R12                // FD
digit:
	MOVBLZX 0(BX), CX
	TESTL   CX, CX
	JEQ     start
	SUBL    $48, CX
	CMPL    CX, $9
	JHI     runtime
	IMUL3L  $10, R12, R12
	ADDL    CX, R12
	INCQ    BX
	JMP     digit

start:
	CMPL    R12, $3
	JCS     runtime
	MOVQ    SP, R13
	SUBQ    $48, SP                 // the signals that are ignored, and blocked; a struct of rt_sigaction(2)
	MOVL    $1, AX                  // SYS_write: one byte says that it runs
	MOVL    R12, DI
	MOVQ    SP, SI
	MOVL    $1, DX
	SYSCALL
	CMPQ    AX, $1
	JNE     gone
state:
	XORL    AX, AX                  // SYS_read
	MOVL    R12, DI
	MOVQ    SP, SI
	MOVL    $16, DX
	SYSCALL
	CMPQ    AX, $-4                 // EINTR
	JEQ     state
	CMPQ    AX, $16
	JNE     gone
	MOVL    $72, AX                 // SYS_fcntl
	MOVL    R12, DI
	MOVL    $2, SI                  // F_SETFD
	MOVL    $1, DX                  // FD_CLOEXEC
	SYSCALL
	MOVQ    0(SP), R14
	MOVL    $1, BX                  // the signal
	MOVQ    $0, 24(SP)              // flags, restorer, mask
	MOVQ    $0, 32(SP)
	MOVQ    $0, 40(SP)
signal:
	MOVQ    R14, AX
	ANDL    $1, AX
	MOVQ    AX, 16(SP)              // SIG_DFL or SIG_IGN
	MOVL    $13, AX                 // SYS_rt_sigaction, which fails for SIGKILL and SIGSTOP
	MOVL    BX, DI
	LEAQ    16(SP), SI
	XORL    DX, DX
	MOVL    $8, R10
	SYSCALL
	SHRQ    $1, R14
	INCL    BX
	CMPL    BX, $64
	JLS     signal
	MOVL    $14, AX                 // SYS_rt_sigprocmask
	MOVL    $2, DI                  // SIG_SETMASK
	LEAQ    8(SP), SI
	XORL    DX, DX
	MOVL    $8, R10
	SYSCALL
	MOVL    $59, AX                 // SYS_execve
	MOVQ    32(R13), DI
	LEAQ    40(R13), SI
	MOVQ    0(R13), CX              // argc
	LEAQ    16(R13)(CX*8), DX       // the environment
	SYSCALL
	NEGQ    AX
	MOVQ    AX, 0(SP)               // why it did not
	MOVL    $1, AX                  // SYS_write
	MOVL    R12, DI
	MOVQ    SP, SI
	MOVL    $4, DX
	SYSCALL
gone:
	MOVL    $125, DI                // exitRecorder
	MOVL    $231, AX                // SYS_exit_group
	SYSCALL
	INT     $3                      // not reached

runtime:
	JMP     vplayd_guard(SB)
