/* The agent: what it does with one system call of the program. It runs in the program, on a
 * stack of its own, and uses general registers alone. Which calls it makes, and what these
 * write, is in the rows that the supervisor has filled from the recorder's table of calls;
 * what a row does not say the supervisor does (ASK). */

#include "block.h"

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;

enum { ASK = 1, DONE = 0, EINTR = 4 };

/* When a row's call is the agent's. */
enum {
	NEVER,
	ALWAYS,
	TRUNCATES, /* argument arg, of an open, has none of the bits of val, or the file is not mapped */
	WRITES, /* argument arg is a descriptor of what is mapped nowhere */
	CLOSES, /* argument arg is a descriptor that ends */
	BY_COMMAND, /* argument arg is one of the commands of rows val & 0xffff, val >> 16 of them */
	NULL_ARG, /* argument arg is 0 */
	CHANGES_FLAGS, /* always, and what is known of waiting is not any more */
	NEW_MEMORY, /* mmap: memory that is the program's alone, holds no code, and lies where the kernel chooses */
	OTHER_SIGNALS, /* argument 0 is no signal whose action the supervisor has a hand in */
	OWN_MEMORY, /* argument 0 is the address, 1 the length of memory that is writable as below */
	SHRINKS, /* mremap: likewise, and it becomes less where it is */
	UNREFERRED, /* no descriptor is referred to */
	MASK, /* of rt_sigprocmask: it asks for the mask, or changes it for all or none of the signals that the supervisor has a hand in */
};

/* What is known of a descriptor. */
enum {
	MAPPED_NOWHERE = 1, /* writing to it changes no mapped file, says the supervisor */
	NEVER_WAITS = 2, /* it is a file or does not block, has the agent found */
};

/* How a call may wait for another thread. */
enum {
	NOT_AT_ALL,
	TO_READ, /* until descriptor argument 0 has something */
	TO_WRITE, /* until it takes something */
	TO_OPEN, /* where the file, argument 0, is a FIFO or a device */
	TO_OPEN_AT, /* likewise, argument 1 in directory argument 0 */
	FOR_EVENTS, /* for as long as argument 3 says: it can be tried without waiting */
	IN_POLL, /* for as long as argument 2 says */
	TO_SEND, /* where descriptor argument 0 does not say that it never waits */
	ALWAYS_WAITS,
};

/* What the kernel has written at argument arg. */
enum {
	NOTHING,
	FIXED, /* size bytes */
	COUNTED, /* result times size bytes, with room for argument of */
	ARRAY, /* argument of times size bytes */
	ADDRESS, /* at most as many bytes as argument of points to, which is changed */
};

struct out {
	u8 how, arg, of, unused;
	u32 size; /* at most, of ADDRESS */
};

struct row {
	u8 when, outs, arg, waits;
	u32 val;
	struct out out[2];
};

struct range { u64 start, end; };

/* A file, as the kernel says which it is. */
struct file { u64 dev, ino; };

#define DESCRIPTORS 1024
#define MAPPED 96
#define ANY_FILE (MAPPED + 2)
#define WRITABLE 24

struct block {
	u64 entry;
	u64 head, head0;
	volatile u32 phase, attention;
	u64 result;
	u64 ret;
	u64 regs[REG_WORDS];
	u64 fs; /* the base of FS that the supervisor has seen last, where fs_by_stops */
	struct block *self;
	u64 fourth;	      /* the call's fourth argument as the gate has it */
	struct block *common; /* the block that has, for all threads, what follows up to about */
	volatile u32 many;    /* there are other threads */
	volatile u32 healing; /* a thread is at it */
	volatile u32 timed;   /* there are other processes */
	volatile u32 patient; /* the thread may wait in a call: no other is ready */
	u64 third;	      /* the call's third argument as the gate has it */
	u64 began;	      /* when a call with a time-out began, in nanoseconds of CLOCK_MONOTONIC */
	u64 last[REG_WORDS];  /* the registers of the last record of the ring */
	volatile u32 fs_by_stops; /* the CPU has no RDFSBASE: calls alone change the base, and the supervisor makes those */
	u64 until;	      /* it may wait for a little at each call, and keep the turn, until then by CLOCK_MONOTONIC; 0 for not at all */
	u32 missed, pass;     /* see comes_soon */
	u64 vclock;	      /* the vDSO's clock_gettime, 0 where it is not to be called: RDTSC may be made to fault */
	u64 together;	      /* signals of which the thread blocks all or none; 0 where the mask is the supervisor's to change */
	u32 masked;	      /* the agent may have changed the mask since the supervisor looked */
	volatile u32 closed;  /* the thread blocks them, or is about to, or has just done so */
	u32 closes;	      /* it blocks them behind the call in progress */
	u64 stands;	      /* where the open file of the descriptor below stands */
	u32 stood;	      /* the descriptor, and 1, that the last call but writes has read from, and referred to; else 0 */
	u64 sum_referred;     /* how many bytes the records in the ring refer to */
	u8 unused[0x200 - 0x158 - 8 * REG_WORDS];
	struct range writable[WRITABLE]; /* the program's own nameless memory that can be written as a whole, and not executed */
	u8 unused2[0x400 - 0x200 - 16 * WRITABLE];
	u8 about[DESCRIPTORS]; /* of a descriptor: what is known of it, as long as it is not closed */
	volatile u32 supervised; /* the thread runs under the supervisor's eyes */
	u32 traps;		 /* which instructions are made to fault */
	u64 action[4];		 /* for rt_sigaction */
	u8 affinity[128];	 /* that the thread would have */
	u8 probe[144];		 /* for what the kernel says of a file */
	u64 guest[4];		 /* the program's action for SIGSYS, as rt_sigaction has it */
	volatile u32 listed;	 /* how many of mapped there are, and 1; ANY_FILE where it may be any; 0 where nothing is known of writes */
	volatile u32 referring; /* a descriptor is referred to: others must not get it */
	struct file mapped[MAPPED];
	u64 insn_size;	      /* see B_SIZE */
	u64 own_rcx, own_r11; /* likewise */
	u64 tsc;	      /* what the last RDTSC gave */
	u64 tsc_began, time_began; /* the TSC at a time, in nanoseconds of CLOCK_MONOTONIC */
	u64 tsc_rate;	      /* how far it goes on in a nanosecond, times 2^32 */
	u64 tsc_aux;	      /* what RDTSCP gives in RCX */
};

