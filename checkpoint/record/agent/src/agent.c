/* The agent: what it does with one system call of the program. It runs in the program, on a
 * stack of its own, and uses general registers alone. Which calls it makes, and what these
 * write, is in the rows that the supervisor has filled from the recorder's table of calls;
 * what a row does not say the supervisor does (ASK). */

#include "block.h"

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;

enum { ASK = 1, DONE = 0 };

/* When a row's call is the agent's. */
enum {
	NEVER,
	ALWAYS,
	UNLESS, /* argument arg has none of the bits of val */
	WRITES, /* descriptor argument 0 is known to be mapped nowhere */
	CLOSES, /* argument 0 is a descriptor that ends */
	BY_COMMAND, /* argument arg is one of the commands of rows val & 0xffff, val >> 16 of them */
};

/* What the kernel has written at argument arg. */
enum { NOTHING, FIXED, COUNTED /* result times size bytes, with room for argument of */ };

struct out {
	u8 how, arg, of, unused;
	u32 size;
};

struct row {
	u8 when, outs, arg, unused;
	u32 val;
	struct out out[2];
};

struct range { u64 start, end; };

#define DESCRIPTORS 1024
#define WRITABLE 8

struct block {
	u64 entry;
	u64 head, head0;
	volatile u32 phase, attention;
	u64 result;
	u64 ret;
	u64 regs[REG_WORDS];
	u8 unused[0x200 - B_REGS - 8 * REG_WORDS];
	struct range writable[WRITABLE]; /* memory that can be written as a whole */
	u8 unused2[0x400 - 0x200 - 16 * WRITABLE];
	u8 writes[DESCRIPTORS]; /* of a descriptor: writing to it changes no mapped file */
	volatile u32 supervised; /* the thread runs under the supervisor's eyes */
	u32 traps;		 /* which instructions are made to fault */
	u64 action[4];		 /* for rt_sigaction */
	u8 affinity[128];	 /* that the thread would have */
};

/* Where the program's code is written over, and what it has there. */
struct jump {
	u64 addr; /* 0 for none */
	u8 own[8];
};
#define JUMP_SIZE 5

_Static_assert(__builtin_offsetof(struct block, regs) == B_REGS, "");
_Static_assert(__builtin_offsetof(struct block, ret) == B_RETURN, "");
_Static_assert(__builtin_offsetof(struct block, writes) == 0x400, "");
_Static_assert(sizeof(struct row) == 24, "");

/* A record of the ring: one call. Outputs follow, each an address, a length and the bytes,
 * padded to eight. */
struct record {
	u32 size, outs;
	u64 regs[REG_WORDS];
	u64 result;
};

void agent_gate(struct block *b);

static const u8 arg_reg[6] = { 7, 6, 2, 10, 8, 9 }; /* rdi rsi rdx r10 r8 r9 */

static inline u64 arg(const struct block *b, u8 i) { return b->regs[arg_reg[i]]; }

