// Programs with threads, each a case of what recording them must get right:
//   threads CASE
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 8 };
static pthread_t thread[N];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static int fds[2], back[2];
static atomic_int flag;
static volatile long shared;

static void start(int n, void *(*f)(void *)) {
	for (long i = 0; i < n; i++)
		if (pthread_create(&thread[i], 0, f, (void *)i)) abort();
}

static void join(int n) {
	for (int i = 0; i < n; i++) pthread_join(thread[i], 0);
}

// Locks that are waited for.
static void *locker(void *arg) {
	for (int i = 0; i < 300; i++) {
		pthread_mutex_lock(&mutex);
		shared += (long)arg + i;
		if (i % 50 == 0) sched_yield();
		pthread_mutex_unlock(&mutex);
	}
	return 0;
}
static void locks(void) { start(N, locker); join(N); printf("%ld\n", shared); }

// Threads that do nothing but yield to each other.
static void *yielder(void *arg) { for (int i = 0; i < 100; i++) { __atomic_fetch_add(&shared, 1, __ATOMIC_SEQ_CST); sched_yield(); } return 0; }
static void yields(void) { start(2, yielder); join(2); printf("%ld\n", shared); }

// Conditions and a barrier.
static int turn;
static void *condwaiter(void *arg) {
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&mutex);
		while (turn % N != (long)arg) pthread_cond_wait(&cond, &mutex);
		turn++;
		pthread_cond_broadcast(&cond);
		pthread_mutex_unlock(&mutex);
	}
	return 0;
}
static void conds(void) { pthread_barrier_init(&barrier, 0, N); start(N, condwaiter); join(N); printf("%d\n", turn); }

// Reads that wait, into memory that others look at.
static char box[64];
static void *echo(void *arg) {
	ssize_t n;
	while ((n = read(fds[0], box, sizeof box)) > 0) {
		shared += box[0];
		if (write(back[1], box, n) != n) abort();
	}
	return 0;
}
static void *watcher(void *arg) {
	unsigned seen = 0;
	for (int i = 0; i < 2000; i++) {
		seen = seen * 31 + *(volatile char *)box;
		if (i % 100 == 0) usleep(100);
	}
	return (void *)(long)(seen & 0);
}
static void pipes(void) {
	if (pipe(fds) || pipe(back)) abort();
	pthread_create(&thread[0], 0, echo, 0);
	pthread_create(&thread[1], 0, watcher, 0);
	char b[64];
	for (int i = 0; i < 300; i++) {
		memset(b, i, sizeof b);
		if (write(fds[1], b, 1 + i % 64) < 1 || read(back[0], b, sizeof b) < 1) abort();
	}
	close(fds[1]);
	join(2);
	printf("%ld\n", shared);
}

// The first thread ends, the others go on.
static void *after(void *arg) {
	usleep(20000);
	printf("thread %ld after the first\n", (long)arg);
	fflush(stdout);
	flag++;
	if ((long)arg == 0) { while (flag < 3) usleep(1000); exit(7); }
	return 0;
}
static void leader(void) { start(3, after); pthread_exit(0); }

// A robust mutex whose owner ends.
static pthread_mutex_t robust;
static void *owner(void *arg) { pthread_mutex_lock(&robust); return 0; }
static void robusts(void) {
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust, &a);
	start(1, owner);
	join(1);
	int e = pthread_mutex_lock(&robust);
	printf("%s\n", strerror(e));
	pthread_mutex_consistent(&robust);
	pthread_mutex_unlock(&robust);
}

// Cancelled in a read that waits.
static void *cancelled(void *arg) {
	char c;
	read(fds[0], &c, 1);
	return 0;
}
static void cancel(void) {
	if (pipe(fds)) abort();
	start(4, cancelled);
	usleep(20000);
	void *r;
	int n = 0;
	for (int i = 0; i < 4; i++) pthread_cancel(thread[i]);
	for (int i = 0; i < 4; i++) { pthread_join(thread[i], &r); n += r == PTHREAD_CANCELED; }
	printf("%d\n", n);
}

// Signals to the process, which no thread blocks.
static atomic_int ticks;
static void tick(int sig) { ticks++; }
static void *worker(void *arg) {
	char b[16];
	while (ticks < 40) {
		for (int i = 0; i < 20000; i++) shared++;
		if ((long)arg % 2) { struct pollfd p = {.fd = -1}; poll(&p, 1, 1); }
		else snprintf(b, sizeof b, "%d", getppid());
	}
	return 0;
}
static void alarms(void) {
	struct sigaction a = {.sa_handler = tick};
	sigaction(SIGALRM, &a, 0);
	struct itimerval it = {{0, 1000}, {0, 1000}};
	setitimer(ITIMER_REAL, &it, 0);
	start(N, worker);
	join(N);
	struct itimerval off = {0};
	setitimer(ITIMER_REAL, &off, 0);
	printf("done\n");
}

