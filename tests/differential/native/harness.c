// harness executes instruction bytes on the CPU it runs on, from a state it is
// given, and answers with the state afterwards. It is the oracle of the
// differential test; the other side is native_linux.go; doc.go describes the
// memory layout.
//
// How one case runs: patches are written into the sandbox, the bytes into a
// code page filled with INT3, and behind them `jmp *EXIT(%rip)`, which
// needs no register and no flag. enter_case loads bases, XSAVE image, flags and
// registers, and jumps. leave_case stores everything relative to RIP. A
// signal (fault, or the INT3 a branch has landed on) arrives on an alternate
// stack; the state is read from its frame, and the frame is abandoned: control
// goes back by a plain jump, as no signal is ever masked.
//
// Nothing between enter_case and leave_case may use FS (thread pointer), the
// guest's stack or the C library.
//
// A case may store anywhere that it can form an address of: sequences do so below
// 4 GiB, where sandbox and code are. There the harness has nothing that can be written. It
// is a static PIE, which Linux puts among the mappings below the stack, and
// reaches its own code again through one read-only page at EXIT.
//
// Built by gcc -O2 -fPIE -static-pie -fno-stack-protector, linux/amd64 only.
#define _GNU_SOURCE
#include <cpuid.h>
#include <errno.h>
#include <stddef.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

enum {
	CODE = 0x30000000, CODE_SIZE = 0x2000,
	EXIT = 0x38000000,              // one read-only page: where leave_case is
	DATA = 0x20001000, PAGES_A = 4, // read-write, then one read-only page
	LAST = 0x20008000,              // one read-write page with nothing behind
	PAGES = 6, PAGE = 4096,
	XSAVE_SIZE = 832, WIDE_SIZE = 1600, AREA_SIZE = 4096, MAX_CODE = 64, MAX_TICKS = 20,
};

enum { DONE, SIGNALLED, TIMEOUT };

struct request {
	uint32_t code_offset, code_len, patches, want_trampoline;
	uint8_t code[MAX_CODE];
	uint64_t gpr[16], rflags, fsbase, gsbase, writable_code, wide;
	uint8_t xsave[XSAVE_SIZE];
}; // then, with wide, WIDE_SIZE bytes

struct answer {
	uint32_t kind, signo, si_code, trapno;
	uint64_t error, addr, rip;
	uint64_t gpr[16], rflags, fsbase, gsbase;
	uint16_t seg[6];
	uint32_t runs;
	uint64_t wide;
	uint8_t xsave[XSAVE_SIZE];
}; // then, with wide, WIDE_SIZE bytes

struct run { uint32_t addr, len; };

// Shared with the assembly below, which addresses them relative to RIP.
uint64_t in_gpr[16], in_rflags, in_fs, in_gs, entry;
uint64_t out_gpr[16], out_rflags, out_fs, out_gs, host_rsp, host_fs, host_gs;
uint16_t out_seg[8];
uint8_t in_xsave[AREA_SIZE] __attribute__((aligned(64)));
uint8_t out_xsave[AREA_SIZE] __attribute__((aligned(64)));
uint32_t components = 7; // those that cases have
extern void leave_case(void);
extern void enter_case(void);
extern void back_from_signal(void);
extern void signal_entry(int, siginfo_t *, void *);

