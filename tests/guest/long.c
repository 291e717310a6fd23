// About 10^9 instructions: heap blocks that come and go, calls, a function
// that is called 10^7 times, a variable on a page of its own that is written
// once early on, one on a page that is written at every turn, and a function
// that is never called though its neighbours are. It crashes at the end.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef TURNS
#define TURNS 10000000
#endif

enum { BLOCKS = 1 << 12 };

_Alignas(4096) volatile long once[512];
_Alignas(4096) volatile struct {
	long busy, early;
	char rest[4096 - 2 * sizeof(long)];
} page;
static char *block[BLOCKS];

__attribute__((noinline)) long hot(long turn, long v) {
	return (v ^ turn) * 3;
}

__attribute__((noinline)) long never(long v) {
	page.busy += v;
	return v + 1;
}

static uint32_t state = 1;

static uint32_t next(void) {
	return state = state * 1664525 + 1013904223;
}

__attribute__((noinline)) static long churn(void) {
	uint32_t r = next();
	char **p = &block[r >> 20 & (BLOCKS - 1)];
	free(*p);
	*p = malloc(16 + (r & 511));
	memset(*p, (int)r, 16);
	return (*p)[3];
}

int main(int argc, char **argv) {
	(void)argv;
	long sum = 0;
	for (long turn = 0; turn < TURNS; turn++) {
		if (turn == TURNS / 50) {
			once[0] = 1;
			page.early = 1;
		}
		sum += hot(turn, sum);
		page.busy += sum & 1;
		if (turn % 4 == 0) sum += churn();
		for (int k = 0; k < 3; k++) sum = sum * 31 + (sum >> 7) + (long)block[turn + k & (BLOCKS - 1)];
	}
	if (argc > 1000) sum += never(sum);
	printf("%ld\n", sum + once[0]);
	fflush(stdout);
	return *(volatile int *)0;
}
