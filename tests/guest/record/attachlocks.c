// Eight threads take locks and count, allocate, and read the time and the time stamp counter, while
// recorders attach and go again, until line "go" comes on standard input:
//   attachlocks [churn | clock]
// With churn one thread more makes threads that end at once; with clock the time stamp counter is
// left alone. What is printed is the same however long it took, unless a count is lost, time goes
// back, or a setting is not what it was.

#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { threads = 8, locks = 4 };

static pthread_mutex_t lock[locks];
static long counted[locks], done[threads], backwards, wrongCPU;
static atomic_int stop;
static int noTSC;
static pthread_barrier_t started;

static struct rseq *rseqOf(void) { return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset); }

static void *counts(void *arg) {
	long id = (long)arg;
	unsigned x = id * 7 + 1;
	struct timespec last = {0}, now;
	unsigned long tsc = noTSC ? 1 : __rdtsc();
	free(malloc(100));
	pthread_barrier_wait(&started);
	do { // once at least: it may be told to stop before it has begun
		x = x * 1103515245 + 12345;
		int i = x >> 16 & (locks - 1);
		pthread_mutex_lock(&lock[i]);
		counted[i]++;
		for (volatile int k = 0; k < 200; k++)
			;
		pthread_mutex_unlock(&lock[i]);
		done[id]++;
		free(memset(malloc((x >> 20 & 1023) + 1), 1, 1));
		if (done[id] % 64)
			continue;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec < last.tv_sec || now.tv_sec == last.tv_sec && now.tv_nsec < last.tv_nsec)
			backwards++;
		last = now;
		if (!noTSC)
			tsc ^= __rdtsc();
		if (sched_getcpu() < 0)
			wrongCPU++;
	} while (!stop);
	int isOn = __rseq_size > 0 && (int)rseqOf()->cpu_id >= 0;
	return (void *)(long)(tsc != 0 && (isOn || __rseq_size == 0));
}

static void *nothing(void *arg) { return arg; }

static void *churns(void *arg) {
	while (!stop) {
		pthread_t t;
		void *r;
		pthread_create(&t, NULL, nothing, arg);
		pthread_join(t, &r);
		if (r != arg)
			abort();
	}
	return NULL;
}

int main(int argc, char **argv) {
	pthread_t t[threads], churn;
	cpu_set_t before, after;
	int churning = argc > 1 && !strcmp(argv[1], "churn");
	noTSC = argc > 1 && !churning;
	mallopt(M_ARENA_MAX, 1); // what is mapped stays the same
	mallopt(M_TOP_PAD, 16 << 20);
	mallopt(M_TRIM_THRESHOLD, 64 << 20);
	sched_getaffinity(0, sizeof before, &before);
	for (int i = 0; i < locks; i++)
		pthread_mutex_init(&lock[i], NULL);
	pthread_barrier_init(&started, NULL, threads + 1);
	for (long i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, counts, (void *)i);
	if (churning)
		pthread_create(&churn, NULL, churns, "x");
	pthread_barrier_wait(&started);
	printf("ready\n");
	fflush(stdout);
	char line[16];
	errno = 0;
	if (!fgets(line, sizeof line, stdin))
		printf("no line: %s, end %d\n", strerror(errno), feof(stdin));
	stop = 1;
	long sum = 0, all = 0, whole = 0;
	for (int i = 0; i < threads; i++) {
		void *r;
		pthread_join(t[i], &r);
		whole += (long)r;
		sum += done[i];
	}
	if (churning)
		pthread_join(churn, NULL);
	for (int i = 0; i < locks; i++)
		all += counted[i];
	sched_getaffinity(0, sizeof after, &after);
	int tsc = 0;
	prctl(PR_GET_TSC, &tsc);
	printf("counts %s, %ld times back, %ld wrong CPUs, %ld of %d threads whole\n", sum == all && sum > 0 ? "agree" : "differ", backwards, wrongCPU, whole, threads);
	printf("affinity %s, RDTSC %s\n", CPU_EQUAL(&before, &after) ? "same" : "changed", tsc == PR_TSC_ENABLE ? "runs" : "faults");
	return 5;
}
