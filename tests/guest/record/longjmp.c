// Jumps out of handlers, of faults and of signals from outside, many times.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf out;
static volatile int faults, fpe, ill, alarms;
static void h(int s) {
	if (s == SIGSEGV) faults++;
	if (s == SIGFPE) fpe++;
	if (s == SIGILL) ill++;
	if (s == SIGALRM) alarms++;
	siglongjmp(out, s);
}

int main(void) {
	signal(SIGSEGV, h), signal(SIGFPE, h), signal(SIGILL, h), signal(SIGALRM, h);
	volatile int zero = 0, sink;
	for (volatile int i = 0; i < 200; i++) {
		if (sigsetjmp(out, 1)) continue;
		switch (i % 4) {
		case 0: *(volatile int *)(long)(i * 16) = 1; break;
		case 1: sink = i / zero; break;
		case 2: __asm__ volatile("ud2"); break;
		case 3: *(volatile int *)0x8000000000000000; break;
		}
	}
	(void)sink;
	for (volatile int i = 0; i < 2; i++) {
		if (sigsetjmp(out, 1)) continue;
		struct itimerval t = {{0, 0}, {0, 3000}};
		setitimer(ITIMER_REAL, &t, 0);
		for (volatile unsigned long x = 0;; x++) {}
	}
	printf("%d %d %d %d\n", faults, fpe, ill, alarms);
	return 0;
}
