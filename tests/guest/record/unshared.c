/* Has its children in a PID namespace of their own, computes for a while, and makes three: the first is
 * that namespace's init and outlives the others. Each says which it is. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int child(int first, const int said[2], const int over[2])
{
	char c = 0;

	puts(getpid() == 1 ? "init" : "another");
	fflush(stdout);
	close(over[1]);
	return write(said[1], &c, 1) != 1 || (first && read(over[0], &c, 1) != 0);
}

int main(void)
{
	int said[2], over[2];
	char c;

	if (pipe(said) || pipe(over))
		return 1;
	if (unshare(CLONE_NEWUSER | CLONE_NEWPID)) {
		puts("refused");
		return 1;
	}
	for (volatile int i = 0; i < 20000000; i++)
		; /* long enough for the recorder's timer */
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();
		if (pid < 0) {
			perror("fork");
			return 2;
		}
		if (pid == 0)
			return child(i == 0, said, over);
		if (read(said[0], &c, 1) != 1 || (i > 0 && waitpid(pid, 0, 0) != pid))
			return 1;
	}
	close(over[1]);
	wait(0);
	return 3;
}