/* Where the program's code is written over, and what it has there. */
struct jump {
	u64 addr; /* 0 for none */
	u8 own[8];
};
#define JUMP_SIZE 5

_Static_assert(__builtin_offsetof(struct block, regs) == B_REGS, "");
_Static_assert(__builtin_offsetof(struct block, ret) == B_RETURN, "");
_Static_assert(__builtin_offsetof(struct block, fs) == 0xc8, "");
_Static_assert(__builtin_offsetof(struct block, self) == B_SELF, "");
_Static_assert(__builtin_offsetof(struct block, fourth) == B_FOURTH, "");
_Static_assert(__builtin_offsetof(struct block, patient) == 0xf4, "");
_Static_assert(__builtin_offsetof(struct block, third) == B_THIRD, "");
_Static_assert(__builtin_offsetof(struct block, began) == 0x100, "");
_Static_assert(__builtin_offsetof(struct block, last) == 0x108, "");
_Static_assert(__builtin_offsetof(struct block, common) == 0xe0, "");
_Static_assert(__builtin_offsetof(struct block, until) == 0x1a8, "");
_Static_assert(__builtin_offsetof(struct block, vclock) == 0x1b8, "");
_Static_assert(__builtin_offsetof(struct block, together) == 0x1c0, "");
_Static_assert(__builtin_offsetof(struct block, closed) == 0x1cc, "");
_Static_assert(__builtin_offsetof(struct block, stood) == 0x1e0, "");
_Static_assert(__builtin_offsetof(struct block, sum_referred) == 0x1e8, "");
_Static_assert(__builtin_offsetof(struct block, fs_by_stops) == 0x1a0, "");
_Static_assert(__builtin_offsetof(struct block, writable) == 0x200, "");
_Static_assert(__builtin_offsetof(struct block, probe) == 0x8a8, "");
_Static_assert(__builtin_offsetof(struct block, guest) == 0x938, "");
_Static_assert(__builtin_offsetof(struct block, listed) == 0x958, "");
_Static_assert(__builtin_offsetof(struct block, referring) == 0x95c, "");
_Static_assert(__builtin_offsetof(struct block, mapped) == 0x960, "");
_Static_assert(__builtin_offsetof(struct block, insn_size) == B_SIZE, "");
_Static_assert(__builtin_offsetof(struct block, own_rcx) == B_OWN_RCX, "");
_Static_assert(__builtin_offsetof(struct block, own_r11) == B_OWN_R11, "");
_Static_assert(__builtin_offsetof(struct block, tsc) == 0xf78, "");
_Static_assert(__builtin_offsetof(struct block, tsc_aux) == 0xf98, "");
_Static_assert(sizeof(struct block) <= ROWS - BLOCK, "");
_Static_assert(__builtin_offsetof(struct block, about) == 0x400, "");
_Static_assert(sizeof(struct row) == 24, "");

/* A record of the ring: one call. Behind it stand, as it says: the result, the time, the registers that are not as in the record before,
 * and the outputs. Of a register of which the upper half is the same the lower half is there, behind the others, all together padded to
 * eight bytes. RCX and R11 are what SYSCALL makes them, RIP and RFLAGS. An output is its length, which of the arguments has its address,
 * and the bytes, padded to eight; or, of what was read from a file that does not change, where it is in the file of argument 0.
 *
 * Or one RDTSC or RDTSCP, which says so by its size: then the result is what it gave as a whole, and RCX and R11, which are the
 * program's, stand behind the time. In the place of the lower half of the result is what RDTSCP gives in RCX. */
struct record {
	u32 size;
	u32 what;
	u32 wide;   /* which registers are there as a whole */
	u32 result; /* the lower half */
};

/* What a record has, above a bit for each register that is there. */
enum {
	ONE_OUT = 1 << REG_WORDS, /* times up to 7 */
	REFERS = 1 << 23, /* the output is of such a file, of which there is one then */
	TIMED = 1 << 24, /* the time, nanoseconds of CLOCK_MONOTONIC when the call had been made */
	WIDE_RESULT = 1 << 25, /* the result, which is not its lower half extended with its sign */
	ONE_BYTE = 1 << 26, /* of RDTSC or RDTSCP, times 2 or 3 */
};

struct head { u32 size, arg; }; /* of an output */

void agent_gate(struct block *b);

static const u8 arg_reg[6] = { 7, 6, 2, 10, 8, 9 }; /* rdi rsi rdx r10 r8 r9 */
enum { RCX = 1, RDX = 2, R11 = 11, FS = 18 };

static inline u64 arg(const struct block *b, u8 i) { return b->regs[arg_reg[i]]; }

