// Quicksort with insertion sort for short runs: compares, swaps, branches
// that no predictor knows.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1 << 16 };
static uint32_t a[N];

static void sort(uint32_t *lo, uint32_t *hi) {
	while (hi - lo > 16) {
		uint32_t p = lo[(hi - lo) / 2], *i = lo, *j = hi - 1;
		for (;;) {
			while (*i < p) i++;
			while (*j > p) j--;
			if (i >= j) break;
			uint32_t t = *i;
			*i++ = *j;
			*j-- = t;
		}
		if (i - lo < hi - i) {
			sort(lo, i);
			lo = i;
		} else {
			sort(i, hi);
			hi = i;
		}
	}
	for (uint32_t *i = lo + 1; i < hi; i++) {
		uint32_t v = *i, *j = i;
		for (; j > lo && j[-1] > v; j--) *j = j[-1];
		*j = v;
	}
}

int main(int argc, char **argv) {
	long n = argc > 1 ? atol(argv[1]) : 1;
	uint32_t x = 12345, s = 0;
	for (long r = 0; r < n; r++) {
		for (int i = 0; i < N; i++) a[i] = x = x * 1664525 + 1013904223;
		sort(a, a + N);
		s ^= a[N / 3];
	}
	printf("%u\n", s);
}
