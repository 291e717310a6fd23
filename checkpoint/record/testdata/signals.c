// Signals of all kinds: sent to itself, from a timer in a compute loop, into
// blocking calls with and without SA_RESTART, on an alternate stack, two at one
// instruction, blocked around a trapped instruction, and lost in a pause.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static volatile int got[65], order[64], n;
static void h(int s, siginfo_t *si, void *u) {
	(void)u;
	got[s]++;
	if (n < 64) order[n++] = s;
	if (s == SIGUSR1 && si->si_code == SI_TKILL && si->si_pid != getpid()) _exit(90);
}
static void set(int s, int flags) {
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_sigaction = h;
	a.sa_flags = SA_SIGINFO | flags;
	sigaction(s, &a, 0);
}
static void timer(int us, int again) {
	struct itimerval t = {{0, again}, {0, us}};
	setitimer(ITIMER_REAL, &t, 0);
}
int main(void) {
	setvbuf(stdout, 0, _IOLBF, 0);
	set(SIGUSR1, 0), set(SIGUSR2, SA_NODEFER), set(SIGALRM, 0);
	raise(SIGUSR1);
	printf("raise %d\n", got[SIGUSR1]);
	kill(getpid(), SIGUSR2);
	printf("kill %d\n", got[SIGUSR2]);

	sigset_t m, o;
	sigemptyset(&m), sigaddset(&m, SIGUSR1), sigaddset(&m, SIGUSR2);
	sigprocmask(SIG_BLOCK, &m, &o);
	raise(SIGUSR1), raise(SIGUSR2), n = 0;
	sigprocmask(SIG_SETMASK, &o, 0);
	printf("two at once %d: %d %d\n", n, order[0], order[1]);

	timer(10000, 10000); // 100 Hz, no system call while it runs
	volatile unsigned long x = 1;
	while (got[SIGALRM] < 20) x = x * 6364136223846793005ul + 1;
	timer(0, 0);
	printf("timer in a loop\n");

	got[SIGALRM] = 0;
	timer(20000, 0);
	struct timespec ts = {5, 0};
	int r = nanosleep(&ts, &ts);
	printf("nanosleep %d %d left %d\n", r, errno, (int)ts.tv_sec);

	timer(20000, 0);
	pause();
	printf("pause %d\n", errno);

	int p[2];
	char c;
	if (pipe(p)) return 1;
	timer(20000, 0);
	r = read(p[0], &c, 1);
	printf("read %d %d\n", r, errno);
	set(SIGALRM, SA_RESTART);
	pid_t kid = fork();
	if (!kid) {
		usleep(60000);
		if (write(p[1], "x", 1) != 1) _exit(1);
		_exit(7);
	}
	timer(20000, 0);
	r = read(p[0], &c, 1);
	printf("read again %d %c\n", r, c);
	int st;
	waitpid(kid, &st, 0);
	printf("child %d\n", WEXITSTATUS(st));

	stack_t ss = {.ss_sp = malloc(65536), .ss_size = 65536};
	sigaltstack(&ss, 0);
	set(SIGUSR1, SA_ONSTACK);
	raise(SIGUSR1);
	printf("altstack %d\n", got[SIGUSR1]);

	signal(SIGWINCH, SIG_DFL); // ignored: must not end epoll_wait
	int ep = epoll_create1(0);
	kid = fork();
	if (!kid) {
		usleep(20000);
		kill(getppid(), SIGWINCH);
		usleep(20000);
		kill(getppid(), SIGWINCH);
		_exit(0);
	}
	struct epoll_event ev;
	struct timespec t0, t1;
	clock_gettime(CLOCK_MONOTONIC, &t0);
	r = epoll_wait(ep, &ev, 1, 120);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	long ms = (t1.tv_sec - t0.tv_sec) * 1000 + (t1.tv_nsec - t0.tv_nsec) / 1000000;
	printf("epoll %d, %s\n", r, ms >= 115 && ms < 4000 ? "in time" : "out of time");
	waitpid(kid, &st, 0);

	sigfillset(&m);
	sigprocmask(SIG_SETMASK, &m, &o);
	unsigned long long a = __rdtsc(), b = 0;
	for (int i = 0; i < 10; i++) b = __rdtsc();
	sigset_t now;
	sigprocmask(SIG_SETMASK, 0, &now);
	printf("tsc blocked %d %d\n", b > a, sigismember(&now, SIGSEGV));
	sigprocmask(SIG_SETMASK, &o, 0);
	signal(SIGSEGV, SIG_IGN);
	a = __rdtsc();
	struct sigaction old;
	sigaction(SIGSEGV, 0, &old);
	printf("tsc ignored %d\n", old.sa_handler == SIG_IGN);
	set(SIGSEGV, SA_ONSTACK);
	sigemptyset(&m), sigaddset(&m, SIGSEGV);
	sigprocmask(SIG_BLOCK, &m, 0);
	a = __rdtsc();
	sigaction(SIGSEGV, 0, &old);
	printf("tsc handler %d\n", old.sa_sigaction == h);

	sigset_t w;
	sigemptyset(&w), sigaddset(&w, SIGUSR2);
	sigprocmask(SIG_BLOCK, &w, 0);
	kid = fork();
	if (!kid) {
		usleep(20000);
		kill(getppid(), SIGUSR2);
		_exit(0);
	}
	sigemptyset(&m);
	sigsuspend(&m);
	printf("sigsuspend %d\n", errno);
	waitpid(kid, &st, 0);
	kid = fork();
	if (!kid) {
		usleep(20000);
		kill(getppid(), SIGUSR2);
		_exit(0);
	}
	siginfo_t si;
	r = sigwaitinfo(&w, &si);
	printf("sigwaitinfo %d %d\n", r, si.si_pid == kid);
	waitpid(kid, &st, 0);
	return 42;
}