static inline void copy(u8 *to, u64 from, u64 n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

#define ALIGN8(n) (((n) + 7) & ~7ul)

enum { SYS_READ = 0, SYS_WRITE = 1, SYS_FSTAT = 5, SYS_LSEEK = 8, SYS_MUNMAP = 11, SYS_IOCTL = 16, SYS_PREAD64 = 17, SYS_GETPID = 39, SYS_RECVFROM = 45, SYS_FCNTL = 72, SYS_READLINK = 89, SYS_GETTIMEOFDAY = 96, SYS_FSTATFS = 138, SYS_GETXATTR = 191, SYS_FLISTXATTR = 196, SYS_CLOCK_GETTIME = 228, SYS_NEWFSTATAT = 262, SYS_READLINKAT = 267, SYS_PPOLL = 271, SYS_PROCESS_VM_READV = 310 };

/* Errors that the kernel finds before it writes to any argument. */
static int is_clean(const struct block *b, long ret)
{
	u64 nr = b->regs[0];

	if (ret == -22) /* EINVAL, of what is no link */
		return nr == SYS_READLINK || nr == SYS_READLINKAT;
	if (ret == -25) /* ENOTTY, where no driver took the request */
		return nr == SYS_IOCTL;
	if (ret == -61 || ret == -95 || ret == -34) /* ENODATA, EOPNOTSUPP, ERANGE */
		return nr >= SYS_GETXATTR && nr <= SYS_FLISTXATTR;
	switch (-ret) {
	case 11: /* EAGAIN */
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
	const struct range *r = b->common->writable;
	for (int i = 0; i < WRITABLE; i++)
		if (addr >= r[i].start && addr <= r[i].end && n <= r[i].end - addr)
			return 1;
	return 0;
}

/* note_writable says that memory has been mapped that is writable as a whole. */
static void note_writable(const struct block *b, u64 start, u64 end)
{
	struct range *r = b->common->writable;

	for (int i = 0; i < WRITABLE; i++)
		if (r[i].end && start <= r[i].end && r[i].start <= end) {
			r[i].start = start < r[i].start ? start : r[i].start;
			r[i].end = end > r[i].end ? end : r[i].end;
			return;
		}
	for (int i = WRITABLE - 1; i > 0; i--) /* what was said first is forgotten */
		r[i] = r[i - 1];
	r[0].start = start;
	r[0].end = end;
}

/* forget_writable is for memory that is gone. Of what it was in the midst of the part before it is kept. */
static void forget_writable(const struct block *b, u64 start, u64 end)
{
	struct range *r = b->common->writable;

	for (int i = 0; i < WRITABLE; i++)
		if (start < r[i].end && r[i].start < end) {
			if (r[i].start < start)
				r[i].end = start;
			else if (r[i].end > end)
				r[i].start = end;
			else
				r[i].start = r[i].end = 0;
		}
}

#define PAGE 4096ul
#define PAGES(n) (((n) + PAGE - 1) & -PAGE)
#define MREMAP_MAYMOVE 1

/* is_own reports whether memory whose address and length are arguments 0 and 1 is writable as above. */
static int is_own(const struct block *b)
{
	u64 n = PAGES(arg(b, 1));

	return arg(b, 0) % PAGE == 0 && n >= arg(b, 1) && n > 0 && is_writable(b, arg(b, 0), n);
}

/* is_known reports whether something is known of descriptor argument i. */
static int is_known(const struct block *b, u8 i, u8 what)
{
	u32 fd = (u32)arg(b, i);
	return fd < DESCRIPTORS && b->common->about[fd] & what;
}

/* forget_waiting is for a call that changes what makes descriptors wait: others may be of the same open file. */
static void forget_waiting(const struct block *b)
{
	for (u32 i = 0; i < DESCRIPTORS; i++)
		b->common->about[i] &= ~NEVER_WAITS;
}

enum { PROT_WRITE = 2, PROT_EXEC = 4, MAP_PRIVATE_ANONYMOUS = 0x22, SIGSEGV = 11, SIGSYS = 31 };
#define MAP_ADVICE 0x24000ul /* MAP_NORESERVE, MAP_STACK */

long agent_sys(long nr, u64 a, u64 b, u64 c, u64 d);
long agent_sys5(long nr, u64 a, u64 b, u64 c, u64 d, u64 e);

#define AT_FDCWD (-100l)
#define PROC_SUPER_MAGIC 0x9fa0
enum { S_IFMT = 0170000, S_IFSOCK = 0140000, S_IFREG = 0100000, S_IFCHR = 0020000, S_IFIFO = 0010000 };

static u32 kind_of_file(const struct block *b) { return *(const u32 *)(b->probe + 24) & S_IFMT; }

/* is_mapped reports whether what the kernel has said of a file is that it is one that is mapped. */
static int is_mapped(const struct block *b)
{
	const struct block *c = b->common;
	const u64 *stat = (const u64 *)b->probe;

	if (c->listed == ANY_FILE)
		return 1;
	for (u32 i = 0; i + 1 < c->listed && i < MAPPED; i++)
		if (stat[0] == c->mapped[i].dev && stat[1] == c->mapped[i].ino)
			return 1;
	return 0;
}

/* is_sink reports whether what the kernel has said of a file is that it is /dev/null or /dev/zero. */
static int is_sink(const struct block *b)
{
	u64 rdev = *(const u64 *)(b->probe + 40);

	return kind_of_file(b) == S_IFCHR && (rdev == 0x103 || rdev == 0x105);
}

/* writes_nothing_mapped reports whether writing to descriptor argument i changes no memory. It is found out once, where it is known
 * which files are mapped. Files of /proc may be memory. */
static int writes_nothing_mapped(struct block *b, u8 i)
{
	u32 fd = (u32)arg(b, i);

	if (is_known(b, i, MAPPED_NOWHERE))
		return 1;
	if (fd >= DESCRIPTORS || !b->common->listed || agent_sys(SYS_FSTAT, fd, (u64)b->probe, 0, 0) < 0)
		return 0;
	switch (kind_of_file(b)) {
	case S_IFREG:
		if (is_mapped(b) || agent_sys(SYS_FSTATFS, fd, (u64)b->probe, 0, 0) < 0 || *(const u64 *)b->probe == PROC_SUPER_MAGIC)
			return 0;
		break;
	case S_IFIFO:
	case S_IFSOCK:
		break;
	default:
		if (!is_sink(b))
			return 0;
	}
	b->common->about[fd] |= MAPPED_NOWHERE;
	__sync_synchronize();
	if (b->common->listed)
		return 1;
	b->common->about[fd] = 0; /* the supervisor has just begun to record another process, and forbidden all */
	return 0;
}

/* stat_opened asks what the kernel says of the file that the call opens. */
static long stat_opened(struct block *b, const struct row *row)
{
	if (row->waits == TO_OPEN)
		return agent_sys(SYS_NEWFSTATAT, (u64)AT_FDCWD, arg(b, 0), (u64)b->probe, 0);
	return agent_sys(SYS_NEWFSTATAT, arg(b, 0), arg(b, 1), (u64)b->probe, 0);
}

/* truncates_nothing_mapped reports whether opening a file so that it is emptied changes no memory. */
static int truncates_nothing_mapped(struct block *b, const struct row *row)
{
	long ret;

	if (!b->common->listed)
		return 0;
	ret = stat_opened(b, row);
	return ret == -2 /* ENOENT: it is made */ || (ret == 0 && (is_sink(b) || (kind_of_file(b) == S_IFREG && !is_mapped(b))));
}

/* referred has a byte for each descriptor, which is not 0 while what is read there is in a file that does not change. The supervisor
 * sets it, and may take it back at any time: what was read before that is in the copy that it makes then. */
static volatile u8 *referred(const struct block *b) { return (volatile u8 *)b->common + (REFERRED - BLOCK); }

#define MOST_REFERRED (16 << 20) /* bytes: with more the supervisor is asked, who may end the interval */
#define LEAST_REFERRED 1024 /* bytes: to copy less is faster than to ask where the file stands */

/* refers reports whether the call reads such a file, at most n bytes. */
static int refers(const struct block *b, u64 n)
{
	u64 nr = b->regs[0];

	return (nr == SYS_READ || nr == SYS_PREAD64) && n >= LEAST_REFERRED && (u32)arg(b, 0) < DESCRIPTORS && referred(b)[(u32)arg(b, 0)];
}

/* read_word reads a word of the program's memory. A fault in the agent would be nobody's, so where it is not known that it can be
 * read the kernel does it, as it would for the call. */
static int read_word(const struct block *b, u64 addr, u64 *word)
{
	struct { u64 at, size; } to = { (u64)word, sizeof *word }, from = { addr, sizeof *word };

	if (is_writable(b, addr, sizeof *word)) {
		*word = *(const u64 *)addr;
		return 1;
	}
	return agent_sys5(SYS_PROCESS_VM_READV, (u64)agent_sys(SYS_GETPID, 0, 0, 0, 0), (u64)&to, 1, (u64)&from, 1) == sizeof *word;
}

enum { SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK };

/* closes_with reports whether the thread blocks the signals behind a change of the mask of which it blocks all or none. */
static int closes_with(const struct block *b, u64 set)
{
	switch ((int)arg(b, 0)) {
	case SIG_BLOCK:
		return b->closed || set & b->together;
	case SIG_UNBLOCK:
		return b->closed && !(set & b->together);
	}
	return (set & b->together) != 0;
}

/* may_mask reports whether the agent makes a call that asks for the signal mask or changes it. The timer's signal is one of those that
 * stay together. The timer takes another where they are blocked; it asks for attention first and looks then, here it is the
 * other way round, so that one of both notices. */
static int may_mask(struct block *b)
{
	u64 set;

	if (arg(b, 1) == 0)
		return 1;
	if (b->together == 0 || !read_word(b, arg(b, 1), &set) || ((set & b->together) != 0 && (set & b->together) != b->together))
		return 0;
	b->closes = (u32)closes_with(b, set);
	if (b->closes)
		__atomic_store_n(&b->closed, 1, __ATOMIC_SEQ_CST);
	b->masked = 1;
	return !b->attention;
}

/* follow_mask is for such a call that has been made. */
static void follow_mask(struct block *b)
{
	if (arg(b, 1))
		b->closed = b->closes;
}

enum { O_WRITES = 03 /* O_WRONLY, O_RDWR */, O_NONBLOCK = 04000 };

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
	case UNREFERRED:
		return b->common->referring ? 0 : row;
	case TRUNCATES:
		if (arg(b, row->arg) & O_NONBLOCK && arg(b, row->arg) & (row->val | O_WRITES))
			return 0; /* it fails where the supervisor has a lease */
		return !(arg(b, row->arg) & row->val) || truncates_nothing_mapped(b, row) ? row : 0;
	case CLOSES:
		if ((u32)arg(b, row->arg) < DESCRIPTORS) {
			b->common->about[(u32)arg(b, row->arg)] = 0;
			referred(b)[(u32)arg(b, row->arg)] = 0;
		}
		return row;
	case WRITES:
		return writes_nothing_mapped(b, row->arg) ? row : 0;
	case NULL_ARG:
		return arg(b, row->arg) ? 0 : row;
	case NEW_MEMORY:
		return arg(b, 2) & PROT_EXEC || (arg(b, 3) & ~MAP_ADVICE) != MAP_PRIVATE_ANONYMOUS ? 0 : row;
	case OTHER_SIGNALS:
		return (u32)arg(b, 0) == SIGSEGV || (u32)arg(b, 0) == SIGSYS ? 0 : row;
	case OWN_MEMORY:
		return is_own(b) ? row : 0;
	case SHRINKS:
		return arg(b, 3) & ~MREMAP_MAYMOVE || PAGES(arg(b, 2)) == 0 || PAGES(arg(b, 2)) > PAGES(arg(b, 1)) || !is_own(b) ? 0 : row;
	case MASK:
		return may_mask(b) ? row : 0;
	case BY_COMMAND:
		for (u32 i = row->val & 0xffff, n = row->val >> 16; n > 0; i++, n--)
			if (rows[i].val == (u32)arg(b, row->arg)) {
				if (rows[i].when == CHANGES_FLAGS)
					forget_waiting(b);
				return rows[i].when == OWN_MEMORY && !is_own(b) ? 0 : &rows[i];
			}
	}
	return 0;
}

