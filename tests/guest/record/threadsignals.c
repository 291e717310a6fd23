// Programs with threads and signals, each a case of what recording them must get right:
//   threadsignals CASE
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 8, MANY = 20 };

static pthread_t thread[MANY];
static int fds[2];
static atomic_int count, ready, stop;

static void start(int n, void *(*f)(void *)) {
	for (long i = 0; i < n; i++)
		if (pthread_create(&thread[i], 0, f, (void *)i)) abort();
}
static void join(int n) {
	for (int i = 0; i < n; i++) pthread_join(thread[i], 0);
}
static void on(int sig, void (*f)(int), int flags) {
	struct sigaction a = {.sa_handler = f, .sa_flags = flags};
	if (sigaction(sig, &a, 0)) abort();
}

// The first thread ends, and another crashes later.
static void *latecrash(void *arg) {
	usleep(20000);
	if (arg == (void *)2) *(volatile int *)0x10 = 1;
	pause();
	return 0;
}
static void leadercrash(void) { start(3, latecrash); pthread_exit(0); }

// Cancelled in calls that wait: a read, a futex, a poll.
static sem_t sem;
static void *cancelled(void *arg) {
	char c;
	struct pollfd p = {.fd = fds[0], .events = POLLIN};
	ready++;
	switch ((long)arg % 3) {
	case 0: read(fds[0], &c, 1); break;
	case 1: sem_wait(&sem); break;
	default: poll(&p, 1, -1);
	}
	return 0;
}
static void cancels(void) {
	if (pipe(fds) || sem_init(&sem, 0, 0)) abort();
	start(6, cancelled);
	while (ready < 6) sched_yield();
	int n = 0;
	for (int i = 0; i < 6; i++) pthread_cancel(thread[i]);
	for (int i = 0; i < 6; i++) {
		void *r;
		pthread_join(thread[i], &r);
		n += r == PTHREAD_CANCELED;
	}
	printf("%d\n", n);
}

// A handler that writes to what the thread waits for in epoll_wait.
static atomic_int handled;
static void wake(int sig) { write(fds[1], "x", 1); handled++; }
static void *waiter(void *arg) {
	int ep = epoll_create1(0), got = 0;
	struct epoll_event e = {.events = EPOLLIN}, out;
	epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e);
	for (ready = 1; got < 30;) {
		char b[64];
		if (epoll_wait(ep, &out, 1, -1) == 1) got += read(fds[0], b, sizeof b);
	}
	count = got;
	return 0;
}
static void handlerwrites(void) {
	on(SIGTERM, wake, 0);
	if (pipe(fds)) abort();
	start(1, waiter);
	while (!ready) sched_yield();
	for (int i = 0; i < 30; i++) {
		pthread_kill(thread[0], SIGTERM);
		while (handled <= i) usleep(500); // two that are pending are one
	}
	join(1);
	printf("%d\n", count);
}

// Jumps out of a handler that has interrupted a read.
static __thread sigjmp_buf out;
static atomic_int jumped[4];
static void jump(int sig) { siglongjmp(out, 1); }
static void *jumper(void *arg) {
	char c;
	if (sigsetjmp(out, 1)) count++;
	jumped[(long)arg]++;
	if (jumped[(long)arg] <= 10) {
		read(fds[0], &c, 1);
		abort();
	}
	return 0;
}
static void jumps(void) {
	on(SIGUSR1, jump, 0);
	if (pipe(fds)) abort();
	start(4, jumper);
	for (int i = 0; i < 10; i++)
		for (int k = 0; k < 4; k++) {
			while (jumped[k] <= i) usleep(500);
			usleep(500); // it is in the read again, most often
			pthread_kill(thread[k], SIGUSR1);
		}
	join(4);
	printf("%d\n", count);
}

// Handlers on an alternate stack, one in another, each with calls.
static void deep(int sig) {
	char b[32];
	snprintf(b, sizeof b, "%d", getppid());
	if (sig < SIGRTMIN + 2) raise(sig + 1);
	count++;
}
static void *nester(void *arg) {
	static char stacks[4][65536];
	stack_t ss = {.ss_sp = stacks[(long)arg], .ss_size = sizeof stacks[0]};
	sigaltstack(&ss, 0);
	for (int i = 0; i < 20; i++) raise(SIGRTMIN);
	return 0;
}
static void nested(void) {
	for (int i = 0; i < 3; i++) on(SIGRTMIN + i, deep, SA_ONSTACK);
	start(4, nester);
	join(4);
	printf("%d\n", count);
}

// All signals are blocked, and threads made then. One of them takes them by sigwait.
static void *taker(void *arg) {
	sigset_t all;
	int sig, sum = 0;
	sigfillset(&all);
	for (int i = 0; i < 40; i++) {
		sigwait(&all, &sig);
		sum += sig;
	}
	count = sum;
	return 0;
}
static void *computes(void *arg) {
	while (!stop) __builtin_ia32_pause();
	return 0;
}
static void blocked(void) {
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, 0);
	start(1, taker);
	pthread_t busy;
	if (pthread_create(&busy, 0, computes, 0)) abort();
	for (int i = 0; i < 20; i++) {
		sigqueue(getpid(), 64, (union sigval){0});
		sigqueue(getpid(), SIGRTMIN + 3, (union sigval){0});
		if (i % 4 == 0) usleep(1000);
	}
	usleep(20000); // nobody makes a call but the one that sleeps
	stop = 1;
	pthread_join(busy, 0);
	join(1);
	printf("%d\n", count);
}

