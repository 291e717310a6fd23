/* Has orphans come to it, as the init of a PID namespace (argument "namespace") and by PR_SET_CHILD_SUBREAPER
 * (argument "subreaper"), and waits until it has no child any more. Its children compute for a while; each leaves
 * an orphan. It says how many it has waited for, and in a namespace the number of each. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void compute(void)
{
	for (volatile int i = 0; i < 10000000; i++)
		; /* long enough for the recorder's timer */
}

static int reap(int numbers)
{
	int n = 0;

	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();
		if (pid < 0)
			return 1;
		if (pid == 0) {
			compute();
			if (fork() == 0) {
				compute();
				_exit(0);
			}
			_exit(0);
		}
		if (numbers && i == 0)
			printf("first child %d\n", pid);
	}
	compute();
	while (wait(0) > 0)
		n++;
	printf("%d, %s\n", n, strerror(errno));
	return 3;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int status;

	setbuf(stdout, 0);
	if (!strcmp(how, "namespace") && unshare(CLONE_NEWUSER | CLONE_NEWPID)) {
		puts("refused");
		return 1;
	}
	pid_t pid = fork(); /* shadows of the first process are children of the recorder's */
	if (pid == 0) {
		if (!strcmp(how, "subreaper") && prctl(PR_SET_CHILD_SUBREAPER, 1))
			return 1;
		return reap(!strcmp(how, "namespace"));
	}
	if (waitpid(pid, &status, 0) != pid)
		return 1;
	return WEXITSTATUS(status);
}
