// A second thread, which reads the time-stamp counter.
#include <pthread.h>
#include <stdio.h>
#include <x86intrin.h>
static void *f(void *x) { return (void *)((long)x + (__rdtsc() != 0)); }
int main(void) {
	pthread_t t;
	void *r;
	printf("before\n");
	fflush(stdout);
	pthread_create(&t, 0, f, (void *)5);
	pthread_join(t, &r);
	printf("thread %ld\n", (long)r);
	return 9;
}
