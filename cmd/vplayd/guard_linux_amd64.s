#include "textflag.h"

// The guardian (checkpoint/record/guardian.go) while nothing has happened yet. Most recordings are of programs that
// end soon, and Go's start would be a quarter of what it costs to record a short one. So it waits here at first, in front of Go's
// runtime: for a quarter of a second, as long as one thread is recorded. When the recorder dies meanwhile each thread is
// sent its SIGSTOP at once; the rest is Go's. Before Go starts, a child, the herald, takes its place, and waits in the same way:
// Go's scheduler may let a thread wait that has just come out of a call. It ends when it has sent what it has to.
//
// On the stack are argc, argv[0], "__guard", eleven numbers that say what lies where in the journal (guardCommand in
// guard_unsafe.go), 0, and the environment. The journal is descriptor 3.
TEXT vplayd_guard(SB), NOSPLIT|NOFRAME, $0
	MOVQ    SP, R13
	CMPQ    0(SP), $13              // argc
	JNE     runtime
	MOVQ    16(SP), AX              // argv[1]
	MOVQ    $0x0064726175675f5f, CX // "__guard"
	CMPQ    0(AX), CX
	JNE     runtime
	SUBQ    $168, SP                // the eleven numbers; the end of the wait at 88, struct sched_attr at 104, whether it is the herald at 152, the herald's number at 160
	XORL    R12, R12
number:
	MOVQ    24(R13)(R12*8), BX
	XORL    AX, AX
digit:
	MOVBLZX 0(BX), CX
	TESTL   CX, CX
	JEQ     parsed
	SUBL    $48, CX
	CMPL    CX, $9
	JHI     runtime
	IMUL3Q  $10, AX, AX
	ADDQ    CX, AX
	INCQ    BX
	JMP     digit
parsed:
	MOVQ    AX, 0(SP)(R12*8)
	INCL    R12
	CMPL    R12, $11
	JCS     number

	MOVL    $157, AX                // SYS_prctl: a kill of all that is called vplayd is not to be the guardian's end
	MOVL    $15, DI                 // PR_SET_NAME
	LEAQ    guardName<>(SB), SI
	SYSCALL
	MOVQ    $1, 104(SP)              // SIG_IGN
	MOVQ    $0, 112(SP)
	MOVQ    $0, 120(SP)
	MOVQ    $0, 128(SP)
	MOVL    $0x4a07, R14            // SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM
	MOVL    $1, BX
signal:
	TESTL   $1, R14
	JEQ     other
	MOVL    $13, AX                 // SYS_rt_sigaction
	MOVL    BX, DI
	LEAQ    104(SP), SI
	XORL    DX, DX
	MOVL    $8, R10
	SYSCALL
other:
	INCL    BX
	SHRL    $1, R14
	JNE     signal

	MOVL    $9, AX                  // SYS_mmap
	XORL    DI, DI
	MOVQ    0(SP), SI
	MOVL    $3, DX                  // PROT_READ, PROT_WRITE
	MOVL    $1, R10                 // MAP_SHARED
	MOVL    $3, R8
	XORL    R9, R9
	SYSCALL
	CMPQ    AX, $-4096
	JHI     runtime
	MOVQ    AX, R15
	MOVQ    16(SP), R14
	ADDQ    R15, R14                // the sentry's futex
	MOVQ    $0, 152(SP)
	MOVQ    $0, 160(SP)
begin:
	MOVL    $1, CX                  // SCHED_FIFO; hurry in guard.go has the same
	MOVL    $1, DX                  // its priority
	XORL    BX, BX
	CALL    schedule<>(SB)
	TESTQ   AX, AX
	JEQ     hurried
	XORL    CX, CX
	XORL    DX, DX
	MOVL    $100000, BX             // nanoseconds of a slice
	CALL    schedule<>(SB)
hurried:
	CMPQ    152(SP), $0
	JEQ     guards
	MOVQ    72(SP), AX
	MOVL    $1, 0(R15)(AX*1)        // the herald is on watch
guards:
	MOVL    $250000000, BX
	CALL    later<>(SB)
wait:
	MOVL    0(R14), DX              // first: whoever ends the wait says so before changing it
	MOVQ    8(SP), AX
	CMPL    0(R15)(AX*1), $0
	JNE     quit
	TESTL   $0x40000000, DX         // FUTEX_OWNER_DIED
	JNE     died
	XORL    R10, R10                // the herald waits for nothing else
	CMPQ    152(SP), $0
	JNE     asleep
	CMPQ    160(SP), $0
	JNE     relieved
	MOVQ    24(SP), AX
	CMPL    0(R15)(AX*1), $1        // threads
	JHI     more
	LEAQ    88(SP), R10
asleep:
	MOVL    $202, AX                // SYS_futex
	MOVQ    R14, DI
	MOVL    $9, SI                  // FUTEX_WAIT_BITSET, whose time is absolute
	XORL    R8, R8
	MOVL    $-1, R9
	SYSCALL
	CMPQ    AX, $-110               // ETIMEDOUT
	JNE     wait
	CMPQ    160(SP), $0
	JNE     wait
