// A program that steps through itself by the flag TF, over system calls and beside a thread: it traps where it would natively, and the
// flag is the program's own wherever an interval or a turn ends.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile long traps;
static volatile int stop;

static void onTrap(int sig) {
	(void)sig;
	traps++;
}

static long step(int n) {
	volatile long x = 0;
	traps = 0;
	for (int i = 0; i < n; i++) {
		asm volatile("pushf; orl $0x100, (%%rsp); popf" ::: "cc", "memory");
		x += getppid() != 0;
		for (int k = 0; k < 5; k++) x += k & 1;
		asm volatile("pushf; andl $~0x100, (%%rsp); popf" ::: "cc", "memory");
	}
	return x;
}

static void *yields(void *arg) {
	(void)arg;
	while (!stop) {
		getppid();
		sched_yield();
	}
	return NULL;
}

int main(void) {
	pthread_t t;
	signal(SIGTRAP, onTrap);
	for (int i = 0; i < 200; i++) getppid(); // it leads to the agent
	long x = step(100);
	printf("%ld, %ld traps\n", x, traps);
	pthread_create(&t, NULL, yields, NULL);
	x = step(20);
	printf("%ld, %ld traps\n", x, traps);
	stop = 1;
	pthread_join(t, NULL);
	return 0;
}
