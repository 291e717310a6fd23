// Loops without system calls, for intervals that end at any instruction: a
// counter in memory, a string instruction, a computation under a 100 Hz timer.
// The argument says which, and for how many milliseconds of CPU time.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static volatile unsigned long count, alarms;
static volatile int done;

static void prof(int s) {
	(void)s;
	done = 1;
}
static void alrm(int s) {
	(void)s;
	alarms++;
}
static void timer(int which, int sig, void (*h)(int), int us, int again) {
	signal(sig, h);
	struct itimerval t = {{again / 1000000, again % 1000000}, {us / 1000000, us % 1000000}};
	setitimer(which, &t, 0);
}

int main(int argc, char **argv) {
	if (argc < 3) return 2;
	int ms = atoi(argv[2]);
	timer(ITIMER_PROF, SIGPROF, prof, ms * 1000, 0);
	if (!strcmp(argv[1], "memory")) {
		while (!done) count++;
	} else if (!strcmp(argv[1], "movs")) {
		static char a[1 << 20], b[1 << 20];
		for (int i = 0; i < 1 << 20; i++) a[i] = i * 7;
		while (!done) {
			void *d = b, *s = a;
			long n = 1 << 20;
			__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n)::"memory");
			a[count++ & 0xfffff]++;
		}
	} else {
		timer(ITIMER_REAL, SIGALRM, alrm, 10000, 10000);
		unsigned long x = 1;
		while (!done) {
			for (int i = 0; i < 1000; i++) x = x * 6364136223846793005ul + (x >> 33);
			count += x & 1;
		}
		timer(ITIMER_REAL, SIGALRM, alrm, 0, 0);
		if (ms > 1000 && !alarms) return 3;
	}
	puts("done");
	return 0;
}
