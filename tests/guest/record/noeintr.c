// Ignored signals must not end blocking calls: SIGWINCH and SIGCHLD arrive in
// ppoll, epoll_wait, select, read, nanosleep and pause-like calls, and what such a call tells
// comes where the program wants it, also with another thread, while which a wait writes to
// memory of the recorder's.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pid_t pester(int ms) {
	pid_t p = fork();
	if (p == 0) {
		for (int i = 0; i < 6; i++) usleep(ms * 1000), kill(getppid(), i & 1 ? SIGWINCH : SIGURG);
		_exit(0);
	}
	return p;
}
static void say(const char *what, long r, pid_t p) {
	printf("%s %ld %s\n", what, r, r < 0 ? strerror(errno) : "");
	fflush(stdout);
	kill(p, SIGKILL);
	waitpid(p, 0, 0);
}

static int fds[2];
static void *writer(void *arg) {
	usleep(60000);
	write(fds[1], "w", 1);
	return arg;
}

int main(void) {
	pipe(fds);
	struct pollfd f = {fds[0], POLLIN, 0};
	struct timespec ts = {0, 50000000};
	sigset_t none, usr;
	sigemptyset(&none);
	pid_t p = pester(5);
	say("poll", poll(&f, 1, 50), p);
	p = pester(5);
	say("ppoll", ppoll(&f, 1, &ts, &none), p);
	int e = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN};
	epoll_ctl(e, EPOLL_CTL_ADD, fds[0], &ev);
	p = pester(5);
	say("epoll_wait", epoll_wait(e, &ev, 1, 50), p);
	p = pester(5);
	say("epoll_pwait", epoll_pwait(e, &ev, 1, 50, &none), p);
	fd_set set;
	FD_ZERO(&set); FD_SET(fds[0], &set);
	struct timeval tv = {0, 50000};
	p = pester(5);
	say("select", select(fds[0] + 1, &set, 0, 0, &tv), p);
	p = pester(5);
	say("nanosleep", nanosleep(&ts, 0), p);
	sigemptyset(&usr), sigaddset(&usr, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr, 0);
	p = pester(5);
	say("sigtimedwait", sigtimedwait(&usr, 0, &ts), p);
	int sem = semget(IPC_PRIVATE, 1, 0600);
	struct sembuf op = {0, -1, 0};
	p = pester(5);
	say("semtimedop", semtimedop(sem, &op, 1, &ts), p);
	semctl(sem, 0, IPC_RMID);
	pthread_t t;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before); // in the writer
	pthread_create(&t, 0, writer, 0);
	pthread_sigmask(SIG_SETMASK, &before, 0);
	struct epoll_event got = {.events = 99, .data.u64 = 99};
	ev.data.u64 = 5;
	epoll_ctl(e, EPOLL_CTL_MOD, fds[0], &ev);
	p = pester(5);
	say("epoll_wait", epoll_wait(e, &got, 1, 5000), p);
	printf("events %u data %lu\n", got.events, (unsigned long)got.data.u64);
	pthread_join(t, 0);
	return 0;
}
