/* Processes that are killed at any moment of their execve: before it, when the old memory is
 * gone and the new program has not begun, in the dynamic linker, and behind it. Some come
 * from vfork and share their parent's memory until then; in some a second thread executes the
 * program, which ends the first. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void rest(long us)
{
	struct timespec ts = {0, us * 1000};
	nanosleep(&ts, 0);
}

/* killer kills what it is told of by way of the shared word, some microseconds later. */
static void killer(volatile pid_t *who)
{
	unsigned seed = 7;
	for (;;) {
		pid_t p = *who;
		if (p < 0)
			_exit(0);
		if (p == 0) {
			rest(50);
			continue;
		}
		seed = seed * 1103515245 + 12345;
		rest((seed >> 8) % 4000);
		static const int with[] = {SIGKILL, SIGKILL, SIGKILL, SIGTERM, SIGABRT};
		kill(p, with[(seed >> 20) % 5]);
		*who = 0;
	}
}

static void *execute(void *arg)
{
	(void)arg;
	execl("/proc/self/exe", "execkilled", "child", (char *)0);
	_exit(1);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "child"))
		for (;;)
			pause();
	volatile pid_t *who = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t k = fork();
	if (k == 0)
		killer(who);
	int killed = 0;
	for (int i = 0; i < 120; i++) {
		pid_t c = i % 3 == 0 ? vfork() : fork();
		if (c == 0) {
			*who = getpid();
			pthread_t t;
			if (i % 3 == 1 && pthread_create(&t, 0, execute, 0) == 0)
				pause();
			execute(0);
		}
		int status = 0;
		waitpid(c, &status, 0);
		killed += WIFSIGNALED(status);
		while (*who)
			rest(50);
	}
	*who = -1;
	waitpid(k, 0, 0);
	printf("%d killed\n", killed);
	return 0;
}