static inline void copy(u8 *to, u64 from, u64 n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

#define ALIGN8(n) (((n) + 7) & ~7ul)
#define FLAG_AC (1 << 18)

/* Errors that the kernel finds before it writes to any argument. */
static int is_clean(long ret)
{
	switch (-ret) {
	case 9:  /* EBADF */
	case 2:  /* ENOENT */
	case 20: /* ENOTDIR */
	case 88: /* ENOTSOCK */
	case 21: /* EISDIR */
	case 29: /* ESPIPE */
		return 1;
	}
	return 0;
}

static int is_writable(const struct block *b, u64 addr, u64 n)
{
	for (int i = 0; i < WRITABLE; i++)
		if (addr >= b->writable[i].start && addr <= b->writable[i].end && n <= b->writable[i].end - addr)
			return 1;
	return 0;
}

/* row_of returns the row of the call, or 0 when it is the supervisor's. */
static const struct row *row_of(struct block *b, const struct row *rows)
{
	u64 nr = b->regs[0];
	if (nr >= CALL_COUNT)
		return 0;
	const struct row *row = &rows[nr];
	switch (row->when) {
	case ALWAYS:
		return row;
	case UNLESS:
		return arg(b, row->arg) & row->val ? 0 : row;
	case CLOSES:
		if ((u32)arg(b, 0) < DESCRIPTORS)
			b->writes[(u32)arg(b, 0)] = 0;
		return row;
	case WRITES:
		return (u32)arg(b, 0) < DESCRIPTORS && b->writes[(u32)arg(b, 0)] ? row : 0;
	case BY_COMMAND:
		for (u32 i = row->val & 0xffff, n = row->val >> 16; n > 0; i++, n--)
			if (rows[i].val == (u32)arg(b, row->arg))
				return &rows[i];
	}
	return 0;
}

int agent_call(struct block *b)
{
	const struct row *rows = (const struct row *)((u8 *)b + (ROWS - BLOCK));
	const struct row *row;

	if (!b->supervised || b->attention || b->regs[17] & FLAG_AC || !(row = row_of(b, rows)))
		return ASK;
	u64 room = RING_SIZE - b->head, need = sizeof(struct record);
	for (int i = 0; i < row->outs; i++) {
		const struct out *o = &row->out[i];
		u64 n = o->size;
		if (o->how == COUNTED) {
			n = arg(b, o->of);
			if (n > RING_SIZE)
				return ASK;
			n *= o->size;
		}
		need += 16 + ALIGN8(n);
	}
	if (need > room)
		return ASK;

	agent_gate(b);

	long ret = (long)b->result;
	int outs = row->outs;
	if (ret < 0 && outs) {
		if (!is_clean(ret))
			return ASK;
		outs = 0;
	}
	struct record *rec = (struct record *)((u8 *)b + (RING - BLOCK) + b->head);
	u8 *at = (u8 *)(rec + 1);
	rec->outs = 0;
	for (int i = 0; i < outs; i++) {
		const struct out *o = &row->out[i];
		u64 addr = arg(b, o->arg), n = o->size;
		if (o->how == COUNTED) {
			u64 most = arg(b, o->of) * o->size;
			n *= (u64)ret;
			if (n != most && !is_writable(b, addr, most))
				return ASK;
		}
		if (addr == 0 || n == 0)
			continue;
		((u64 *)at)[0] = addr;
		((u64 *)at)[1] = n;
		copy(at + 16, addr, n);
		at += 16 + ALIGN8(n);
		rec->outs++;
	}
	for (int i = 0; i < REG_WORDS; i++)
		rec->regs[i] = b->regs[i];
	rec->result = (u64)ret;
	rec->size = (u32)(at - (u8 *)rec);
	*(volatile u64 *)&b->head = b->head + rec->size;
	return DONE;
}

/* What the agent does when the supervisor is gone: it makes the program what it would be without
 * either. The thread is alone in the process, for calls that make others are never the agent's. */

enum { SYS_MPROTECT = 10, SYS_RT_SIGACTION = 13, SYS_GETPID = 39, SYS_PRCTL = 157, SYS_ARCH_PRCTL = 158, SYS_GETTID = 186, SYS_SCHED_SETAFFINITY = 203, SYS_TGKILL = 234 };
enum { SIGSYS = 31, SYS_USER_DISPATCH = 2, PR_SET_TSC = 26, PR_SET_SYSCALL_USER_DISPATCH = 59, ARCH_SET_CPUID = 0x1012 };
enum { TRAP_TSC = 1, TRAP_CPUID = 2 };
#define PAGE 4096ul

long agent_sys(long nr, u64 a, u64 b, u64 c, u64 d);

/* at_default gives SIGSYS its default action. */
static void at_default(struct block *b)
{
	for (int i = 0; i < 4; i++)
		b->action[i] = 0;
	agent_sys(SYS_RT_SIGACTION, SIGSYS, (u64)b->action, 0, 8);
}

static void heal(struct block *b)
{
	struct jump *jumps = (struct jump *)((u8 *)b + (JUMPS - BLOCK));

	agent_sys(SYS_PRCTL, PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0);
	if (b->traps & TRAP_TSC)
		agent_sys(SYS_PRCTL, PR_SET_TSC, 1, 0, 0);
	if (b->traps & TRAP_CPUID)
		agent_sys(SYS_ARCH_PRCTL, ARCH_SET_CPUID, 1, 0, 0);
	agent_sys(SYS_SCHED_SETAFFINITY, 0, sizeof b->affinity, (u64)b->affinity, 0);
	for (int i = 0; i < JUMP_COUNT; i++) {
		if (jumps[i].addr == 0)
			continue;
		u64 first = jumps[i].addr & -PAGE, len = ((jumps[i].addr + JUMP_SIZE - 1) & -PAGE) + PAGE - first;
		if (agent_sys(SYS_MPROTECT, first, len, 3, 0) == 0)
			copy((u8 *)jumps[i].addr, (u64)jumps[i].own, JUMP_SIZE);
		agent_sys(SYS_MPROTECT, first, len, 5, 0);
		jumps[i].addr = 0;
	}
	at_default(b);
}

/* agent_unasked has asked for the supervisor in vain. The program makes its call by itself, or goes
 * on behind it. */
void agent_unasked(struct block *b)
{
	heal(b);
	b->ret = b->regs[16];
	if (b->phase != PHASE_MADE) {
		b->result = b->regs[0];
		b->ret -= 2;
	}
}

/* The general registers of a signal frame, by number of regs: struct sigcontext, behind the
 * flags, the link and the stack of struct ucontext. */
static const u8 in_frame[18] = { 13, 14, 12, 11, 15, 10, 9, 8, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17 };

/* agent_alone is SIGSYS's handler: no tracer has taken it. */
void agent_alone(const u8 *info, u8 *context, struct block *b, u64 asked)
{
	u64 *frame = (u64 *)(context + 40);

	if (*(const int *)(info + 8) != SYS_USER_DISPATCH) { /* it is meant for the program */
		at_default(b);
		agent_sys(SYS_TGKILL, agent_sys(SYS_GETPID, 0, 0, 0, 0), agent_sys(SYS_GETTID, 0, 0, 0, 0), SIGSYS, 0);
		return;
	}
	u64 stopped = *(const u64 *)(info + 16); /* si_call_addr, behind the SYSCALL instruction */
	if (frame[16] != stopped || frame[16] != asked) {
		heal(b);
		if (frame[16] == stopped) /* a call that did not come to the agent */
			frame[16] -= 2;
		return; /* else the supervisor has set the registers before it went */
	}
	agent_unasked(b);
	for (int i = 0; i < 18; i++)
		frame[in_frame[i]] = b->regs[i];
	frame[13] = b->result;
	frame[16] = b->ret;
}
