// A small program that does what is hard to step through: string instructions
// with REP, flags on the stack, faults with handlers, code that changes itself,
// a page at two addresses, mappings that move, a stack that grows, x87.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static volatile int caught;
static volatile uint64_t once; // stored once, never read
static char *guard;

static void handler(int sig, siginfo_t *si, void *context) {
	caught++;
	ucontext_t *uc = context;
	if (sig == SIGSEGV && (char *)si->si_addr >= guard && (char *)si->si_addr < guard + 4096)
		mprotect(guard, 4096, PROT_READ | PROT_WRITE);
	else if (sig == SIGFPE || sig == SIGILL)
		uc->uc_mcontext.gregs[REG_RIP] += 2; // div %ecx, ud2
}

static int deep(int n) {
	volatile char room[3000];
	room[0] = n;
	return n == 0 ? 0 : deep(n - 1) + room[0];
}

static void strings(void) {
	static char a[300], b[300];
	void *d = b, *s = a;
	long n = sizeof a;
	memset(a, 7, sizeof a);
	asm volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n)::"memory");
	d = b, n = 0;
	asm volatile("rep stosq" : "+D"(d), "+c"(n) : "a"(1L) : "memory");
	n = 37;
	asm volatile("rep stosq" : "+D"(d), "+c"(n) : "a"(0x0102030405060708) : "memory");
	d = b, s = a, n = 300;
	asm volatile("repe cmpsb" : "+D"(d), "+S"(s), "+c"(n)::"memory", "cc");
	d = a, n = 300;
	a[200] = 9;
	asm volatile("repne scasb" : "+D"(d), "+c"(n) : "a"(9) : "memory", "cc");
	d = b + 299, s = a + 299, n = 100;
	asm volatile("std; rep movsb; cld" : "+D"(d), "+S"(s), "+c"(n)::"memory");
}

static void flags(void) {
	uint64_t f;
	asm volatile("stc; pushfq; popq %0; pushq %0; popfq; pushfw; popfw" : "=r"(f)::"cc", "memory");
	asm volatile("std; pushfq; cld; popfq; cld" ::: "cc", "memory");
	asm volatile("mov %%ss, %%eax; mov %%eax, %%ss; nop; mov %%eax, %%es" ::: "eax");
}

static void faults(void) {
	int a = 1, d = 0;
	guard[17] = 1; // SIGSEGV; the handler makes it writable
	asm volatile("div %%ecx" : "+a"(a), "+d"(d) : "c"(0) : "cc");
	asm volatile("ud2");
	asm volatile("int3");
}

static void selfmod(void) {
	unsigned char *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(p, "\xb8\x01\x00\x00\x00\xc3", 6);
	for (int i = 0; i < 5; i++) {
		p[1] = i;
		if (((int (*)(void))p)() != i)
			abort();
	}
	munmap(p, 4096);
}

static void mappings(void) {
	int fd = memfd_create("twice", 0);
	if (ftruncate(fd, 8192))
		abort();
	volatile int *a = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	volatile int *b = mmap(0, 8192, PROT_READ, MAP_SHARED, fd, 0);
	for (int i = 0; i < 2048; i += 100) {
		a[i] = i;
		if (b[i] != i)
			abort();
	}
	char *c = mmap(0, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	c[5000] = 5;
	c = mremap(c, 4 * 4096, 64 * 4096, MREMAP_MAYMOVE);
	if (c[5000] != 5)
		abort();
	c[200000] = 6;
	madvise(c, 8192, MADV_DONTNEED);
	if (c[5000] != 0)
		abort();
	munmap(c, 4096);
}

static void x87(void) {
	long double x = 0.1L;
	double y = 0.1;
	unsigned mxcsr;
	for (int i = 0; i < 20; i++) {
		asm volatile("fsin" : "+t"(x));
		asm volatile("fyl2x" : "+t"(x) : "u"(1.5L) : "st(1)");
		x = x < 0 ? -x + 0.1L : x;
		y = y * 1.7 + 1 / (y + 3);
	}
	asm volatile("stmxcsr %0" : "=m"(mxcsr));
	char image[512] __attribute__((aligned(16)));
	asm volatile("fxsave %0" : "=m"(image));
	asm volatile("rcpps %%xmm0, %%xmm1; rsqrtss %%xmm0, %%xmm2; pshufd $27, %%xmm1, %%xmm3" ::: "xmm1", "xmm2", "xmm3");
}

int main(void) {
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_NODEFER};
	for (int *s = (int[]){SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGALRM, 0}; *s; s++)
		sigaction(*s, &sa, 0);
	guard = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	once = 0x1122334455667788;
	strings();
	flags();
	faults();
	selfmod();
	mappings();
	x87();
	uint32_t lo, hi;
	asm volatile("rdtsc" : "=a"(lo), "=d"(hi));
	kill(getpid(), SIGALRM);
	printf("%d %d\n", deep(100) > 0, caught);
	return caught == 5 ? 0 : 1;
}
