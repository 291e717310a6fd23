/* Threads whose calls the recorder's agent makes: those that cannot wait, those that could and do
 * not, and those that do wait for another thread. Arguments: a case, a folder. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N = 4 };
static pthread_t thread[N];
static const char *dir;
static int fds[2];
static volatile int flag, ready;

static void start(int n, void *(*f)(void *)) {
	for (long i = 0; i < n; i++)
		if (pthread_create(&thread[i], 0, f, (void *)i)) abort();
}
static void join(int n) {
	for (int i = 0; i < n; i++) {
		void *v;
		pthread_join(thread[i], &v);
		printf("%d: %ld\n", i, (long)v);
	}
}
static void nap(int ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, 0); }

/* Files, each thread its own descriptors. */
static long walk(const char *at) {
	char path[4096], buf[3000];
	long sum = 0;
	DIR *d = opendir(at);
	struct dirent *e;
	while (d && (e = readdir(d))) {
		struct stat st;
		if (e->d_name[0] == '.') continue;
		snprintf(path, sizeof path, "%s/%s", at, e->d_name);
		if (lstat(path, &st)) continue;
		if (S_ISDIR(st.st_mode)) {
			sum += walk(path);
			continue;
		}
		int fd = open(path, O_RDONLY), to = open("/dev/null", O_WRONLY);
		for (long n; (n = read(fd, buf, sizeof buf)) > 0; write(to, buf, n))
			for (long i = 0; i < n; i++) sum = sum * 31 + buf[i];
		close(fd), close(to);
	}
	if (d) closedir(d);
	return sum;
}
static void *walker(void *arg) {
	long sum = 0;
	for (int i = 0; i < 5; i++) sum ^= walk(dir) + i;
	return (void *)sum;
}
static void files(void) { start(N, walker); join(N); }

/* One thread waits in a read while others make calls; more is written than a pipe holds. */
static void *drainer(void *arg) {
	static char buf[10000];
	long sum = 0, n;
	while ((n = read(fds[0], buf, sizeof buf)) > 0)
		for (long i = 0; i < n; i++) sum += buf[i];
	return (void *)sum;
}
static void waits(void) {
	static char big[300000];
	pipe(fds);
	start(1, drainer);
	for (int i = 0; i < 200; i++) {
		struct stat st;
		stat(dir, &st);
		write(fds[1], "x", 1);
	}
	memset(big, 'y', sizeof big);
	write(fds[1], big, sizeof big);
	close(fds[1]);
	join(1);
}

/* Descriptors that do not wait, and events that come once. */
static void *talker(void *arg) {
	for (int i = 0; i < 100; i++) {
		char c = i;
		while (write(fds[1], &c, 1) < 0) nap(1);
		if (i % 10 == 0) nap(2);
	}
	return 0;
}
static void events(void) {
	socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds);
	int ep = epoll_create1(0);
	struct epoll_event e = {EPOLLIN | EPOLLET | EPOLLONESHOT, {.u64 = 7}};
	epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e);
	start(1, talker);
	long sum = 0, got = 0;
	while (got < 100) {
		struct epoll_event have[4];
		int n = epoll_wait(ep, have, 4, 5000);
		if (n != 1 || have[0].data.u64 != 7) abort();
		char buf[7];
		for (long n; (n = recv(fds[0], buf, sizeof buf, 0)) > 0; got += n)
			for (int i = 0; i < n; i++) sum = sum * 3 + buf[i];
		if (errno != EAGAIN) abort();
		epoll_ctl(ep, EPOLL_CTL_MOD, fds[0], &e);
	}
	struct epoll_event none;
	printf("%ld %d\n", sum, epoll_wait(ep, &none, 1, 20));
	join(1);
}

/* To open a FIFO waits for who opens its other end. */
static char fifo[4096];
static void *opener(void *arg) {
	char c = 0;
	int fd = open(fifo, O_RDONLY);
	read(fd, &c, 1);
	close(fd);
	return (void *)(long)c;
}
static void fifos(void) {
	snprintf(fifo, sizeof fifo, "%s.fifo%d", dir, getpid());
	mkfifo(fifo, 0600);
	for (int i = 0; i < 5; i++) {
		start(1, opener);
		nap(3);
		int fd = open(fifo, O_WRONLY);
		write(fd, "q", 1);
		join(1);
		close(fd);
	}
	unlink(fifo);
}