__asm__(
"	.text\n"
"enter_case:\n"
"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
"	mov %rsp, host_rsp(%rip)\n"
"	mov in_fs(%rip), %rax; wrfsbase %rax\n"
"	mov in_gs(%rip), %rax; wrgsbase %rax\n"
"	mov components(%rip), %eax; xor %edx, %edx; xrstor64 in_xsave(%rip)\n"
"	pushq in_rflags(%rip); popfq\n"
"	mov in_gpr+0(%rip), %rax;  mov in_gpr+8(%rip), %rcx;   mov in_gpr+16(%rip), %rdx;  mov in_gpr+24(%rip), %rbx\n"
"	mov in_gpr+40(%rip), %rbp; mov in_gpr+48(%rip), %rsi;  mov in_gpr+56(%rip), %rdi\n"
"	mov in_gpr+64(%rip), %r8;  mov in_gpr+72(%rip), %r9;   mov in_gpr+80(%rip), %r10;  mov in_gpr+88(%rip), %r11\n"
"	mov in_gpr+96(%rip), %r12; mov in_gpr+104(%rip), %r13; mov in_gpr+112(%rip), %r14; mov in_gpr+120(%rip), %r15\n"
"	mov in_gpr+32(%rip), %rsp\n"
"	jmp *entry(%rip)\n"
"leave_case:\n"
"	mov %rax, out_gpr+0(%rip);  mov %rcx, out_gpr+8(%rip);   mov %rdx, out_gpr+16(%rip);  mov %rbx, out_gpr+24(%rip)\n"
"	mov %rsp, out_gpr+32(%rip); mov %rbp, out_gpr+40(%rip);  mov %rsi, out_gpr+48(%rip);  mov %rdi, out_gpr+56(%rip)\n"
"	mov %r8, out_gpr+64(%rip);  mov %r9, out_gpr+72(%rip);   mov %r10, out_gpr+80(%rip);  mov %r11, out_gpr+88(%rip)\n"
"	mov %r12, out_gpr+96(%rip); mov %r13, out_gpr+104(%rip); mov %r14, out_gpr+112(%rip); mov %r15, out_gpr+120(%rip)\n"
"	mov host_rsp(%rip), %rsp\n"
"	pushfq; popq out_rflags(%rip)\n"
"	pushq $0x202; popfq\n"
"	mov components(%rip), %eax; xor %edx, %edx; xsave64 out_xsave(%rip)\n"
"	rdfsbase %rax; mov %rax, out_fs(%rip)\n"
"	rdgsbase %rax; mov %rax, out_gs(%rip)\n"
"	mov %es, out_seg+0(%rip); mov %cs, out_seg+2(%rip); mov %ss, out_seg+4(%rip)\n"
"	mov %ds, out_seg+6(%rip); mov %fs, out_seg+8(%rip); mov %gs, out_seg+10(%rip)\n"
"back_from_signal:\n"
"	mov host_rsp(%rip), %rsp\n"
"	cmpw $0, out_seg+0(%rip); je 1f; xor %eax, %eax; mov %eax, %es\n"
"1:	cmpw $0, out_seg+6(%rip); je 1f; xor %eax, %eax; mov %eax, %ds\n"
"1:	cmpw $0, out_seg+8(%rip); je 1f; xor %eax, %eax; mov %eax, %fs\n"
"1:	cmpw $0, out_seg+10(%rip); je 1f; xor %eax, %eax; mov %eax, %gs\n"
"1:	mov host_fs(%rip), %rax; wrfsbase %rax\n"
"	mov host_gs(%rip), %rax; wrgsbase %rax\n"
"	cld; fninit\n"
"	movl $0x1f80, -8(%rsp); ldmxcsr -8(%rsp)\n"
"	vzeroupper\n"
"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
"	ret\n"
// A guest that had AC set would fault our own misaligned accesses.
"signal_entry:\n"
"	pushq $0x202; popfq\n"
"	jmp on_signal\n"
);

// The state components of AVX-512: where the CPU has them, and where cases have them, one
// after the other.
enum { FIRST = 5, LAST_COMPONENT = 7, WIDE_BITS = 0xe0 };
static uint32_t place_of[LAST_COMPONENT + 1], size_of[LAST_COMPONENT + 1], area_size = XSAVE_SIZE;

static void find_components(void) {
	uint32_t a, d;
	__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	if ((a & WIDE_BITS) != WIDE_BITS)
		return;
	components |= WIDE_BITS;
	for (int i = FIRST; i <= LAST_COMPONENT; i++) {
		uint32_t c;
		__cpuid_count(0xd, i, size_of[i], place_of[i], c, d);
		if (place_of[i] + size_of[i] > area_size)
			area_size = place_of[i] + size_of[i];
	}
}

