// Waits with a signal blocked, in a call that no signal is to end but by a handler: the blocked signal comes, and one that is ignored.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int got;
static void count(int sig) { got++; }

int main(void)
{
	sigset_t term, before;
	int epoll = epoll_create1(0);
	signal(SIGTERM, count);
	sigemptyset(&term), sigaddset(&term, SIGTERM);
	for (int i = 0; i < 6; i++) {
		struct epoll_event event;
		sigprocmask(SIG_BLOCK, &term, &before);
		pid_t child = fork();
		if (child == 0) {
			usleep(20000);
			kill(getppid(), SIGTERM);
			kill(getppid(), i % 2 ? SIGWINCH : SIGCONT);
			_exit(0);
		}
		int n = epoll_wait(epoll, &event, 1, 200);
		const char *why = n < 0 ? strerror(errno) : "";
		waitpid(child, 0, 0); // on a busy machine it may not have sent them yet
		sigprocmask(SIG_SETMASK, &before, 0);
		printf("%d %s, %d signals\n", n, why, got);
	}
	return 0;
}