/* A write that poll(2) says would not wait, and that does, for a thread which has no turn. */
static void *taker(void *arg) {
	uint64_t v;
	while (!flag) sched_yield();
	read(fds[0], &v, 8);
	return (void *)(v != 0);
}
static void stuck(void) {
	uint64_t v = 1;
	fds[0] = eventfd(0, 0);
	write(fds[0], &v, 8);
	start(1, taker);
	v = UINT64_MAX - 3;
	write(fds[0], &v, 8);
	flag = 1;
	v = 9;
	printf("write %ld\n", (long)write(fds[0], &v, 8));
	join(1);
	printf("%ld", (long)read(fds[0], &v, 8));
	printf(" %ld\n", (long)v);
}

/* A thread with a GS base of its own, and one with its own descriptors. */
static void *gs(void *arg) {
	static long words[4] = {11, 22, 33, 44};
	unsigned long base = 1;
	long v;
	syscall(SYS_arch_prctl, 0x1004, &base);
	if (arg) syscall(SYS_arch_prctl, 0x1001, words + (long)arg);
	getppid();
	if (!arg) return (void *)base;
	__asm__ volatile("mov %%gs:0, %0" : "=r"(v));
	unshare(CLONE_FILES);
	close(fds[0]);
	getppid();
	return (void *)(v + base);
}
static void own(void) {
	pipe(fds);
	start(N, gs);
	join(N);
	printf("%d\n", close(fds[0]));
}

/* The program's own action for SIGSYS, which the agent's stands in the place of: blocked, asked for, handed to
 * children, ignored, and last of all used. */
static volatile int raised;
static void onsys(int s) { raised += s; }
static void is(const char *what, void *h) {
	struct sigaction a;
	sigaction(SIGSYS, 0, &a);
	printf("%s: %d %d\n", what, (void *)a.sa_handler == h, raised);
}
static void sigsys(void) {
	sigset_t all, old;
	signal(SIGSYS, onsys);
	walk(dir);
	is("set", onsys);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	printf("%ld\n", walk(dir));
	sigprocmask(SIG_SETMASK, 0, &all);
	printf("%d\n", sigismember(&all, SIGSYS));
	start(N, walker);
	join(N);
	sigprocmask(SIG_SETMASK, &old, 0);
	is("blocked", onsys);
	if (fork() == 0) {
		raise(SIGSYS);
		is("child", onsys);
		signal(SIGSYS, SIG_DFL);
		walk(dir);
		raise(SIGSYS);
	}
	int status;
	wait(&status);
	printf("%#x\n", status & 0x7f);
	signal(SIGSYS, SIG_IGN);
	walk(dir);
	raise(SIGSYS);
	walk(dir);
	is("ignored", SIG_IGN);
	signal(SIGSYS, onsys);
	walk(dir);
	raise(SIGSYS);
	walk(dir);
	is("raised", onsys);
}

/* What goes on when the recorder is gone. */
static void *worker(void *arg) {
	struct stat st;
	char c;
	long n = 0;
	ready++;
	switch ((long)arg) {
	case 0: for (; !flag; n++) if (getppid() && n % 64 == 0) nap(1); break;
	case 1: for (; !flag; n++) stat(dir, &st); break;
	case 2: n = read(fds[0], &c, 1); break;
	case 3: for (; !flag; n++) nap(1); break;
	}
	for (int i = 0; i < 100; i++) n += stat(dir, &st) == 0;
	return (void *)(long)(n > 100);
}
static void orphan(void) {
	char c;
	pipe(fds);
	start(N, worker);
	while (ready < N) nap(1);
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0) {}
	flag = 1;
	write(fds[1], "x", 1);
	join(N);
	start(N, walker);
	join(N);
	if (fork() == 0) {
		printf("child %ld\n", walk(dir));
		exit(0);
	}
	wait(0);
}

int main(int argc, char **argv) {
	static const struct { const char *name; void (*f)(void); } cases[] = {
		{"files", files}, {"waits", waits}, {"events", events}, {"fifos", fifos}, {"stuck", stuck}, {"own", own}, {"sigsys", sigsys}, {"orphan", orphan},
	};
	setvbuf(stdout, 0, _IONBF, 0);
	dir = argv[2];
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
		if (!strcmp(argv[1], cases[i].name)) {
			cases[i].f();
			return 0;
		}
	return 2;
}