enum { F_GETFL = 3, O_PATH = 010000000, PIPE_ROOM = 4096 };
enum { POLLIN = 1, POLLOUT = 4, MSG_WAITALL = 0x100 };
enum { CLOCK_REALTIME, CLOCK_MONOTONIC };

/* is_file reports whether what the kernel has said of a file is that it is a regular one or a directory. */
static int is_file(const struct block *b)
{
	u32 kind = kind_of_file(b);
	return kind == S_IFREG || kind == 0040000;
}

/* read_clock has the vDSO read a clock, into probe. Whoever finds the thread there knows by the phase that it is in the agent. */
static int read_clock(struct block *b, int id)
{
	return b->vclock && ((int (*)(int, u8 *))b->vclock)(id, b->probe) == 0;
}

/* clock returns the time in nanoseconds, or 0. */
static u64 clock(struct block *b)
{
	const u64 *t = (const u64 *)b->probe;

	if (!read_clock(b, CLOCK_MONOTONIC) && agent_sys(SYS_CLOCK_GETTIME, CLOCK_MONOTONIC, (u64)t, 0, 0) < 0)
		return 0;
	return t[0] * 1000000000 + t[1];
}

/* The clocks that the vDSO reads without a system call: real time, monotonic, raw, both coarse ones, and since the start. */
#define VDSO_CLOCKS 0xf3u

