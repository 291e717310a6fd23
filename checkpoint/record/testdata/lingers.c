// A program that computes, makes a process that shares its memory, and stays for long.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static char stack[65536];

static int child(void *arg) {
	alarm(4);
	pause();
	return 0;
}

int main(void) {
	struct timespec ts;
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	while (ts.tv_sec == 0 && ts.tv_nsec < 100000000);
	if (clone(child, stack + sizeof stack, CLONE_VM | SIGCHLD, 0) < 0) return 1;
	alarm(6);
	pause();
}
