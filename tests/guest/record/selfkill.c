// A signal that a process sends itself arrives before kill returns, whatever a
// recorder's timer does at that moment.
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile int got;

static void on(int s) {
	(void)s;
	got++;
}

int main(void) {
	struct sigaction a = {.sa_handler = on};
	int late = 0;
	volatile unsigned x = 0;
	sigaction(SIGUSR2, &a, 0);
	for (int i = 0; i < 3000; i++) {
		for (int j = 0; j < i % 31 * 300; j++) x += j;
		got = 0;
		kill(getpid(), SIGUSR2);
		late += got != 1;
	}
	printf("late %d\n", late);
	return 0;
}
