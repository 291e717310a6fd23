// A fast timer, system calls, and hundreds of instructions that the recorder has fault (RDRAND), in a program that the
// agent leaves alone because its descriptors are not those of its other threads.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { CALLS = 2000, UNSHARE = 2 }; // CLOSE_RANGE_UNSHARE

static volatile sig_atomic_t ticks;

static void tick(int sig) { ticks += sig == SIGALRM; }

// Never called: its instructions are what there is.
__attribute__((noinline)) void random_(void) {
	asm volatile(".rept 400\nrdrand %%eax\n.endr" ::: "eax", "cc");
}

int main(int argc, char **argv) {
	struct itimerval every = {{0, 1000}, {0, 1000}};
	long sum = 0;
	if (argc > 5) random_();
	(void)argv;
	syscall(SYS_close_range, 100, 100, UNSHARE);
	signal(SIGALRM, tick);
	setitimer(ITIMER_REAL, &every, 0);
	for (int i = 0; i < CALLS; i++) sum += syscall(SYS_getppid) > 0;
	while (ticks == 0) syscall(SYS_getppid);
	every = (struct itimerval){{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &every, 0);
	printf("%ld calls\n", sum);
	return 0;
}
