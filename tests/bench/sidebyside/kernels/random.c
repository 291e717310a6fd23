// Loads and stores all over 8 MiB.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1 << 20 };
static uint64_t a[N];

int main(int argc, char **argv) {
	long n = argc > 1 ? atol(argv[1]) : 1;
	uint64_t x = 88172645463325252u;
	for (long i = 0; i < n * N; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		a[x % N] += x;
	}
	printf("%lu\n", a[5] + x);
}
