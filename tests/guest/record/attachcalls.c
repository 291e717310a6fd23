// A thread makes calls all the time that are not among those that recording expects often, while recorders attach
// and go again, until line "go" comes on standard input.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_barrier_t started;
static volatile int stop;

static void *calls(void *arg) {
	long bad = 0;
	pthread_barrier_wait(&started);
	do
		bad += syscall(SYS_sched_get_priority_max, 0) != 0; // 0 is SCHED_OTHER
	while (!stop);
	return (void *)bad;
}

int main(void) {
	pthread_t t;
	void *bad;
	char line[16];
	pthread_barrier_init(&started, NULL, 2);
	pthread_create(&t, NULL, calls, NULL);
	pthread_barrier_wait(&started);
	printf("ready\n");
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin))
		printf("no line\n");
	stop = 1;
	pthread_join(t, &bad);
	printf("%ld calls failed\n", (long)bad);
	return 5;
}
