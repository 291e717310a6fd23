// Handlers on an alternate stack: for a fault on a stack overflow, with
// SS_AUTODISARM, and nested.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

static sigjmp_buf out;
static char *alt;
static volatile int depth, on, nested;

static int onAlt(void) {
	char here;
	return &here >= alt && &here < alt + 65536;
}
static void segv(int s) {
	(void)s;
	on = onAlt();
	siglongjmp(out, 1);
}
static void usr(int s) {
	if (s == SIGUSR1) raise(SIGUSR2);
	nested = nested * 10 + onAlt();
}
static int eat(int n) {
	volatile char big[4096];
	big[0] = n, depth = n;
	return eat(n + 1) + big[0];
}

int main(void) {
	struct rlimit rl = {256 << 10, 256 << 10};
	setrlimit(RLIMIT_STACK, &rl);
	alt = malloc(65536);
	stack_t ss = {.ss_sp = alt, .ss_size = 65536};
	sigaltstack(&ss, 0);
	struct sigaction sa;
	memset(&sa, 0, sizeof sa);
	sa.sa_handler = segv, sa.sa_flags = SA_ONSTACK;
	sigaction(SIGSEGV, &sa, 0);
	sa.sa_handler = usr;
	sigaction(SIGUSR1, &sa, 0);
	sa.sa_flags = 0;
	sigaction(SIGUSR2, &sa, 0);
	if (sigsetjmp(out, 1) == 0) eat(0);
	printf("overflow, on the alternate stack %d, deep %d\n", on, depth > 20);
	raise(SIGUSR1);
	printf("nested %d\n", nested);
	ss.ss_flags = SS_AUTODISARM;
	sigaltstack(&ss, 0);
	for (int i = 0; i < 3; i++) raise(SIGUSR1);
	printf("nested %d\n", nested);
	return 0;
}