// move_wide copies the components between an area and the form that cases have.
static void move_wide(uint8_t *area, uint8_t *wide, int load) {
	for (int i = FIRST; i <= LAST_COMPONENT; i++) {
		if (load)
			memcpy(area + place_of[i], wide, size_of[i]);
		else if (area[512] >> i & 1)
			memcpy(wide, area + place_of[i], size_of[i]);
		else
			memset(wide, 0, size_of[i]);
		wide += size_of[i];
	}
}

static volatile int in_case;
static volatile int ticks;
static struct answer ans;

// on_signal ends the case with the state of the signal frame, unless the signal
// is the clock and there is time left.
__attribute__((used)) void on_signal(int sig, siginfo_t *si, void *ctx) {
	static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
		REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
	ucontext_t *uc = ctx;
	greg_t *g = uc->uc_mcontext.gregs;
	if (sig == SIGALRM && (!in_case || ++ticks < MAX_TICKS))
		return;
	if (!in_case)
		_exit(100 + sig); // a fault of our own
	in_case = 0;
	ans.kind = sig == SIGALRM ? TIMEOUT : SIGNALLED;
	ans.signo = sig;
	ans.si_code = si->si_code;
	ans.trapno = g[REG_TRAPNO];
	ans.error = g[REG_ERR];
	ans.addr = (uint64_t)si->si_addr;
	ans.rip = g[REG_RIP];
	for (int i = 0; i < 16; i++)
		out_gpr[i] = g[order[i]];
	out_rflags = g[REG_EFL];
	__asm__ volatile("rdfsbase %0" : "=r"(out_fs));
	__asm__ volatile("rdgsbase %0" : "=r"(out_gs));
	__asm__ volatile("mov %%es, %0" : "=m"(out_seg[0]));
	__asm__ volatile("mov %%ds, %0" : "=m"(out_seg[3]));
	__asm__ volatile("mov %%fs, %0" : "=m"(out_seg[4]));
	__asm__ volatile("mov %%gs, %0" : "=m"(out_seg[5]));
	out_seg[1] = (uint16_t)g[REG_CSGSFS];
	out_seg[2] = (uint16_t)(g[REG_CSGSFS] >> 48);
	__builtin_memcpy(out_xsave, uc->uc_mcontext.fpregs, area_size);
	__asm__ volatile("jmp back_from_signal");
	__builtin_unreachable();
}

static void fail(const char *what) {
	if (write(2, what, strlen(what)) < 0 || write(2, "\n", 1) < 0)
		_exit(3);
	_exit(2);
}

static uint8_t inbuf[1 << 20], outbuf[1 << 20];
static size_t in_at, in_have, out_have;

static void flush(void) {
	for (size_t at = 0; at < out_have;) {
		ssize_t n = write(1, outbuf + at, out_have - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0);
		at += n;
	}
	out_have = 0;
}

static void put(const void *p, size_t n) {
	if (out_have + n > sizeof outbuf)
		flush();
	memcpy(outbuf + out_have, p, n);
	out_have += n;
}

// get reads n bytes; before it would block, everything answered so far is sent.
static void get(void *p, size_t n) {
	uint8_t *to = p;
	while (n > 0) {
		if (in_at == in_have) {
			flush();
			ssize_t r = read(0, inbuf, sizeof inbuf);
			if (r < 0 && errno == EINTR)
				continue;
			if (r <= 0)
				_exit(0);
			in_at = 0;
			in_have = r;
		}
		size_t k = in_have - in_at < n ? in_have - in_at : n;
		memcpy(to, inbuf + in_at, k);
		to += k, n -= k, in_at += k;
	}
}

static uint8_t base[PAGES][PAGE], expect[PAGES][PAGE];

static uint8_t *page(int i) {
	return (uint8_t *)(uintptr_t)(i == PAGES - 1 ? LAST : DATA + i * PAGE);
}

// The code pages are mapped twice: executable at CODE, where no case can write
// them unless it is about that, and writable somewhere else, for us.
static uint8_t *code_alias;

