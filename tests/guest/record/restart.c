// SIGALRM into blocking calls, with and without SA_RESTART: read, wait, nanosleep,
// pause, sigsuspend, poll, select, ppoll, epoll_wait, futex.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int got, wfd;
static void h(int s) {
	(void)s;
	if (++got == 2 && wfd) write(wfd, "x", 1);
}
static void every(int flags, int us, int again) {
	struct sigaction sa;
	memset(&sa, 0, sizeof sa);
	sa.sa_handler = h, sa.sa_flags = flags;
	sigaction(SIGALRM, &sa, 0);
	struct itimerval t = {{0, again}, {0, us}};
	got = 0;
	setitimer(ITIMER_REAL, &t, 0);
}
static void say(const char *what, long r) {
	printf("%s %ld %s got %d\n", what, r, r < 0 ? strerror(errno) : "", got > 0);
	fflush(stdout);
	every(0, 0, 0);
}

int main(void) {
	int p[2];
	char c;
	pipe(p);
	wfd = p[1];
	every(SA_RESTART, 10000, 10000);
	long r = read(p[0], &c, 1);
	wfd = 0;
	say("restarted read", r);
	every(0, 10000, 10000);
	say("read", read(p[0], &c, 1));
	int q[2]; // the child lives until the second signal
	pipe(q);
	wfd = q[1];
	pid_t k = fork();
	if (k == 0) {
		read(q[0], &c, 1);
		_exit(4);
	}
	int st = 0;
	every(SA_RESTART, 10000, 10000);
	r = waitpid(k, &st, 0);
	wfd = 0;
	say("restarted wait", (r == k) * 100 + WEXITSTATUS(st));
	struct timespec ts = {5, 0}, rest = {0, 0};
	every(SA_RESTART, 10000, 10000);
	r = nanosleep(&ts, &rest);
	say("nanosleep", r);
	// 5 where the signal was there already: the kernel counts to the end of the timer's slack.
	printf("rest %d\n", rest.tv_sec == 4 || rest.tv_sec == 5);
	every(SA_RESTART, 10000, 10000);
	say("pause", pause());
	sigset_t none;
	sigemptyset(&none);
	every(SA_RESTART, 10000, 10000);
	say("sigsuspend", sigsuspend(&none));
	struct pollfd f = {p[0], POLLIN, 0};
	every(SA_RESTART, 10000, 10000);
	say("poll", poll(&f, 1, 5000));
	fd_set set;
	FD_ZERO(&set); FD_SET(p[0], &set);
	struct timeval tv = {5, 0};
	every(SA_RESTART, 10000, 10000);
	say("select", select(p[0] + 1, &set, 0, 0, &tv));
	ts = (struct timespec){5, 0};
	every(SA_RESTART, 10000, 10000);
	say("ppoll", ppoll(&f, 1, &ts, &none));
	int e = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN};
	epoll_ctl(e, EPOLL_CTL_ADD, p[0], &ev);
	every(SA_RESTART, 10000, 10000);
	say("epoll_wait", epoll_wait(e, &ev, 1, 5000));
	ts = (struct timespec){0, 30000000};
	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, 0);
	return 0;
}
