/* ROUNDS MICROSECONDS: reads clocks all the time, in two threads and in a handler that a timer calls each MICROSECONDS, into
 * memory of all kinds: what is read by one way is never before what was read by another. Into data of the file the agent has
 * the kernel write, onto the stack and the heap the vDSO. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const clockid_t ids[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME};
static struct timespec in_file = {1, 1};
static pthread_mutex_t of_file = PTHREAD_MUTEX_INITIALIZER;
static volatile int back, ticks;

static long long ns(const struct timespec *t) { return t->tv_sec * 1000000000ll + t->tv_nsec; }

static void not_before(long long a, long long b)
{
	if (b < a)
		__sync_fetch_and_add(&back, 1);
}

static void on_tick(int sig)
{
	struct timespec a, b;
	(void)sig;
	clock_gettime(CLOCK_MONOTONIC, &a);
	clock_gettime(CLOCK_MONOTONIC, &b);
	not_before(ns(&a), ns(&b));
	ticks++;
}

static void *reads(void *arg)
{
	int rounds = *(int *)arg;
	struct timespec *heap = malloc(sizeof *heap), stack;
	struct timeval tv;

	for (int i = 0; i < rounds; i++) {
		clockid_t id = ids[i % 6];
		pthread_mutex_lock(&of_file);
		clock_gettime(id, &in_file);
		long long first = ns(&in_file);
		clock_gettime(id, &stack);
		not_before(first, ns(&stack));
		clock_gettime(id, heap);
		not_before(ns(&stack), ns(heap));
		clock_gettime(id, &in_file);
		not_before(ns(heap), ns(&in_file));
		pthread_mutex_unlock(&of_file);
		clock_gettime(CLOCK_REALTIME, &stack);
		gettimeofday(&tv, 0);
		not_before(ns(&stack) / 1000, tv.tv_sec * 1000000ll + tv.tv_usec);
	}
	free(heap);
	return 0;
}

/* reads_most is nearly always in the vDSO. */
static void reads_most(int rounds)
{
	struct timespec t;
	long long last = 0;

	for (int i = 0; i < rounds; i++) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		not_before(last, ns(&t));
		last = ns(&t);
	}
}

static void errors(void)
{
	struct timespec t;
	int bad = clock_gettime(99, &t) != -1 || errno != EINVAL;
	bad |= clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0;
	bad |= clock_gettime(-1, &t) != -1;
	printf("errors %s\n", bad ? "wrong" : "right");
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	int rounds = atoi(argv[1]), us = atoi(argv[2]);
	struct itimerval every = {{0, us}, {0, us}}, never = {{0, 0}, {0, 0}};
	pthread_t other;

	signal(SIGALRM, on_tick);
	errors();
	reads(&rounds);
	reads_most(20 * rounds);
	setitimer(ITIMER_REAL, &every, 0);
	pthread_create(&other, 0, reads, &rounds);
	reads(&rounds);
	pthread_join(other, 0);
	setitimer(ITIMER_REAL, &never, 0);
	fflush(stdout);
	if (fork() == 0) {
		reads(&rounds);
		_exit(back);
	}
	int status;
	wait(&status);
	errors();
	printf("%d times back, the child %d\n", back, WEXITSTATUS(status));
	return 0;
}
