// Descriptors that deliver events: signalfd, timerfd, eventfd, inotify, pidfd,
// and their structures.
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
	sigset_t m;
	sigemptyset(&m), sigaddset(&m, SIGUSR1), sigaddset(&m, SIGCHLD);
	sigprocmask(SIG_BLOCK, &m, 0);
	int sfd = signalfd(-1, &m, 0);
	raise(SIGUSR1);
	struct signalfd_siginfo si[2];
	int r = read(sfd, si, sizeof si);
	printf("signalfd %d %u\n", r, si[0].ssi_signo);
	pid_t p = fork();
	if (p == 0) _exit(3);
	r = read(sfd, si, sizeof si);
	printf("signalfd %d %u %d\n", r, si[0].ssi_signo, si[0].ssi_status);
	int pfd = syscall(SYS_pidfd_open, p, 0);
	siginfo_t info;
	printf("waitid %d", waitid(P_PIDFD, pfd, &info, WEXITED));
	printf(" %d\n", info.si_status);
	int tfd = timerfd_create(CLOCK_MONOTONIC, 0);
	struct itimerspec ts = {{0, 5000000}, {0, 5000000}}, old;
	timerfd_settime(tfd, 0, &ts, &old);
	uint64_t ticks, total = 0;
	while (total < 5) {
		if (read(tfd, &ticks, 8) != 8) return 2;
		total += ticks;
	}
	timerfd_gettime(tfd, &old);
	printf("timerfd %d %ld\n", total >= 5, (long)old.it_interval.tv_nsec);
	int efd = eventfd(3, EFD_SEMAPHORE);
	read(efd, &ticks, 8);
	printf("eventfd %lu\n", (unsigned long)ticks);
	char dir[] = "/tmp/vplay-inotifyXXXXXX", name[100], buf[4096];
	mkdtemp(dir);
	int ifd = inotify_init1(0);
	inotify_add_watch(ifd, dir, IN_CREATE | IN_DELETE);
	snprintf(name, sizeof name, "%s/file", dir);
	fclose(fopen(name, "w"));
	unlink(name), rmdir(dir);
	ssize_t n = read(ifd, buf, sizeof buf);
	for (ssize_t at = 0; at < n;) {
		struct inotify_event *e = (void *)(buf + at);
		printf("inotify %x %s\n", e->mask, e->len ? e->name : "");
		at += sizeof *e + e->len;
	}
	struct pollfd f[3] = {{tfd, POLLIN, 0}, {efd, POLLIN | POLLOUT, 0}, {ifd, POLLIN, 0}};
	usleep(10000);
	printf("poll %d %d %d\n", poll(f, 3, 100) >= 2, f[0].revents, f[1].revents);
	return 0;
}