// A child stops and continues the program over and over.
static void *counts(void *arg) {
	for (int i = 0; i < 2000; i++) {
		for (volatile int k = 0; k < 500; k++) ;
		count++;
		if ((long)arg % 2 && i % 50 == 0) usleep(100);
	}
	return 0;
}
static void storm(void) {
	pid_t me = getpid(), child = fork();
	if (!child) {
		for (int i = 0; i < 30; i++) {
			kill(me, SIGSTOP);
			usleep(1000);
			kill(me, SIGCONT);
			usleep(1000);
		}
		_exit(0);
	}
	start(MANY, counts);
	join(MANY);
	while (waitpid(child, 0, 0) < 0 && errno == EINTR) ;
	printf("%d\n", count);
}

// A list of buffers that lies in the buffer it names, and a descriptor in a message.
static void *sender(void *arg) {
	char c = 'd', control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec v = {&c, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	int null = open("/dev/zero", O_RDONLY);
	h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_RIGHTS, h->cmsg_len = CMSG_LEN(sizeof null);
	memcpy(CMSG_DATA(h), &null, sizeof null);
	usleep(5000);
	if (sendmsg(fds[0], &m, 0) != 1 || write(fds[0], "0123456789abcdef0123456789abcdefrest", 36) != 36) abort();
	return 0;
}
static void vectors(void) {
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds)) abort();
	start(1, sender);
	char c, control[CMSG_SPACE(sizeof(int))];
	struct iovec one = {&c, 1};
	struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	int fd = -1;
	if (recvmsg(fds[1], &m, 0) != 1) abort();
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	if (read(fd, &c, 1) != 1 || c != 0) abort();
	join(1);
	static struct { struct iovec v[2]; char rest[16]; } b;
	b.v[0] = (struct iovec){&b, 32}; // the list itself
	b.v[1] = (struct iovec){b.rest, 4};
	ssize_t got = readv(fds[1], b.v, 2);
	printf("%zd %.36s\n", got, (char *)&b);
}

// Two locks that threads spin on, one with PAUSE and one that yields.
static atomic_flag pausing = ATOMIC_FLAG_INIT, yielding = ATOMIC_FLAG_INIT;
static long guarded[2];
static void *spins(void *arg) {
	for (int i = 0; i < 300; i++) {
		if ((long)arg % 2) {
			while (atomic_flag_test_and_set(&pausing)) __builtin_ia32_pause();
			guarded[0]++;
			atomic_flag_clear(&pausing);
		} else {
			while (atomic_flag_test_and_set(&yielding)) sched_yield();
			guarded[1]++;
			atomic_flag_clear(&yielding);
		}
	}
	return 0;
}
static void spinlocks(void) { start(N, spins); join(N); printf("%ld %ld\n", guarded[0], guarded[1]); }

// Safepoints as managed runtimes have them: threads load from a page, which one takes away when
// all are to wait in their handlers.
static char *page;
static sem_t arrived, go;
static void safepoint(int sig) {
	int e = errno;
	sem_post(&arrived);
	while (sem_wait(&go)) ;
	errno = e;
}
static void *polls(void *arg) {
	while (!stop) {
		count++;
		(void)*(volatile char *)page;
		if ((long)arg % 2) sched_yield();
		else for (int i = 0; i < 100; i++) __builtin_ia32_pause(); // little to replay
	}
	return 0;
}
static void safepoints(void) {
	on(SIGSEGV, safepoint, 0);
	sem_init(&arrived, 0, 0);
	sem_init(&go, 0, 0);
	page = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	start(N, polls);
	for (int i = 0; i < 10; i++) {
		mprotect(page, 4096, PROT_NONE);
		for (int k = 0; k < N; k++) while (sem_wait(&arrived)) ;
		mprotect(page, 4096, PROT_READ);
		for (int k = 0; k < N; k++) sem_post(&go);
	}
	stop = 1;
	join(N);
	printf("%d\n", count > 0);
}

// A thread runs over the end of its stack, into a hole as large as what a recorder may map there.
static char *stack;
static void hole(int sig, siginfo_t *si, void *context) {
	count = stack - (char *)si->si_addr;
	siglongjmp(out, 1);
}
static void *overruns(void *arg) {
	if (!sigsetjmp(out, 1))
		for (char *p = stack + 64;; p -= 64) (void)*(volatile char *)p;
	return 0;
}
static void overrun(void) {
	enum { SIZE = 1 << 20 };
	struct sigaction a = {.sa_sigaction = hole, .sa_flags = SA_SIGINFO};
	sigaction(SIGSEGV, &a, 0);
	char *p = mmap(0, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(p, SIZE);
	stack = p + SIZE;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, stack, SIZE);
	if (pthread_create(&thread[0], &attr, overruns, 0)) abort();
	join(1);
	printf("%d\n", count);
}

static struct { const char *name; void (*run)(void); } cases[] = {
	{"leadercrash", leadercrash}, {"cancels", cancels}, {"handlerwrites", handlerwrites}, {"jumps", jumps}, {"nested", nested}, {"blocked", blocked},
	{"storm", storm}, {"vectors", vectors}, {"spinlocks", spinlocks}, {"safepoints", safepoints},
	{"overrun", overrun},
};

int main(int argc, char **argv) {
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
		if (argc > 1 && !strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			return 0;
		}
	return 2;
}
