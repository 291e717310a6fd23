// Calls whose ends are hard to find: recursion over the ends of intervals, tail calls,
// longjmp over frames, threads, and a signal handler amid it all.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static jmp_buf out;
static volatile long work;

__attribute__((noinline)) long leaf(long n) { // LEAF
	for (long i = 0; i < 50; i++) work += i;
	return n * 3;
}

__attribute__((noinline)) long tail(long n) {
	return leaf(n + 1);
}

__attribute__((noinline)) long deep(long n) { // DEEP
	if (n == 0) return 1;
	for (long i = 0; i < 1000; i++) work += i;
	long r = deep(n - 1);
	__asm__ volatile("" : "+r"(r)); // no loop is made of it
	return r + 1;
}

__attribute__((noinline)) long jumps(long n) { // JUMPS
	if (n == 0) longjmp(out, 1);
	long r = jumps(n - 1);
	__asm__ volatile("" : "+r"(r));
	return r + 1;
}

void on_signal(int s) {
	(void)s;
	leaf(1000);
}

void *thread(void *arg) {
	long sum = 0;
	for (long i = 0; i < 200; i++) {
		sum += tail(i);
		if (i % 50 == 0) sched_yield();
	}
	return (void *)sum;
}

int main(void) {
	signal(SIGUSR1, on_signal);
	pthread_t a, b;
	pthread_create(&a, 0, thread, 0);
	pthread_create(&b, 0, thread, 0);
	long sum = 0;
	for (long i = 0; i < 5; i++) {
		sum += deep(2000);
		raise(SIGUSR1);
		if (setjmp(out) == 0) sum += jumps(100);
		sum += tail(i);
	}
	void *x, *y;
	pthread_join(a, &x);
	pthread_join(b, &y);
	printf("%ld %ld %ld\n", sum, (long)x, (long)y);
	return 0;
}
