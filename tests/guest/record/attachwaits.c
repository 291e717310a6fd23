// One thread computes, and each of the others waits in a call of another kind, when a recorder
// attaches and goes again. Line "go" on standard input ends those that would wait for ever. What
// each call has returned is printed: it is to be as without a recorder. Those with a time-out must
// not return before it has passed.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int pipes[8][2];
static volatile int stop;
static char results[32][96];
static int word;
static double seconds(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int give(int n) {
	int r = 0;
	while (n-- > 0)
		r |= write(pipes[n][1], "x", 1) - 1;
	return r;
}

static long waitRead(void) { char c; return read(pipes[0][0], &c, 1); }
static long waitPoll(void) {
	struct pollfd p = {pipes[1][0], POLLIN, 0};
	long r = poll(&p, 1, -1);
	return r * 100 + p.revents;
}
static long waitEpoll(void) {
	int e = epoll_create1(0);
	struct epoll_event ev = {EPOLLIN, {.u64 = 77}}, got = {0};
	epoll_ctl(e, EPOLL_CTL_ADD, pipes[2][0], &ev);
	long r = epoll_wait(e, &got, 1, -1);
	return r * 1000 + got.data.u64;
}
static long waitSelect(void) {
	fd_set s;
	FD_ZERO(&s);
	FD_SET(pipes[3][0], &s);
	return select(pipes[3][0] + 1, &s, NULL, NULL, NULL);
}
static long waitRecv(void) {
	char c;
	int sv[2];
	socketpair(AF_UNIX, SOCK_STREAM, 0, sv);
	struct timeval tv = {2, 0};
	setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	long r = recv(sv[0], &c, 1, 0);
	return r < 0 ? -errno : r;
}
static long waitFutex(void) { return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0); }
static long waitSigwait(void) {
	sigset_t s;
	sigemptyset(&s);
	sigaddset(&s, SIGUSR2);
	struct timespec t = {2, 0};
	long r = sigtimedwait(&s, NULL, &t);
	return r < 0 ? -errno : r;
}
static long waitSem(void) {
	int id = semget(IPC_PRIVATE, 1, 0600);
	struct sembuf b = {0, -1, 0};
	struct timespec t = {2, 0};
	long r = semtimedop(id, &b, 1, &t);
	r = r < 0 ? -errno : r;
	semctl(id, 0, IPC_RMID);
	return r;
}
static long timedNanosleep(void) { struct timespec t = {2, 0}; return nanosleep(&t, NULL); }
static long timedClock(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += 2;
	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}
static long timedPoll(void) { return poll(NULL, 0, 2000); }
static long timedPpoll(void) {
	struct timespec t = {2, 0};
	return ppoll(NULL, 0, &t, NULL);
}
static long timedEpoll(void) {
	struct epoll_event got;
	return epoll_wait(epoll_create1(0), &got, 1, 2000);
}
static long timedFutex(void) {
	static int w;
	struct timespec t = {2, 0};
	long r = syscall(SYS_futex, &w, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
	return r < 0 ? -errno : r;
}
static long timedSelect(void) { struct timeval t = {2, 0}; return select(0, NULL, NULL, NULL, &t); }

static struct {
	const char *name;
	long (*wait)(void);
	int timed; // it takes two seconds, not less
} kinds[] = {
	{"read", waitRead, 0}, {"poll", waitPoll, 0}, {"epoll", waitEpoll, 0}, {"select", waitSelect, 0},
	{"futex", waitFutex, 0}, {"recv with a time-out", waitRecv, 1}, {"sigtimedwait", waitSigwait, 1},
	{"semtimedop", waitSem, 1}, {"nanosleep", timedNanosleep, 1}, {"clock_nanosleep", timedClock, 1},
	{"poll with a time-out", timedPoll, 1}, {"ppoll with a time-out", timedPpoll, 1},
	{"epoll with a time-out", timedEpoll, 1}, {"futex with a time-out", timedFutex, 1},
	{"select with a time-out", timedSelect, 1},
};
enum { count = sizeof kinds / sizeof *kinds };
static int tids[count];

static void *waits(void *arg) {
	long i = (long)arg;
	tids[i] = gettid();
	double start = seconds();
	long r = kinds[i].wait();
	const char *early = kinds[i].timed && seconds() - start < 1.99 ? ", too early" : "";
	snprintf(results[i], sizeof results[i], "%s: %ld%s", kinds[i].name, r, early);
	return NULL;
}

static void *computes(void *arg) {
	unsigned long x = 1;
	while (!stop)
		for (int i = 0; i < 100000; i++)
			x = x * 6364136223846793005ul + 1;
	return (void *)(x | 1);
}

static int sleeping(int tid) {
	char name[64], state = 0;
	snprintf(name, sizeof name, "/proc/self/task/%d/stat", tid);
	FILE *f = fopen(name, "r");
	if (!f)
		return 1;
	fscanf(f, "%*d (%*[^)]) %c", &state);
	fclose(f);
	return state == 'S';
}

int main(void) {
	sigset_t s;
	sigemptyset(&s);
	sigaddset(&s, SIGUSR2);
	sigprocmask(SIG_BLOCK, &s, NULL);
	for (int i = 0; i < 8; i++)
		pipe(pipes[i]);
	pthread_t t[count], busy;
	pthread_create(&busy, NULL, computes, NULL);
	for (long i = 0; i < count; i++)
		pthread_create(&t[i], NULL, waits, (void *)i);
	for (int i = 0; i < count; i++)
		while (!tids[i] || !sleeping(tids[i]))
			sched_yield();
	printf("ready\n");
	fflush(stdout);
	char line[16];
	fgets(line, sizeof line, stdin);
	give(4);
	word = 1;
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	for (int i = 0; i < count; i++) {
		pthread_join(t[i], NULL);
		puts(results[i]);
	}
	stop = 1;
	void *x;
	pthread_join(busy, &x);
	printf("computed %d\n", x != NULL);
	return 3;
}
