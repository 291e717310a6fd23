/* The memory that the agent and the supervisor share, by offset from the start of the agent's
 * mapping: code, block, rows, stack, jumps, ring. Each thread has one, and the base of GS says
 * where its block is. ../layout.go has the same numbers. */

#define TEXT_SIZE   0x3000
#define BLOCK       TEXT_SIZE
#define ROWS        0x4000
#define ROW_COUNT   512
#define CALL_COUNT  480 /* rows of calls, by number; behind them those of commands */
#define STACK_TOP   0x9000
#define JUMPS       0x9000
#define JUMP_COUNT  1024
#define REFERRED    0xd000 /* a byte for each descriptor, see struct record */
#define RING        0xe000
#define RING_SIZE   0x100000

/* struct block, for entry.S */
#define B_ENTRY      0x00 /* address of agent_entry: stubs jump there, by GS */
#define B_HEAD       0x08 /* bytes of the ring that hold whole records */
#define B_HEAD0      0x10 /* B_HEAD when the call in progress began */
#define B_PHASE      0x18
#define B_ATTENTION  0x1c /* the supervisor wants the next call */
#define B_RESULT     0x20
#define B_RETURN     0x28 /* where the program goes on */
#define B_REGS       0x30
#define R_RAX        (B_REGS + 0)
#define R_RCX        (B_REGS + 8)
#define R_RDX        (B_REGS + 16)
#define R_RBX        (B_REGS + 24)
#define R_RSP        (B_REGS + 32)
#define R_RBP        (B_REGS + 40)
#define R_RSI        (B_REGS + 48)
#define R_RDI        (B_REGS + 56)
#define R_R8         (B_REGS + 64)
#define R_R9         (B_REGS + 72)
#define R_R10        (B_REGS + 80)
#define R_R11        (B_REGS + 88)
#define R_R12        (B_REGS + 96)
#define R_R13        (B_REGS + 104)
#define R_R14        (B_REGS + 112)
#define R_R15        (B_REGS + 120)
#define R_RIP        (B_REGS + 128)
#define R_RFLAGS     (B_REGS + 136)
#define REG_WORDS    19 /* the last is the base of FS, which agent_call finds out */
#define B_SELF       0xd0 /* the address of the block */
#define B_FOURTH     0xd8 /* the call's fourth argument as the gate has it */

#define B_THIRD      0xf8 /* likewise, the third */
#define B_SIZE       0xf60 /* of RDTSC or RDTSCP in the place of which a stub came here, as D_SIZE */
#define B_OWN_RCX    0xf68 /* for these, which change neither register that SYSCALL does: the program's RCX, kept by the stub */
#define B_OWN_R11    0xf70 /* likewise, R11 */

#define PHASE_NONE   0 /* no call has been begun */
#define PHASE_ENTERED 1 /* the program's registers are saved, its call is not made */
#define PHASE_MADE   2 /* B_RESULT has the call's result */
#define PHASE_WAITS  3 /* likewise entered, and the call may wait, which the supervisor may end */
#define PHASE_TELLS  4 /* the call's result is 0, and what it stores in memory is in probe, and not all of it there */

#define FLAG_AC      0x40000 /* of RFLAGS: accesses that are not aligned fault */

/* What a stub says of its site, at RCX when it enters the agent. */
#define D_RIP        0 /* behind the instruction */
#define D_RETURN     8 /* where the program goes on */
#define D_SIZE       16 /* of RDTSC or RDTSCP; 0 for SYSCALL */
