// RDTSC and RDTSCP many times, as compilers write them: nothing changes but what the instruction changes, and time does not go
// back, while signals come that read it, too, in a second thread, and in a child.
// Arguments: how often, and after how many microseconds a signal comes; or how often in one place
// alone, and "alone", or "together" for three threads that do so.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

// What a shape leaves: the registers but RSP and RDI, what is below the stack pointer, and the flags.
struct left {
	unsigned long rbx, rbp, r8, r9, r10, r11, r12, r13, r14, r15, rsi, rax, rdx, rcx, below, flags;
};

// SHAPE is a function with the instruction in the midst of some others. Before it each register is its number times RSI.
#define SHAPE(name, code)                                                                                      \
	void name(struct left *out, unsigned long by);                                                         \
	asm(".text\n" #name ": .cfi_startproc; push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n" \
	    "imul $3, %rsi, %rbx; imul $5, %rsi, %rbp; imul $8, %rsi, %r8; imul $9, %rsi, %r9\n"               \
	    "imul $10, %rsi, %r10; imul $11, %rsi, %r11; imul $12, %rsi, %r12; imul $13, %rsi, %r13\n"         \
	    "imul $14, %rsi, %r14; imul $15, %rsi, %r15; mov %rsi, %rcx; mov %rsi, -8(%rsp)\n"                 \
	    "mov $0x7fffffff, %eax; mov $-1, %rdx; add $1, %eax\n" code "\n"                                   \
	    "mov %rbx, (%rdi); mov %rbp, 8(%rdi); mov %r8, 16(%rdi); mov %r9, 24(%rdi); mov %r10, 32(%rdi)\n"  \
	    "mov %r11, 40(%rdi); mov %r12, 48(%rdi); mov %r13, 56(%rdi); mov %r14, 64(%rdi)\n"                 \
	    "mov %r15, 72(%rdi); mov %rsi, 80(%rdi); mov %rax, 88(%rdi); mov %rdx, 96(%rdi)\n"                 \
	    "mov %rcx, 104(%rdi); mov -8(%rsp), %rax; mov %rax, 112(%rdi); pushf; pop %rax\n"                  \
	    "mov %rax, 120(%rdi); pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret; .cfi_endproc\n")

SHAPE(shifted, "rdtsc; shl $32, %rdx; shr $32, %rdx");
SHAPE(moved, "rdtsc; mov %eax, %eax; mov %edx, %edx");
SHAPE(fenced, "lfence; rdtsc; lfence");
SHAPE(behind, "lfence; rdtsc; mov %rax, 88(%rdi)");
SHAPE(numbered, "rdtscp; lfence");
SHAPE(cramped, "rdtscp; mov %rax, 88(%rdi)"); // no jump can lead from there
SHAPE(aligned, "lea -64(%rsp), %rsp; pushf; orl $0x40000, (%rsp); popf; rdtsc; mov %eax, %eax; mov %edx, %edx\n" // AC: the agent leaves it
               "pushf; andl $~0x40000, (%rsp); popf; lea 64(%rsp), %rsp");
SHAPE(entered, "stc; jmp 2f; 1: clc; rdtsc; 2: mov %edx, %edx; jc 1b"); // nor here
SHAPE(pointed, "stc; lea 2f(%rip), %rdx; jmp *%rdx; 1: clc; rdtsc; 2: mov %edx, %edx; jc 1b");

static const struct {
	void (*f)(struct left *, unsigned long);
	int numbers, flags;
} shapes[] = {{shifted, 0, 0}, {moved, 0, 1}, {fenced, 0, 1}, {behind, 0, 1}, {numbered, 1, 1}, {cramped, 1, 1}, {aligned, 0, 1}, {entered, 0, 0}, {pointed, 0, 0}};

enum { SHAPES = sizeof shapes / sizeof *shapes, FLAGS = 0x8d5 };

static __thread unsigned long last;
static __thread int back, wrong;

static void note(unsigned long t) {
	back += t < last;
	last = t;
}

static void onSignal(int sig) {
	(void)sig;
	static __thread unsigned long before;
	unsigned long now = __rdtsc();
	wrong += now < before;
	before = now;
}

static void check(unsigned i) {
	struct left l;
	unsigned long by = i * 0x9e3779b97f4a7c15ul, same = 0;
	shapes[i % SHAPES].f(&l, by);
	same = l.rbx == 3 * by && l.rbp == 5 * by && l.r8 == 8 * by && l.r9 == 9 * by && l.r10 == 10 * by && l.r11 == 11 * by &&
	       l.r12 == 12 * by && l.r13 == 13 * by && l.r14 == 14 * by && l.r15 == 15 * by && l.rsi == by && l.below == by;
	if (shapes[i % SHAPES].flags) same = same && (l.flags & FLAGS) == 0x894; // OF, SF, AF, PF
	same = same && (shapes[i % SHAPES].numbers ? l.rcx < 1 << 22 : l.rcx == by) && l.rax >> 32 == 0 && l.rdx >> 32 == 0;
	wrong += !same;
	note(l.rdx << 32 | l.rax);
}

static void *many(void *n) {
	for (unsigned i = 0; i < (unsigned long)n; i++) {
		check(i);
		if (i % 512 == 0) getppid();
		if (i % 1024 < SHAPES) asm volatile("mov %0, %%gs" ::"r"(0)); // what GS has led to is lost
	}
	return (void *)(long)(back + 1000 * wrong);
}

static void *alone(void *n) {
	for (unsigned long i = 0; i < (unsigned long)n; i++) note(__rdtsc());
	return (void *)(long)back;
}

int main(int argc, char **argv) {
	unsigned long n = argc > 1 ? strtoul(argv[1], 0, 0) : 20000, us = argc > 2 ? strtoul(argv[2], 0, 0) : 500;
	if (argc > 2 && strcmp(argv[2], "alone") == 0) return printf("%ld back\n", (long)alone((void *)n)) < 0;
	if (argc > 2 && strcmp(argv[2], "together") == 0) {
		pthread_t two[2];
		void *ret;
		for (int i = 0; i < 2; i++) pthread_create(&two[i], 0, alone, (void *)n);
		long sum = (long)alone((void *)n);
		for (int i = 0; i < 2; i++) pthread_join(two[i], &ret), sum += (long)ret;
		return printf("%ld back\n", sum) < 0;
	}
	struct itimerval every = {{0, us}, {0, us}}, never = {{0, 0}, {0, 0}};
	struct sigaction act = {.sa_handler = onSignal, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &act, 0);
	if (us) setitimer(ITIMER_REAL, &every, 0);
	many((void *)n);
	pthread_t t;
	void *ret = 0;
	pthread_create(&t, 0, many, (void *)(n / 4));
	many((void *)(n / 4));
	pthread_join(t, &ret);
	setitimer(ITIMER_REAL, &never, 0);
	int status;
	if (fork() == 0) {
		many((void *)(n / 4));
		_exit(back != 0 || wrong != 0);
	}
	wait(&status);
	printf("%d back, %d wrong, thread %ld, child %d\n", back, wrong, (long)ret, WEXITSTATUS(status));
	return 0;
}