static uint8_t *code(void) { return code_alias; }

static void map_code(void) {
	int fd = memfd_create("code", 0);
	if (fd < 0 || ftruncate(fd, CODE_SIZE) != 0)
		fail("harness: memfd");
	void *at = (void *)(uintptr_t)CODE;
	code_alias = mmap(0, CODE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (code_alias == MAP_FAILED ||
		mmap(at, CODE_SIZE, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0) != at)
		fail("harness: cannot map the code pages");
	close(fd);
}

static void map_at(uintptr_t addr, size_t n, int prot) {
	if (mmap((void *)addr, n, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (void *)addr)
		fail("harness: cannot map the sandbox");
}

static void map_exit(void) {
	void **at = (void **)(uintptr_t)EXIT;
	map_at(EXIT, PAGE, PROT_READ | PROT_WRITE);
	*at = (void *)leave_case;
	if (mprotect(at, PAGE, PROT_READ) != 0)
		fail("harness: mprotect");
}

static void set_up(void) {
	map_at(DATA, (PAGES_A + 1) * PAGE, PROT_READ | PROT_WRITE);
	map_at(LAST, PAGE, PROT_READ | PROT_WRITE);
	map_code();
	map_exit();
	memset(code(), 0xCC, CODE_SIZE);
	get(base, sizeof base);
	for (int i = 0; i < PAGES; i++)
		memcpy(page(i), base[i], PAGE);
	memcpy(expect, base, sizeof base);
	if (mprotect(page(PAGES_A), PAGE, PROT_READ) != 0)
		fail("harness: mprotect");
	static uint8_t alternate[64 << 10] __attribute__((aligned(64)));
	stack_t ss = {.ss_sp = alternate, .ss_size = sizeof alternate};
	if (sigaltstack(&ss, 0) != 0)
		fail("harness: sigaltstack");
	struct sigaction sa = {.sa_sigaction = signal_entry, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART};
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGALRM, SIGSYS};
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &sa, 0);
	struct itimerval tick = {{0, 20000}, {0, 20000}};
	setitimer(ITIMER_REAL, &tick, 0);
	__asm__ volatile("rdfsbase %0" : "=r"(host_fs));
	__asm__ volatile("rdgsbase %0" : "=r"(host_gs));
}

// place writes the instruction and the way out, which are cut at the end of the code.
static uint32_t place(const struct request *r) {
	uint8_t b[MAX_CODE + 6];
	uint32_t n = r->code_len, at = r->code_offset;
	memcpy(b, r->code, n);
	if (r->want_trampoline) {
		int32_t d = EXIT - (int32_t)(CODE + at + n + 6);
		b[n] = 0xFF, b[n + 1] = 0x25;
		memcpy(b + n + 2, &d, 4);
		n += 6;
	}
	if (n > CODE_SIZE - at)
		n = CODE_SIZE - at;
	memcpy(code() + at, b, n);
	return n;
}

// report_changes finds the bytes the case has written and puts them back.
static void report_changes(void) {
	static struct run runs[PAGES * PAGE / 2];
	static uint8_t bytes[PAGES * PAGE];
	uint32_t n = 0, used = 0;
	for (int p = 0; p < PAGES; p++) {
		uint8_t *now = page(p), *was = expect[p];
		if (p == PAGES_A || memcmp(now, was, PAGE) == 0)
			continue;
		for (int i = 0; i < PAGE; i++) {
			if (now[i] == was[i])
				continue;
			uint32_t addr = (uint32_t)(uintptr_t)(now + i);
			if (n == 0 || runs[n - 1].addr + runs[n - 1].len != addr)
				runs[n++] = (struct run){addr, 0};
			runs[n - 1].len++;
			bytes[used++] = now[i];
		}
		memcpy(now, was, PAGE);
	}
	ans.runs = n;
	put(&ans, sizeof ans);
	if (ans.wide) {
		static uint8_t wide[WIDE_SIZE];
		move_wide(out_xsave, wide, 0);
		put(wide, sizeof wide);
	}
	put(runs, n * sizeof *runs);
	put(bytes, used);
}

