// Writes to 32 MiB, some of them twice with a call in between, and ends by the signal that the
// argument says while another one, which it has a handler for, is pending: "fault" by SIGSEGV,
// "abort" by SIGABRT, "wait" by SIGTERM in sigsuspend, which blocks it outside. With "child" a child
// does what "fault" does, and its end is printed. With more arguments it is, before that, "threads" one of
// three, "filter" under a seccomp filter, "limit" at the limit of processes,
// "attached" waiting for a line. With "late" and one of these it does that last, and then what "fault" does.
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 8192 };

static void handler(int sig)
{
	(void)sig;
	if (write(1, "handler\n", 8) != 8)
		_exit(1);
}

static void *waits(void *how)
{
	(void)how;
	for (;;)
		pause();
	return 0;
}

static int prepare(const char *how)
{
	struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog filter = {1, allow};
	struct rlimit none = {1, 1};
	pthread_t thread;

	if (!strcmp(how, "filter"))
		return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
	if (!strcmp(how, "limit"))
		return setrlimit(RLIMIT_NPROC, &none) || (getuid() == 0 && setresuid(65534, 65534, 65534));
	if (!strcmp(how, "threads"))
		return pthread_create(&thread, 0, waits, 0) || pthread_create(&thread, 0, waits, 0);
	if (!strcmp(how, "attached")) {
		puts("ready");
		fflush(stdout);
		return getchar() == EOF;
	}
	return 1;
}

int main(int argc, char **argv)
{
	char *p = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigset_t set, none;
	int status;

	if (argc < 2 || (argc > 2 && strcmp(argv[1], "late") && prepare(argv[2])))
		return 1;
	if (!strcmp(argv[1], "child")) {
		pid_t child = fork();
		if (child != 0) {
			pid_t got = wait(&status);
			printf("%d, killed by %d\n", got == child, WTERMSIG(status));
			return 0;
		}
	}
	signal(SIGHUP, handler);
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &none);
	raise(SIGHUP);
	for (int i = 0; i < PAGES; i++)
		p[i * PAGE + i % 3] = i / 40;
	printf("%d\n", getppid() > 0);
	fflush(stdout);
	for (int i = 0; i < PAGES / 2; i += 7)
		p[i * PAGE + 8]++;
	munmap(p + 100 * PAGE, 50 * PAGE);
	if (!strcmp(argv[1], "late") && prepare(argv[2]))
		return 1;
	if (!strcmp(argv[1], "abort"))
		abort();
	if (!strcmp(argv[1], "wait")) {
		sigdelset(&set, SIGTERM);
		raise(SIGTERM);
		sigsuspend(&set);
	}
	return *(volatile int *)0;
}
