// Children that outlive the parent, and one that is killed. They report on a
// pipe that the test reads to its end.
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(void) {
	for (int i = 0; i < 3; i++) {
		if (fork() == 0) {
			struct timespec ts = {0, 100000000 + i * 30000000};
			nanosleep(&ts, 0);
			char b[32];
			write(1, b, snprintf(b, sizeof b, "child %d\n", i));
			_exit(0);
		}
	}
	pid_t p = fork();
	if (p == 0) {
		for (;;) pause();
	}
	kill(p, SIGTERM);
	int st;
	waitpid(p, &st, 0);
	printf("killed by %d\n", WTERMSIG(st));
	return 6;
}
