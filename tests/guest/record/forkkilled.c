/* Processes that are killed while they make children, which live on: each child holds the end of
 * a pipe, and the pipe is at its end when all of them have run. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
	unsigned seed = 7;
	int killed = 0;
	for (int i = 0; i < 60; i++) {
		int p[2];
		if (pipe(p))
			return 1;
		pid_t parent = fork();
		if (parent == 0) {
			close(p[0]);
			if (write(p[1], "x", 1) != 1)
				_exit(1);
			for (;;) {
				pid_t c = fork();
				if (c == 0)
					_exit(0);
				waitpid(c, 0, 0);
			}
		}
		char b;
		close(p[1]);
		if (read(p[0], &b, 1) != 1)
			return 2;
		seed = seed * 1103515245 + 12345;
		struct timespec ts = {0, 1000 * ((seed >> 8) % 4000)};
		nanosleep(&ts, 0);
		kill(parent, SIGKILL);
		int status = 0;
		waitpid(parent, &status, 0);
		killed += WIFSIGNALED(status);
		if (read(p[0], &b, 1) != 0)
			return 3;
		close(p[0]);
	}
	printf("%d killed\n", killed);
	return 0;
}