static uint8_t *at_address(uint32_t addr, uint32_t len, uint8_t (**shadow)[PAGE], uint32_t *off) {
	uint32_t start = addr >= LAST ? LAST : DATA;
	int first = addr >= LAST ? PAGES - 1 : 0;
	uint32_t room = addr >= LAST ? PAGE : PAGES_A * PAGE;
	if (addr < start || addr - start > room || len > room - (addr - start))
		fail("harness: patch outside the sandbox");
	*shadow = expect + first;
	*off = addr - start;
	return (uint8_t *)(uintptr_t)addr;
}


static void protect_code(int prot) {
	if (mprotect((void *)(uintptr_t)CODE, CODE_SIZE, prot) != 0)
		fail("harness: mprotect of the code pages");
}

static void one_case(void) {
	static struct request r;
	static uint8_t wide[WIDE_SIZE];
	get(&r, sizeof r);
	if (r.wide)
		get(wide, sizeof wide);
	if (r.code_len > MAX_CODE || r.code_offset >= CODE_SIZE || r.patches > 64)
		fail("harness: bad request");
	int dirty = 0;
	for (uint32_t i = 0; i < r.patches; i++) {
		struct run p;
		uint8_t (*shadow)[PAGE];
		uint32_t off;
		get(&p, sizeof p);
		uint8_t *to = at_address(p.addr, p.len, &shadow, &off);
		get((uint8_t *)shadow + off, p.len);
		memcpy(to, (uint8_t *)shadow + off, p.len);
		int first = (int)((uint8_t *)shadow + off - (uint8_t *)expect) / PAGE;
		int last = (int)((uint8_t *)shadow + off + (p.len ? p.len - 1 : 0) - (uint8_t *)expect) / PAGE;
		for (; first <= last; first++)
			dirty |= 1 << first;
	}
	uint32_t n = place(&r);
	if (r.writable_code)
		protect_code(PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy(in_gpr, r.gpr, sizeof in_gpr);
	in_rflags = r.rflags;
	in_fs = r.fsbase;
	in_gs = r.gsbase;
	memcpy(in_xsave, r.xsave, XSAVE_SIZE);
	if (r.wide && components & WIDE_BITS) {
		move_wide(in_xsave, wide, 1);
		in_xsave[512] |= WIDE_BITS;
	}
	entry = CODE + r.code_offset;
	memset(&ans, 0, offsetof(struct answer, xsave));
	ticks = 0;
	in_case = 1;
	enter_case();
	in_case = 0;
	memcpy(ans.gpr, out_gpr, sizeof out_gpr);
	ans.rflags = out_rflags;
	ans.fsbase = out_fs;
	ans.gsbase = out_gs;
	memcpy(ans.seg, out_seg, sizeof ans.seg);
	memcpy(ans.xsave, out_xsave, XSAVE_SIZE);
	ans.wide = out_xsave[512] & components & WIDE_BITS;
	if (ans.kind == DONE)
		ans.rip = CODE + r.code_offset + r.code_len;
	if (r.writable_code) {
		protect_code(PROT_READ | PROT_EXEC);
		memset(code(), 0xCC, CODE_SIZE);
	}
	memset(code() + r.code_offset, 0xCC, n);
	report_changes();
	for (int p = 0; p < PAGES; p++) {
		if (dirty >> p & 1) {
			memcpy(expect[p], base[p], PAGE);
			memcpy(page(p), base[p], PAGE);
		}
	}
}

int main(void) {
	if (!(getauxval(AT_HWCAP2) & 2)) // HWCAP2_FSGSBASE, linux arch/x86/include/uapi/asm/hwcap2.h
		fail("harness: needs: WRFSBASE in user mode (Linux 5.9 on a CPU with FSGSBASE)");
	if (!__builtin_cpu_supports("avx"))
		fail("harness: needs: AVX");
	find_components();
	set_up();
	for (;;)
		one_case();
}
