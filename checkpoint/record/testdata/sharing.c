// A child that shares the memory goes on beside its parent.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static char stack[65536];

static int child(void *arg) {
	usleep(600000);
	return 0;
}

int main(void) {
	int pid = clone(child, stack + sizeof stack, CLONE_VM | SIGCHLD, 0);
	usleep(300000);
	return waitpid(pid, 0, 0) != pid;
}
