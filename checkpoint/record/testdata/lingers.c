// A program that computes, starts a second thread, says so, and stays for long.
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static void *f(void *x) { return x; }
int main(void) {
	pthread_t t;
	struct timespec ts;
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	while (ts.tv_sec == 0 && ts.tv_nsec < 100000000);
	pthread_create(&t, 0, f, 0);
	printf("two threads\n");
	fflush(stdout);
	alarm(30);
	pause();
}
