// Job control of children: SIGTSTP, SIGCONT, and a parent's view of them.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int cont;
static void h(int s) {
	(void)s;
	cont++;
}

int main(void) {
	signal(SIGCONT, h);
	for (int i = 0; i < 3; i++) {
		// A child stops and continues its parent, which is recorded.
		pid_t me = getpid(), p = fork();
		if (p == 0) {
			usleep(20000);
			kill(me, SIGSTOP);
			usleep(20000);
			kill(me, SIGCONT);
			_exit(0);
		}
		int st;
		pid_t r;
		while ((r = waitpid(p, &st, 0)) < 0) {}
		printf("%d %d continued %d\n", r == p, WEXITSTATUS(st), cont);
	}
	return 0;
}
