// Compute and calls in turn under a timer much faster than a recorder's: its
// signals, forced ends and calls meet in every order.
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static volatile unsigned alarms;

static void count(int s) {
	(void)s;
	alarms++;
}

int main(void) {
	struct sigaction a = {.sa_handler = count};
	struct itimerval every = {{0, 700}, {0, 700}}, off = {0};
	volatile unsigned long x = 0;
	sigaction(SIGALRM, &a, 0);
	setitimer(ITIMER_REAL, &every, 0);
	for (int i = 0; i < 2000; i++) {
		for (int j = 0; j < i % 97 * 800; j++) x += j;
		syscall(SYS_getppid);
	}
	setitimer(ITIMER_REAL, &off, 0);
	printf("%lu %d\n", x, alarms > 0);
	return 0;
}
