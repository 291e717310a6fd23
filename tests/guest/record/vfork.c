// vfork: the child runs on the parent's memory and stack, and writes both.
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int shared = 1;

int main(void) {
	volatile int local = 10;
	pid_t p = vfork();
	if (p == 0) {
		shared += 41;
		local = 99;
		_exit(7);
	}
	int st;
	if (waitpid(p, &st, 0) != p) return 2;
	printf("shared %d local %d status %d\n", shared, local, WEXITSTATUS(st));
	p = vfork();
	if (p == 0) {
		execl("/bin/true", "true", (char *)0);
		_exit(127);
	}
	waitpid(p, &st, 0);
	printf("exec status %d\n", st);
	return 0;
}
