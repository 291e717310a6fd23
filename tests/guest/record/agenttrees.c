/* Trees of processes whose frequent calls the recorder's agent makes, each one thing that it must get
 * right. Arguments: the case, and a folder that may be written to. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *self, *dir;
static void note(const char *what, long v) { printf("%s %ld\n", what, v); }

/* Frequent calls, and what they give. */
static long work(int n)
{
	char buf[64];
	struct stat st;
	long sum = 0;
	int fd = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
	for (int i = 0; i < n; i++) {
		memset(buf, 1, sizeof buf);
		sum += read(fd, buf, 32) + buf[0] + buf[40];
		sum += write(null, buf, 10);
		sum += stat("/", &st) == 0;
		sum += access("/nowhere", 0);
	}
	close(fd);
	close(null);
	return sum;
}

static int status_of(int pid)
{
	int status = -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* SIGSYS has the program's own action in every process. */
static void own_sigsys(void)
{
	struct sigaction sa;
	sigaction(SIGSYS, 0, &sa);
	if (sa.sa_handler != SIG_DFL || sa.sa_flags)
		puts("SIGSYS has another action");
}

/* A wait that a signal ends which the program ignores. */
static void restarts(void)
{
	struct itimerval it = { { 0, 3000 }, { 0, 3000 } };
	struct itimerspec in = { { 0, 0 }, { 0, 20000000 } };
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	uint64_t n;
	signal(SIGALRM, SIG_IGN);
	setitimer(ITIMER_REAL, &it, 0);
	for (int i = 0; i < 10; i++) {
		timerfd_settime(fd, 0, &in, 0);
		note("read", read(fd, &n, sizeof n));
		note("work", work(3));
	}
}

static void forks(void)
{
	note("work", work(100));
	int pid[4];
	for (int i = 0; i < 4; i++) {
		if ((pid[i] = fork()) == 0) {
			own_sigsys();
			_exit((work(100 + 20 * i) & 63) + i);
		}
		note("work", work(50));
	}
	for (int i = 0; i < 4; i++)
		note("child", status_of(pid[i]));
	own_sigsys();
	note("work", work(50));
}

/* Each process makes the next. */
static void chain(void)
{
	for (int depth = 0; depth < 5; depth++) {
		note("work", work(60));
		int pid = fork();
		if (pid) {
			note("child", status_of(pid));
			note("work", work(10));
			_exit(depth + 1);
		}
	}
	note("work", work(60));
}

static int spawned(char *const *v)
{
	extern char **environ;
	pid_t pid;
	return posix_spawn(&pid, v[0], 0, 0, v, environ) ? -1 : pid;
}

static void execs(void)
{
	char *v[] = { (char *)self, "work", (char *)dir, 0 };
	for (int i = 0; i < 6; i++) {
		note("work", work(20));
		int pid = i % 3 == 0 ? fork() : i % 3 == 1 ? vfork() : spawned(v);
		if (pid == 0) {
			execv(v[0], v);
			_exit(99);
		}
		note("child", status_of(pid));
	}
	int pid = vfork(); /* which fails, and goes on in its parent's memory */
	if (pid == 0) {
		execl("/nowhere", "x", (char *)0);
		_exit(access("/", 0) == 0 ? 5 : 6);
	}
	note("child", status_of(pid));
	note("work", work(20));
	own_sigsys();
	execv(v[0], v);
}

static void *worker(void *n) { return (void *)work((int)(long)n); }

/* Threads, some of which make processes while others make calls. */
static void *forker(void *n)
{
	char *v[] = { (char *)self, "work", (char *)dir, 0 };
	int pid = (long)n % 2 ? spawned(v) : fork();
	if (pid == 0) {
		own_sigsys();
		_exit(work(60) & 63);
	}
	return (void *)(long)status_of(pid);
}

static void threads(void)
{
	pthread_t t[8];
	void *r;
	note("work", work(30));
	for (long i = 0; i < 8; i++)
		pthread_create(&t[i], 0, i % 2 ? worker : forker, (void *)(i % 2 ? 100 + i : i / 2));
	for (int i = 0; i < 8; i++) {
		pthread_join(t[i], &r);
		note("thread", (long)r);
	}
}

/* Bytes between processes. */
static void pipes(void)
{
	int to[2], from[2];
	char b[100];
	long sum = 0;
	pipe(to);
	pipe(from);
	int pid = fork();
	if (pid == 0) {
		close(to[1]);
		for (long n; (n = read(to[0], b, sizeof b)) > 0;)
			write(from[1], b, n);
		_exit(7);
	}
	close(to[0]);
	close(from[1]);
	for (int i = 0; i < 300; i++) {
		memset(b, i, sizeof b);
		write(to[1], b, 1 + i % 90);
		for (long n = 1 + i % 90; n > 0;) {
			long k = read(from[0], b, sizeof b);
			n -= k;
			sum += k * b[0];
		}
	}
	close(to[1]);
	note("sum", sum);
	note("child", status_of(pid));
}

/* One process writes to a file that another has mapped, before, while and after it has. */
static void mapped(void)
{
	char name[4096], b[64];
	int go[2], done[2];
	snprintf(name, sizeof name, "%s/mapped", dir);
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	pipe(go);
	pipe(done);
	memset(b, 'a', sizeof b);
	for (int i = 0; i < 128; i++)
		write(fd, b, sizeof b);
	int pid = fork();
	if (pid == 0) {
		long sum = 0;
		close(go[1]);
		work(40);
		read(go[0], b, 1);
		volatile char *m = mmap(0, 8192, PROT_READ, MAP_SHARED, fd, 0);
		write(done[1], b, 1);
		while (read(go[0], b, 1) == 1) {
			for (int i = 0; i < 8192; i++)
				sum = sum * 31 + m[i];
			write(done[1], b, 1);
		}
		munmap((void *)m, 8192);
		printf("sum %ld\n", sum);
		fflush(stdout);
		_exit(3);
	}
	close(go[0]);
	close(done[1]);
	work(40);
	for (int k = 0; k < 20; k++) {
		write(go[1], b, 1);
		read(done[0], b, 1);
		memset(b, 'b' + k, sizeof b);
		for (int i = 0; i < 10; i++)
			pwrite(fd, b, sizeof b, 100 * i * k % 8000);
	}
	close(go[1]);
	note("child", status_of(pid));
	unlink(name);
}

/* started forks a child that runs f, and returns when that has written to its descriptor. */
static int started(void (*f)(int i, int ready), int i)
{
	int ready[2];
	char b;
	pipe(ready);
	int pid = fork();
	if (pid == 0)
		f(i, ready[1]);
	read(ready[0], &b, 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void makes_calls(int i, int ready)
{
	work(50);
	write(ready, "r", 1);
	for (;;) {
		if (i % 3 != 1)
			getpriority(PRIO_PROCESS, 0);
		if (i % 3 != 0)
			getppid();
	}
}

/* Children that are killed while they make calls that the agent makes, and others. */
static void killed(void)
{
	for (int i = 0; i < 12; i++) {
		int pid = started(makes_calls, i);
		usleep(1000 * (i % 5));
		kill(pid, i % 2 ? SIGKILL : SIGTERM);
		note("child", status_of(pid));
	}
}

static void makes_left_calls(int i, int ready)
{
	(void)i;
	write(ready, "r", 1);
	for (;;)
		getpriority(PRIO_PROCESS, 0);
}

/* Children that are killed again and again where they make calls that the agent leaves to the recorder. */
static void dispatched(void)
{
	for (int i = 0; i < 60; i++) {
		int pid = started(makes_left_calls, i);
		for (volatile int k = 0; k < 20000 * (i % 10); k++);
		kill(pid, SIGKILL);
		note("child", status_of(pid));
	}
}

/* One process crashes while others make calls, and wait. */
static void crashes(void)
{
	char b;
	int ready[2];
	pipe(ready);
	for (int i = 0; i < 3; i++) {
		if (fork() == 0) {
			close(ready[0]);
			work(50);
			write(ready[1], "r", 1);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;) {
				if (i == 0)
					getppid();
				else if (i == 1)
					getpriority(PRIO_PROCESS, 0);
				else
					pause();
			}
		}
	}
	for (int i = 0; i < 3; i++)
		read(ready[0], &b, 1);
	work(20);
	signal(SIGTERM, SIG_IGN);
	*(volatile int *)16 = 1;
}

int main(int c, char **v)
{
	static const struct { const char *name; void (*f)(void); } cases[] = {
		{ "restarts", restarts }, { "forks", forks }, { "chain", chain }, { "execs", execs }, { "threads", threads },
		{ "pipes", pipes }, { "mapped", mapped }, { "killed", killed }, { "dispatched", dispatched }, { "crashes", crashes },
	};
	setvbuf(stdout, 0, _IONBF, 0);
	self = v[0];
	dir = v[2];
	if (c > 1 && !strcmp(v[1], "work")) {
		note("work", work(60));
		own_sigsys();
		return 0;
	}
	for (unsigned i = 0; c > 2 && i < sizeof cases / sizeof cases[0]; i++)
		if (!strcmp(v[1], cases[i].name))
			cases[i].f();
	return 0;
}
