// SIGSEGV blocked, then ignored, then handled, around a trapped RDTSC and CPUID:
// the kernel forces the default action and unblocks before the tracer sees it.
#include <cpuid.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <x86intrin.h>

static volatile int caught;
static sigjmp_buf out;
static void h(int s) {
	(void)s;
	caught++;
	siglongjmp(out, 1);
}

static int use(void) {
	unsigned a, b, c, d, aux;
	unsigned long t = __rdtsc(), u = __rdtscp(&aux);
	__get_cpuid(0, &a, &b, &c, &d);
	return u >= t && a > 0;
}

int main(void) {
	sigset_t m, o, now;
	sigemptyset(&m), sigaddset(&m, SIGSEGV);
	signal(SIGSEGV, h);
	sigprocmask(SIG_BLOCK, &m, &o);
	printf("%d", use());
	sigprocmask(SIG_SETMASK, 0, &now);
	printf(" blocked %d\n", sigismember(&now, SIGSEGV));
	sigprocmask(SIG_SETMASK, &o, 0);
	if (sigsetjmp(out, 1) == 0) *(volatile int *)8 = 1;
	printf("caught %d\n", caught);
	signal(SIGSEGV, SIG_IGN);
	printf("%d", use());
	struct sigaction sa;
	sigaction(SIGSEGV, 0, &sa);
	printf(" ignored %d\n", sa.sa_handler == SIG_IGN);
	sigprocmask(SIG_BLOCK, &m, 0);
	printf("%d", use());
	sigprocmask(SIG_SETMASK, 0, &now);
	sigaction(SIGSEGV, 0, &sa);
	printf(" both %d %d\n", sigismember(&now, SIGSEGV), sa.sa_handler == SIG_IGN);
	// The program's own wish that it faults.
	signal(SIGSEGV, h);
	sigprocmask(SIG_SETMASK, &o, 0);
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	if (sigsetjmp(out, 1) == 0) __rdtsc();
	int tsc = 0;
	prctl(PR_GET_TSC, &tsc);
	prctl(PR_SET_TSC, PR_TSC_ENABLE);
	printf("%d caught %d tsc %d\n", __rdtsc() > 0, caught, tsc);
	return 0;
}
