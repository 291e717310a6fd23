/* Processes that are killed while they make threads. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *thread(void *arg) { return arg; }

static void *makes(void *arg)
{
	for (;;) {
		pthread_t t;
		if (pthread_create(&t, 0, thread, arg))
			_exit(1);
		pthread_join(t, 0);
	}
}

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
			if (write(p[1], "x", 1) != 1)
				_exit(1);
			pthread_t t;
			if (i % 2 && pthread_create(&t, 0, makes, 0))
				_exit(1);
			makes(0);
		}
		char b;
		if (read(p[0], &b, 1) != 1)
			return 2;
		close(p[0]);
		close(p[1]);
		seed = seed * 1103515245 + 12345;
		struct timespec ts = {0, 1000 * ((seed >> 8) % 4000)};
		nanosleep(&ts, 0);
		kill(parent, SIGKILL);
		int status = 0;
		waitpid(parent, &status, 0);
		killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	}
	printf("%d killed\n", killed);
	return 0;
}