#define TIME_SIZE 16 /* of struct timespec, and of struct timeval */

/* tells_time makes a call that asks for the time, if it can do so without the kernel. A fault in the agent would be nobody's, so it
 * is known of the memory that it can be written. Whoever finds the thread while it stores the time there has all of it in probe. */
static int tells_time(struct block *b)
{
	u64 *t = (u64 *)b->probe, *to;
	u32 id = (u32)arg(b, 0);

	switch (b->regs[0]) {
	case SYS_CLOCK_GETTIME:
		to = (u64 *)arg(b, 1);
		if (id > 7 || !(VDSO_CLOCKS >> id & 1) || !is_writable(b, (u64)to, TIME_SIZE) || !read_clock(b, (int)id))
			return 0;
		break;
	case SYS_GETTIMEOFDAY:
		to = (u64 *)arg(b, 0);
		if (arg(b, 1) || !is_writable(b, (u64)to, TIME_SIZE) || !read_clock(b, CLOCK_REALTIME))
			return 0;
		t[1] /= 1000;
		break;
	default:
		return 0;
	}
	b->result = 0;
	__atomic_store_n(&b->phase, PHASE_TELLS, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	copy((u8 *)to, (u64)t, TIME_SIZE);
	b->phase = PHASE_MADE;
	return 1;
}

#define SOON 150000 /* nanoseconds: to pass the turn takes longer */
#define MOST_MISSED 6

/* hopes reports whether a descriptor, which is not ready, is waited for with the turn: for a little, and only while the thread's
 * turn lasts. A thread for which nothing came goes without for a time, 2^n - 1 waits after the nth. */
static int hopes(struct block *b)
{
	if (b->until == 0 || clock(b) > b->until)
		return 0;
	if (b->pass) {
		b->pass--;
		return 0;
	}
	return 1;
}

/* comes_soon reports whether a descriptor is ready for poll's event, or becomes so in about the time that it takes to pass the turn to
 * another process and back: a client that has its answer mostly asks again at once. */
static int comes_soon(struct block *b, u64 fd, int event)
{
	struct { int fd; short events, revents; u64 seconds, nanoseconds; } *p = (void *)b->probe;
	int hope = hopes(b), ready;

	p->fd = (int)fd;
	p->events = (short)event;
	p->revents = 0;
	p->seconds = 0;
	p->nanoseconds = hope ? SOON : 0;
	ready = agent_sys(SYS_PPOLL, (u64)p, 1, (u64)&p->seconds, 0) == 1;
	if (ready)
		b->missed = 0;
	else if (hope) {
		if (b->missed < MOST_MISSED)
			b->missed++;
		b->pass = (1u << b->missed) - 1;
	}
	return ready;
}

/* fd_waits reports whether descriptor argument 0 may have a call wait for poll's event, or for more than poll
 * can tell if that is 0. */
static int fd_waits(struct block *b, int event)
{
	u64 fd = arg(b, 0);

	if (is_known(b, 0, NEVER_WAITS))
		return 0;
	if (agent_sys(SYS_FSTAT, fd, (u64)b->probe, 0, 0) < 0)
		return 0;
	if (is_file(b) || agent_sys(SYS_FCNTL, fd, F_GETFL, 0, 0) & O_NONBLOCK) {
		if (fd < DESCRIPTORS)
			b->common->about[fd] |= NEVER_WAITS;
		return 0;
	}
	if (event == 0 || (event == POLLOUT && arg(b, 2) > PIPE_ROOM))
		return 1;
	return !comes_soon(b, fd, event);
}

/* is_memory reports whether what the kernel has said of a file is that it is /dev/null or the like. */
static int is_memory(const struct block *b)
{
	return kind_of_file(b) == S_IFCHR && *(const u64 *)(b->probe + 40) >> 8 == 1;
}

/* open_waits reports whether opening a file may wait. The row's argument has the flags. */
static int open_waits(struct block *b, const struct row *row)
{
	if (arg(b, row->arg) & (O_NONBLOCK | O_PATH))
		return 0;
	return stat_opened(b, row) == 0 && !is_file(b) && !is_memory(b);
}

/* waits_for_all reports whether the call waits until it has all that it asks for, and gives back a part where it is ended. */
static int waits_for_all(const struct block *b)
{
	return b->regs[0] == SYS_RECVFROM && arg(b, 3) & MSG_WAITALL;
}

/* waits reports whether the call may wait for another thread. The thread has its turn while the agent
 * makes a call; the supervisor takes care of those that wait. One that waits all the same is ended by the supervisor. */
static int waits(struct block *b, const struct row *row)
{
	if (waits_for_all(b))
		return 1;
	switch (row->waits) {
	case TO_READ:
		return fd_waits(b, POLLIN);
	case TO_WRITE:
		return fd_waits(b, POLLOUT);
	case TO_SEND:
		return fd_waits(b, 0);
	case TO_OPEN:
	case TO_OPEN_AT:
		return open_waits(b, row);
	case IN_POLL:
		return (int)arg(b, 2) != 0;
	case ALWAYS_WAITS:
		return 1;
	}
	return 0;
}

/* is_whole reports whether a call that is ended while it waits has done nothing, so that it can be made again. Of what is
 * to be sent a part may be gone. */
static int is_whole(const struct block *b, const struct row *row)
{
	return row->waits != TO_WRITE && row->waits != TO_SEND && !waits_for_all(b);
}

/* begin decides how the call is made that may wait, and returns 0 when that is not the agent's. As long as no other
 * thread is ready it may wait as it is, with the thread's turn. The supervisor takes the patience first when one becomes ready,
 * then looks at the phase; here it is the other way round, so that one of both notices. */
static int begin(struct block *b, const struct row *row)
{
	int timeout = row->waits == FOR_EVENTS ? (int)arg(b, 3) : row->waits == IN_POLL ? (int)arg(b, 2) : 0;

	b->third = arg(b, 2);
	b->fourth = arg(b, 3);
	if (row->waits == NOT_AT_ALL)
		return 1;
	b->began = b->patient && timeout > 0 ? clock(b) : 0;
	if (is_whole(b, row)) {
		__atomic_store_n(&b->phase, PHASE_WAITS, __ATOMIC_SEQ_CST);
		if (b->patient)
			return 1;
		b->phase = PHASE_ENTERED;
	}
	if (row->waits == FOR_EVENTS) {
		if (timeout != 0 && b->until != 0)
			comes_soon(b, arg(b, 0), POLLIN);
		b->fourth = 0;
	}
	return !b->common->many || !waits(b, row);
}

/* room_of returns how much the log of the call may take, more than the ring where that is not known. *length is the room for an
 * address that the program gives (ADDRESS). */
static u64 room_of(const struct block *b, const struct row *row, u32 *length)
{
	u64 need = sizeof(struct record) + 8 + 8 + 8 * REG_WORDS;

	if (refers(b, arg(b, 2)))
		return need + sizeof(struct head) + 8;
	for (int i = 0; i < row->outs; i++) {
		const struct out *o = &row->out[i];
		u64 n = o->size;
		if (o->how == COUNTED || o->how == ARRAY) {
			n = arg(b, o->of);
			if (n > RING_SIZE)
				return RING_SIZE + 1;
			n *= o->size;
		}
		if (o->how == ADDRESS) { /* getsockname writes the length without an address, too */
			if (arg(b, o->of) == 0)
				continue;
			if (!is_writable(b, arg(b, o->of), 4) || (*length = *(const u32 *)arg(b, o->of)) > n)
				return RING_SIZE + 1;
			need += sizeof(struct head) + 8;
		}
		need += sizeof(struct head) + ALIGN8(n);
	}
	return need;
}

/* put_regs writes the registers that have changed since the record before. */
static u8 *put_regs(struct block *b, struct record *rec, u64 *at)
{
	u32 wide = 0, narrow = 0, *low;

	for (u32 i = 0; i < REG_WORDS; i++) {
		u64 changed = b->regs[i] ^ b->last[i];
		if (changed == 0 || i == RCX || i == R11)
			continue;
		b->last[i] = b->regs[i];
		if (changed >> 32) {
			*at++ = b->regs[i];
			wide |= 1u << i;
		} else
			narrow |= 1u << i;
	}
	rec->what |= wide | narrow;
	rec->wide = wide;
	for (low = (u32 *)at; narrow; narrow &= narrow - 1)
		*low++ = (u32)b->regs[__builtin_ctz(narrow)];
	return (u8 *)ALIGN8((u64)low);
}

/* put_out writes n bytes at argument i. */
static u8 *put_out(const struct block *b, struct record *rec, u8 *at, u8 i, u64 n)
{
	struct head *h = (struct head *)at;

	if (arg(b, i) == 0 || n == 0)
		return at;
	h->size = (u32)n;
	h->arg = i;
	copy((u8 *)(h + 1), arg(b, i), n);
	rec->what += ONE_OUT;
	return (u8 *)(h + 1) + ALIGN8(n);
}

/* offset_of returns where in the file a call has begun to read n bytes, or less than 0. The file's position is mostly the one behind the
 * read before: the other threads stand still, and of this thread's calls only writes have come since. These do not move a file that is
 * referred to, which nobody has open for writing. */
static long offset_of(struct block *b, u32 stood, u64 n)
{
	u32 fd = (u32)arg(b, 0);

	if (b->regs[0] == SYS_PREAD64)
		return (long)arg(b, 3);
	if (stood == fd + 1)
		b->stands += n;
	else if ((b->stands = (u64)agent_sys(SYS_LSEEK, fd, 0, 1 /* SEEK_CUR */, 0)) >> 63)
		return -1;
	b->stood = fd + 1;
	return (long)(b->stands - n);
}

/* put_reference writes, as an output, where what has been read is in the file; 0 where that is not known. */
static u8 *put_reference(struct block *b, struct record *rec, u8 *at, u32 stood, u64 n)
{
	long offset = offset_of(b, stood, n);
	struct head *h = (struct head *)at;

	if (offset < 0)
		return 0;
	b->sum_referred += n;
	h->size = (u32)n;
	h->arg = 1;
	*(long *)(h + 1) = offset;
	rec->what += ONE_OUT | REFERS;
	return (u8 *)(h + 1) + 8;
}

/* is_tried says that a call's result is only that of not having waited. */
static int is_tried(const struct block *b, long ret) { return ret == 0 && b->fourth != arg(b, 3); }

/* follow_memory keeps what is known of writable memory in step with a call that has been made, of which the rows are these. */
static void follow_memory(const struct block *b, const struct row *row, long ret)
{
	u64 addr = arg(b, 0), len = PAGES(arg(b, 1));

	if (row->when == NEW_MEMORY && ret > 0 && arg(b, 2) & PROT_WRITE)
		note_writable(b, (u64)ret, (u64)ret + len);
	if (b->regs[0] == SYS_MUNMAP)
		forget_writable(b, addr, addr + len);
	if (row->when == SHRINKS)
		forget_writable(b, addr + PAGES(arg(b, 2)), addr + len);
}

/* is_memory_call says that the supervisor has to look at what a call has done that failed: it may have gone half the way. */
static int is_memory_call(const struct row *row) { return row->when == OWN_MEMORY || row->when == SHRINKS; }

/* keep_fs keeps the base of FS with the registers that are saved. 0 says that it is of a segment, which only the supervisor can look up. */
static int keep_fs(struct block *b)
{
	u32 selector;

	if (!b->fs_by_stops) {
		b->regs[FS] = __builtin_ia32_rdfsbase64();
		return 1;
	}
	__asm__ volatile("mov %%fs, %0" : "=r"(selector));
	b->regs[FS] = b->fs;
	return selector == 0;
}

/* is_ours reports whether what comes now is the agent's to do, as far as the thread is concerned, whose registers are all saved then. */
static int is_ours(struct block *b) { return b->supervised && !b->attention && !(b->regs[17] & FLAG_AC) && keep_fs(b); }

enum { RDTSCP_SIZE = 3 };

/* read_tsc does what RDTSC or RDTSCP does, which may be made to fault: what the TSC is follows from the time. It is done once the
 * record is in the ring; up to there, the thread stands before the instruction. */
static int read_tsc(struct block *b)
{
	const struct block *c = b->common;
	u64 size = b->insn_size, *words, now;
	struct record *rec = (struct record *)((u8 *)b + (RING - BLOCK) + b->head);

	b->regs[RCX] = b->own_rcx;
	b->regs[R11] = b->own_r11;
	if (!is_ours(b) || sizeof *rec + 8 * (4 + REG_WORDS) > RING_SIZE - b->head || !(now = clock(b)))
		return ASK;
	b->tsc = c->tsc_began + (u64)((unsigned __int128)(now - c->time_began) * c->tsc_rate >> 32);
	words = (u64 *)(rec + 1);
	rec->what = WIDE_RESULT | (u32)size * ONE_BYTE;
	rec->result = (u32)b->tsc_aux;
	*words++ = b->tsc;
	if (c->timed) {
		*words++ = now;
		rec->what |= TIMED;
	}
	*words++ = b->own_rcx;
	*words++ = b->own_r11;
	rec->size = (u32)(put_regs(b, rec, words) - (u8 *)rec);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(volatile u64 *)&b->head = b->head + rec->size;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	b->result = (u32)b->tsc;
	b->regs[RDX] = b->tsc >> 32;
	if (size == RDTSCP_SIZE)
		b->regs[RCX] = b->tsc_aux;
	return DONE;
}

int agent_call(struct block *b)
{
	const struct row *rows = (const struct row *)((u8 *)b + (ROWS - BLOCK));
	const struct row *row;
	u32 length = 0, stood = b->stood;

	if (b->insn_size)
		return read_tsc(b);
	if (b->regs[0] != SYS_WRITE)
		b->stood = 0;
	if (!is_ours(b) || !(row = row_of(b, rows)))
		return ASK;
	if (b->sum_referred > MOST_REFERRED || room_of(b, row, &length) > RING_SIZE - b->head)
		return ASK;
	if (!begin(b, row))
		return ASK;
	if (!tells_time(b))
		agent_gate(b);

	long ret = (long)b->result;
	if (is_tried(b, ret))
		return ASK; /* which takes it for not made */
	int outs = row->outs;
	if (ret == -EINTR || (ret < 0 && is_memory_call(row)))
		return ASK;
	follow_memory(b, row, ret);
	if (row->when == MASK && ret == 0)
		follow_mask(b);
	if (ret < 0 && outs) {
		if (!is_clean(b, ret))
			return ASK;
		outs = 0;
	}
	struct record *rec = (struct record *)((u8 *)b + (RING - BLOCK) + b->head);
	u64 *words = (u64 *)(rec + 1), *time = 0;
	rec->what = 0;
	rec->result = (u32)ret;
	if (ret != (int)ret) {
		*words++ = (u64)ret;
		rec->what |= WIDE_RESULT;
	}
	if (b->common->timed) {
		time = words++;
		rec->what |= TIMED;
	}
	u8 *at = put_regs(b, rec, words), *next;
	for (int i = 0; i < outs; i++) {
		const struct out *o = &row->out[i];
		u64 n = o->size;
		switch (o->how) {
		case COUNTED: {
			u64 most = arg(b, o->of) * o->size;
			n *= (u64)ret;
			if (n > most) /* MSG_TRUNC */
				n = most;
			if (n != most && !is_writable(b, arg(b, o->arg), most))
				return ASK;
			if (refers(b, n) && (next = put_reference(b, rec, at, stood, n))) {
				at = next;
				continue;
			}
			if (sizeof(struct head) + ALIGN8(n) > (u64)((u8 *)b + (RING - BLOCK) + RING_SIZE - at)) /* it was to be referred to */
				return ASK;
			break;
		}
		case ARRAY:
			n *= (u32)arg(b, o->of);
			break;
		case ADDRESS:
			if (arg(b, o->of) == 0)
				continue;
			n = *(const u32 *)arg(b, o->of);
			if (n > length)
				n = length;
			at = put_out(b, rec, at, o->of, 4);
			break;
		}
		at = put_out(b, rec, at, o->arg, n);
	}
	if (time)
		*time = clock(b);
	rec->size = (u32)(at - (u8 *)rec);
	*(volatile u64 *)&b->head = b->head + rec->size;
	return DONE;
}

/* What the agent does when the supervisor is gone: it makes the program what it would be without
 * either. Each thread does so for itself, and the first for the program's code. */

enum { SYS_MPROTECT = 10, SYS_SCHED_YIELD = 24, SYS_RT_SIGACTION = 13, SYS_PRCTL = 157, SYS_ARCH_PRCTL = 158, SYS_GETTID = 186, SYS_SCHED_SETAFFINITY = 203, SYS_TGKILL = 234 };
enum { SYS_USER_DISPATCH = 2, PR_SET_TSC = 26, PR_SET_SYSCALL_USER_DISPATCH = 59, ARCH_SET_CPUID = 0x1012 };
enum { TRAP_TSC = 1, TRAP_CPUID = 2 };

/* as_guest gives SIGSYS the action that the program wants. */
static void as_guest(struct block *b)
{
	agent_sys(SYS_RT_SIGACTION, SIGSYS, (u64)b->common->guest, 0, 8);
}

/* put_back has the program's own bytes at the jump. Other threads may be about to execute it, so it
 * is one store, in one page if the jump is. */
static void put_back(const struct jump *j)
{
	u64 before = j->addr % PAGE > PAGE - 8 ? 8 - JUMP_SIZE : 0, mask = ((1ul << 8 * JUMP_SIZE) - 1) << 8 * before;
	u64 *at = (u64 *)(j->addr - before), was = __atomic_load_n(at, __ATOMIC_RELAXED), now;

	do
		now = (was & ~mask) | (*(const u64 *)j->own << 8 * before & mask);
	while (!__atomic_compare_exchange_n(at, &was, now, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}

static void take_jumps_out(struct block *common)
{
	struct jump *jumps = (struct jump *)((u8 *)common + (JUMPS - BLOCK));

	while (__atomic_exchange_n(&common->healing, 1, __ATOMIC_ACQUIRE))
		agent_sys(SYS_SCHED_YIELD, 0, 0, 0, 0);
	for (int i = 0; i < JUMP_COUNT; i++) {
		if (jumps[i].addr == 0)
			continue;
		u64 first = jumps[i].addr & -PAGE, len = ((jumps[i].addr + JUMP_SIZE - 1) & -PAGE) + PAGE - first;
		if (agent_sys(SYS_MPROTECT, first, len, 7, 0) == 0)
			put_back(&jumps[i]);
		agent_sys(SYS_MPROTECT, first, len, 5, 0);
		jumps[i].addr = 0;
	}
	__atomic_store_n(&common->healing, 0, __ATOMIC_RELEASE);
}

static void heal(struct block *b)
{
	agent_sys(SYS_PRCTL, PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0);
	if (b->traps & TRAP_TSC)
		agent_sys(SYS_PRCTL, PR_SET_TSC, 1, 0, 0);
	if (b->traps & TRAP_CPUID)
		agent_sys(SYS_ARCH_PRCTL, ARCH_SET_CPUID, 1, 0, 0);
	agent_sys(SYS_SCHED_SETAFFINITY, 0, sizeof b->affinity, (u64)b->affinity, 0);
	take_jumps_out(b->common);
	if (!b->common->many) /* else another may come to the handler yet */
		as_guest(b);
}

/* agent_unasked has asked for the supervisor in vain. The program makes its call by itself, or goes
 * on behind it. */
void agent_unasked(struct block *b)
{
	heal(b);
	b->ret = b->regs[16];
	if (b->insn_size || b->phase != PHASE_MADE || is_tried(b, (long)b->result)) {
		b->result = b->regs[0];
		b->ret -= b->insn_size ? b->insn_size : 2;
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
		as_guest(b);
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