more:
	MOVL    $57, AX                 // SYS_fork
	SYSCALL
	TESTQ   AX, AX
	JEQ     herald
	JLT     alone
	MOVQ    64(SP), CX
	MOVL    AX, 0(R15)(CX*1)
	MOVQ    AX, 160(SP)
	JMP     wait

relieved:                               // once the herald is on watch: it may have to wait for a CPU first
	MOVQ    72(SP), AX
	CMPL    0(R15)(AX*1), $0
	JNE     alone
	MOVL    $1000000, BX
	CALL    later<>(SB)
	LEAQ    88(SP), R10
	JMP     asleep

alone:
	XORL    CX, CX
	XORL    DX, DX
	XORL    BX, BX
	CALL    schedule<>(SB)
	MOVL    $11, AX                 // SYS_munmap
	MOVQ    R15, DI
	MOVQ    0(SP), SI
	SYSCALL
	MOVQ    R13, SP
	JMP     _rt0_amd64(SB)

herald:
	MOVL    $157, AX                // SYS_prctl
	MOVL    $1, DI                  // PR_SET_PDEATHSIG: nobody would undo what it does
	MOVL    $9, SI                  // SIGKILL
	SYSCALL
	MOVQ    $1, 152(SP)
	JMP     begin                   // a child has another priority

died:
	MOVL    $250000000, BX
	CALL    later<>(SB)
again:
	MOVQ    80(SP), AX
	MOVL    0(R15)(AX*1), BP        // before the signals are sent
	MOVQ    24(SP), AX
	MOVL    0(R15)(AX*1), R12
	MOVQ    32(SP), BX
	ADDQ    R15, BX
thread:
	SUBL    $1, R12
	JLT     stopped
	MOVQ    48(SP), AX
	MOVL    0(BX)(AX*1), SI
	MOVQ    56(SP), AX
	MOVL    0(BX)(AX*1), DI
	ADDQ    40(SP), BX
	TESTL   SI, SI
	JEQ     thread
	MOVL    $234, AX                // SYS_tgkill
	MOVL    $19, DX                 // SIGSTOP
	SYSCALL
	JMP     thread

stopped:
	CMPQ    152(SP), $0
	JEQ     told
	MOVQ    72(SP), DI
	ADDQ    R15, DI
	MOVL    $2, 0(DI)               // Go's code waits for a change of it
	MOVL    $202, AX                // SYS_futex
	MOVL    $1, SI                  // FUTEX_WAKE
	MOVL    $0x7fffffff, DX
	SYSCALL
told:
	// As long as the tracer's thread had not ended its last wait4(2) may take a SIGSTOP that has come to its delivery, which
	// is lost then. So those that are sent once it has ended are the ones that count.
	TESTL   $0x40000000, BP
	JNE     over
ends:
	MOVQ    80(SP), DI
	ADDQ    R15, DI
	MOVL    0(DI), DX
	TESTL   $0x40000000, DX
	JNE     again
	MOVL    $202, AX                // SYS_futex
	MOVL    $9, SI                  // FUTEX_WAIT_BITSET
	LEAQ    88(SP), R10
	XORL    R8, R8
	MOVL    $-1, R9
	SYSCALL
	CMPQ    AX, $-110               // ETIMEDOUT
	JNE     ends
over:
	CMPQ    152(SP), $0
	JEQ     runtime
quit:
	XORL    DI, DI
	MOVL    $231, AX                // SYS_exit_group
	SYSCALL
	INT     $3                      // not reached

runtime:
	MOVQ    R13, SP
	JMP     _rt0_amd64(SB)

// schedule makes the thread one of policy CX, priority DX and slice BX, whose children are none. The result is in AX, of
// the others BX, R12 to R15 stay.
TEXT schedule<>(SB), NOSPLIT|NOFRAME, $0
	MOVL    $48, 112(SP)            // struct sched_attr is behind the return address: size
	MOVL    CX, 116(SP)             // policy
	MOVQ    $1, 120(SP)             // SCHED_FLAG_RESET_ON_FORK
	MOVL    $0, 128(SP)             // nice
	MOVL    DX, 132(SP)             // priority
	MOVQ    BX, 136(SP)             // runtime
	MOVQ    $0, 144(SP)             // deadline
	MOVQ    $0, 152(SP)             // period
	MOVL    $314, AX                // SYS_sched_setattr
	XORL    DI, DI
	LEAQ    112(SP), SI
	XORL    DX, DX
	SYSCALL
	RET

// later sets the end of the wait to BX nanoseconds from now, less than a second. DX, BX and R12 to R15 stay.
TEXT later<>(SB), NOSPLIT|NOFRAME, $0
	MOVL    $228, AX                // SYS_clock_gettime
	MOVL    $1, DI                  // CLOCK_MONOTONIC
	LEAQ    96(SP), SI              // behind the return address
	SYSCALL
	ADDQ    BX, 104(SP)
	CMPQ    104(SP), $1000000000
	JCS     set
	SUBQ    $1000000000, 104(SP)
	INCQ    96(SP)
set:
	RET

DATA guardName<>+0(SB)/8, $"vplay-gu"
DATA guardName<>+8(SB)/8, $"ardian\000\000"
GLOBL guardName<>(SB), RODATA, $16
