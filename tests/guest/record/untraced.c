// Children that ask not to be traced (CLONE_UNTRACED), as LeakSanitizer's does: a process with memory of its own, one that shares the
// memory, a thread, and one by clone3(2). What they store, and how they end, is in the log all the same.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char stack[65536] __attribute__((aligned(16)));
static volatile long stored[100];
static atomic_int alive;

static int stores(void *arg) {
	for (int i = 0; i < 100; i++) stored[i] = (long)arg * i;
	return 5;
}

static int thread(void *arg) {
	stores(arg);
	syscall(SYS_exit, 0); // not exit_group(2), as the library's would be
	return 0;
}

static long sum(void) {
	long s = 0;
	for (int i = 0; i < 100; i++) s += stored[i];
	return s;
}

// raw makes a child with memory of its own, and says what the flags are there.
static pid_t raw(unsigned long flags, unsigned long *after) {
	long r = SYS_clone;
	register long child asm("r10") = 0, tls asm("r8") = 0;
	asm volatile("syscall" : "+a"(r), "+D"(flags) : "S"(0), "d"(0), "r"(child), "r"(tls) : "rcx", "r11", "memory");
	*after = flags;
	return r;
}

int main(void) {
	int st = 0;
	unsigned long after = 0, flags = CLONE_UNTRACED | SIGCHLD;
	pid_t p = raw(flags, &after);
	if (p == 0) _exit(after == flags ? 3 : 4);
	if (waitpid(p, &st, 0) != p) return 2;
	printf("process: code %d, %s\n", WEXITSTATUS(st), after == flags ? "same flags" : "other flags");

	p = clone(stores, stack + sizeof stack, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED, (void *)3L);
	if (waitpid(p, &st, __WALL) != p) return 2;
	printf("shares memory: code %d, %ld\n", WEXITSTATUS(st), sum());

	alive = 1;
	p = clone(thread, stack + sizeof stack, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID | CLONE_UNTRACED,
		(void *)7L, NULL, NULL, &alive);
	if (p < 0) return 2;
	while (alive) syscall(SYS_futex, &alive, FUTEX_WAIT, 1, NULL, NULL, 0);
	printf("thread: %ld\n", sum());

	struct clone_args a = {.flags = CLONE_UNTRACED, .exit_signal = SIGCHLD};
	p = syscall(SYS_clone3, &a, sizeof a);
	if (p < 0) p = fork(); // as the C library does
	if (p == 0) _exit(9);
	if (waitpid(p, &st, 0) != p) return 2;
	printf("clone3: code %d\n", WEXITSTATUS(st));
	return 0;
}