// Signals to a thread, in a call that waits and in its own code.
static atomic_int hits;
static void hit(int sig) { hits++; write(1, "", 0); }
static void *target(void *arg) {
	char c;
	while (read(fds[0], &c, 1) < 0 && errno == EINTR) shared++;
	return 0;
}
static void kills(void) {
	struct sigaction a = {.sa_handler = hit};
	sigaction(SIGUSR1, &a, 0);
	if (pipe(fds)) abort();
	start(2, target);
	for (int i = 0; i < 50; i++) { pthread_kill(thread[i % 2], SIGUSR1); usleep(300); }
	write(fds[1], "xy", 2);
	join(2);
	printf("%d\n", hits > 0);
}

// Another program, by a thread that is not the first.
static void *execer(void *arg) {
	if ((long)arg != 3) { pause(); return 0; }
	usleep(20000);
	execl("/bin/echo", "echo", "executed", (char *)0);
	return 0;
}
static void exec(void) { start(N, execer); pause(); }

// Another program, by the only thread that is left, which is not the first; that program makes
// threads, too. Without its first thread a process has no /proc/self/exe.
static char self[4096];
static void *lastexec(void *arg) {
	usleep(20000);
	execl(self, "threads", "locks", (char *)0);
	perror("execl");
	return 0;
}
static void leaderexec(void) {
	if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) exit(1);
	start(1, lastexec);
	pthread_exit(0);
}

// Spinning on what another thread stores.
static void *spinner(void *arg) { while (!flag) ; return 0; }
static void spin(void) {
	start(2, spinner);
	for (volatile int i = 0; i < 3000000; i++) ;
	flag = 1;
	join(2);
	printf("spun\n");
}

// A child of a program with threads.
static void forks(void) {
	start(4, locker);
	for (int i = 0; i < 5; i++) {
		pid_t p = fork();
		if (p == 0) _exit(i);
		int st;
		waitpid(p, &st, 0);
		shared += WEXITSTATUS(st) * 0;
	}
	join(4);
	printf("%ld\n", shared);
}

// Many threads, one after the other and at a time.
static void *brief(void *arg) { __atomic_add_fetch(&shared, 1, __ATOMIC_SEQ_CST); return 0; }
static void many(void) {
	for (int i = 0; i < 60; i++) { start(N, brief); join(N); }
	printf("%ld\n", shared);
}

// The end of the process while others compute and wait. PAUSE takes long, so that there is
// less to replay.
static void *busy(void *arg) { for (;;) { shared++; __builtin_ia32_pause(); if ((long)arg & 1) usleep(1000); } return 0; }
static void ends(void) { start(N, busy); usleep(50000); printf("ends\n"); exit(3); }

// epoll, and sockets with messages.
static void *server(void *arg) {
	int ep = epoll_create1(0);
	struct epoll_event e = {.events = EPOLLIN, .data.fd = fds[0]};
	epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e);
	for (;;) {
		struct epoll_event out[4];
		int n = epoll_wait(ep, out, 4, -1);
		for (int i = 0; i < n; i++) {
			char b[100];
			struct iovec v[2] = {{b, 10}, {b + 10, 90}};
			struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
			ssize_t got = recvmsg(out[i].data.fd, &m, 0);
			if (got <= 0) return 0;
			send(out[i].data.fd, b, got, 0);
		}
	}
}
static void epolls(void) {
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds)) abort();
	pthread_create(&thread[0], 0, server, 0);
	char b[100];
	for (int i = 1; i < 100; i++) {
		memset(b, i, sizeof b);
		if (send(fds[1], b, i, 0) != i || recv(fds[1], b, sizeof b, 0) != i) abort();
		shared += b[i - 1];
	}
	shutdown(fds[1], SHUT_WR);
	join(1);
	printf("%ld\n", shared);
}

// Each thread sends signals to itself. The turn passes where the handler begins, which blocks
// all signals, as those of Go programs do.
static void *raiser(void *arg) {
	for (int i = 0; i < 1500; i++) pthread_kill(pthread_self(), SIGUSR1);
	return 0;
}
static void raises(void) {
	struct sigaction sa = {.sa_handler = tick};
	sigfillset(&sa.sa_mask);
	sigaction(SIGUSR1, &sa, 0);
	start(3, raiser);
	join(3);
	printf("%d\n", ticks);
}

// A crash in a thread, others waiting and computing.
static void *crasher(void *arg) {
	pthread_setname_np(pthread_self(), "crasher");
	usleep(30000);
	*(volatile int *)0x10 = 1;
	return 0;
}
static void crash(void) {
	start(3, busy);
	pthread_create(&thread[4], 0, crasher, 0);
	pthread_join(thread[4], 0);
}

static struct { const char *name; void (*run)(void); } cases[] = {
	{"locks", locks}, {"yields", yields}, {"conds", conds}, {"pipes", pipes}, {"leader", leader}, {"robust", robusts}, {"cancel", cancel},
	{"alarms", alarms}, {"kills", kills}, {"exec", exec}, {"leaderexec", leaderexec}, {"spin", spin}, {"forks", forks}, {"many", many}, {"ends", ends},
	{"epoll", epolls}, {"raises", raises}, {"crash", crash},
};

int main(int argc, char **argv) {
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
		if (argc > 1 && !strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			return 0;
		}
	return 2;
}
