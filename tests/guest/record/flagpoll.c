// Computes, looks at a flag that a handler sets, and waits where that is not set, as many programs do that have no
// better way. The signal comes while it computes.
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int flag;
static void set(int sig) { flag = 1; }

int main(void)
{
	for (int round = 0; round < 8; round++) {
		int ready[2];
		if (pipe(ready)) return 1;
		pid_t child = fork();
		if (child == 0) {
			signal(SIGUSR2, set);
			if (write(ready[1], "r", 1) != 1) _exit(2);
			for (volatile int i = 0; i < (20 + round) * 400000; i++)
				;
			int n = flag ? -1 : poll(0, 0, 20000);
			_exit(n == 0);
		}
		char c;
		if (read(ready[0], &c, 1) != 1) return 1;
		usleep(500);
		kill(child, SIGUSR2);
		int status;
		waitpid(child, &status, 0);
		printf("round %d: %s\n", round, status ? "waited for nothing" : "in time");
		close(ready[0]), close(ready[1]);
	}
	return 0;
}
