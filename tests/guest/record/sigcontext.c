// A handler changes the context that rt_sigreturn restores: registers, the
// program counter, a vector register, the signal mask.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

static volatile int hits;
static void h(int s, siginfo_t *si, void *u) {
	ucontext_t *c = u;
	(void)si;
	hits++;
	if (s == SIGSEGV) {
		c->uc_mcontext.gregs[REG_RIP] += 3;   // over the load
		c->uc_mcontext.gregs[REG_RAX] = 4711; // its result
		c->uc_mcontext.fpregs->_xmm[5].element[0] = 815;
		sigaddset(&c->uc_sigmask, SIGUSR1);
	}
}

int main(void) {
	struct sigaction sa;
	memset(&sa, 0, sizeof sa);
	sa.sa_sigaction = h, sa.sa_flags = SA_SIGINFO;
	sigaction(SIGSEGV, &sa, 0), sigaction(SIGUSR1, &sa, 0);
	long v = 0;
	unsigned x = 0;
	for (int i = 0; i < 50; i++) {
		unsigned long bad = 0x10 + i;
		long r;
		unsigned y;
		__asm__ volatile("pxor %%xmm5,%%xmm5; mov (%2),%0; movd %%xmm5,%1" : "=a"(r), "=r"(y) : "r"(bad) : "xmm5", "memory");
		v += r, x += y;
	}
	raise(SIGUSR1); // blocked by now
	sigset_t m;
	sigprocmask(SIG_SETMASK, 0, &m);
	printf("%ld %u hits %d blocked %d\n", v, x, hits, sigismember(&m, SIGUSR1));
	return 0;
}
