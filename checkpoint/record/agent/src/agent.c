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
};

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
	if (nr >= ROW_COUNT)
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

	if (b->attention || b->regs[17] & FLAG_AC || !(row = row_of(b, rows)))
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
