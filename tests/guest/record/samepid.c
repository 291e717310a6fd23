// Makes a child with the number of one that has ended (clone3(2), set_tid), in which it computes.
#define _GNU_SOURCE
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void reap(pid_t p) {
	int st;
	if (waitpid(p, &st, 0) != p) abort();
	printf("code %d\n", WEXITSTATUS(st));
	fflush(stdout);
}

int main(void) {
	pid_t first = fork();
	if (first == 0) _exit(3);
	reap(first);
	pid_t again = first;
	struct clone_args a = {.exit_signal = SIGCHLD, .set_tid = (unsigned long)&again, .set_tid_size = 1};
	pid_t p = syscall(SYS_clone3, &a, sizeof a);
	if (p < 0) { perror("clone3"); return 1; }
	if (p == 0) _exit(getppid() != 1 ? 4 : 5);
	printf("%s\n", p == first ? "the same" : "another");
	reap(p);
	return 0;
}
