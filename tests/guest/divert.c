// Functions for a debugger to call, in a program that calls none of most of them.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct pair {
	long a, b;
};

int counter;
int calls;
char cold[1 << 20] = {1, [1 ... (1 << 20) - 1] = 2}; // its later pages are never used, and not zero, which costs nothing to keep
_Thread_local int per_thread = 41;
_Thread_local char zeroed[100];

int twice(int x) {
	calls++; // TWICE
	return 2 * x;
}

double half(double x) { return x / 2; }

struct pair swapped(long a, long b) {
	struct pair p = {b, a};
	return p;
}

int nested(int x) {
	return x + twice(1); // INNER
}

int touch(int i) { return cold[i]; } // TOUCH

int poke(int *p) { return *p = 1; }

int forever(void) {
	for (;;)
		counter++;
}

int quit(void) { exit(3); }

int hurt(void) { abort(); }

long memory(void) { // what allocators ask the kernel for
	char *p = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || p[5])
		return -1;
	p[5] = 7;
	p = mremap(p, 1 << 20, 1 << 22, MREMAP_MAYMOVE);
	if (p == MAP_FAILED || p[5] != 7 || p[(1 << 22) - 1])
		return -2;
	if (madvise(p, 4096, MADV_DONTNEED) || p[5])
		return -3;
	if (mprotect(p, 4096, PROT_READ) || munmap(p, 1 << 22))
		return -4;
	char *big[64];
	for (int i = 0; i < 64; i++)
		memset(big[i] = malloc(100000), i, 100000);
	long sum = 0;
	for (int i = 0; i < 64; i++) {
		sum += big[i][99999];
		free(big[i]);
	}
	return sum;
}

int say(const char *s) {
	printf("it says %s, %s, %.2f\n", s, getpid() > 1 ? "well" : "ill", 2.5);
	return fflush(stdout);
}

int refused(void) { return rename("/nowhere/a", "/nowhere/b"); }

int walk(const char *s, int i) {
	per_thread += i;
	counter += i; // STEP
	return counter;
}

int main(int argc, char **argv) {
	const char *words[] = {"a", "bb", "cccc", "ddddd", "ee"};
	zeroed[7] = 'z';
	for (int i = 0; i < 5; i++)
		walk(words[i], i); // CALL
	volatile double *d = malloc(sizeof *d);
	*d = half(3.0);
	struct pair p = swapped(1, 2);
	int n = nested(argc) + (int)p.a + (int)*d;
	if (n < 0) // keeps what is never called
		return touch(n) + poke(&n) + forever() + quit() + hurt() + (int)memory() + say("") + refused();
	return counter + 3 - n; // EXIT
}
