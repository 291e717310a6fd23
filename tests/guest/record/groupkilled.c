/* Whole groups of processes that are killed at any moment: while one makes the next, while they
 * share memory, while they are stopped by job control, and while they run. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int *word; // shared by all

static void rest(long us)
{
	struct timespec ts = {0, us * 1000};
	nanosleep(&ts, 0);
}

static void compute(int n)
{
	for (int i = 0; i < n * 200; i++) {
		for (int k = 0; k < 5; k++)
			__builtin_ia32_pause(); // takes long, for one instruction
		word[1]++;
	}
}

/* Each member does something else for ever. */
static void forks(void)
{
	for (;;) {
		pid_t p = fork();
		if (p == 0) {
			compute(1);
			_exit(0);
		}
		waitpid(p, 0, 0);
	}
}

static void vforks(void)
{
	for (;;) {
		pid_t p = vfork();
		if (p == 0)
			_exit(0);
		waitpid(p, 0, 0);
	}
}

static void *thread(void *arg)
{
	compute(1);
	return arg;
}

static void threads(void)
{
	for (;;) {
		pthread_t t[2];
		for (int i = 0; i < 2; i++)
			if (pthread_create(&t[i], 0, thread, 0))
				_exit(1);
		for (int i = 0; i < 2; i++)
			pthread_join(t[i], 0);
	}
}

static void stops(void)
{
	for (;;) {
		pid_t p = fork();
		if (p == 0)
			for (;;)
				compute(1);
		rest(300);
		kill(p, SIGSTOP);
		waitpid(p, 0, WUNTRACED);
		rest(300);
		kill(p, SIGKILL);
		waitpid(p, 0, 0);
	}
}

static void (*const members[])(void) = {forks, vforks, threads, stops};

int main(void)
{
	unsigned seed = 7;
	int killed = 0;
	word = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 40; i++) {
		pid_t leader = fork();
		if (leader == 0) {
			setpgid(0, 0);
			if (i % 5 == 4) // all at once
				for (int k = 0; k < 3; k++)
					if (fork() == 0)
						members[k]();
			members[i % 4]();
		}
		setpgid(leader, leader);
		seed = seed * 1103515245 + 12345;
		rest(500 + (seed >> 8) % 12000);
		kill(-leader, SIGKILL);
		int status = 0;
		waitpid(leader, &status, 0);
		killed += WIFSIGNALED(status);
	}
	printf("%d killed\n", killed);
	return 0;
}
