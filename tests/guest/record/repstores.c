// Memory that is new is filled by REP STOS, again and again: where the processor stores more than one operand at once, it may be
// stopped with more in memory than its registers say (repstores MILLISECONDS).
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { SIZE = 1 << 20 };

static void fill(unsigned char *p, unsigned long n, int how) {
	unsigned long value = 0x5a5b5c5d5e5f6061 ^ (how & 15);
	switch (how % 3) {
	case 0: asm volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(value) : "memory"); break;
	case 1: n /= 4; asm volatile("rep stosl" : "+D"(p), "+c"(n) : "a"(value) : "memory"); break;
	case 2: n /= 8; asm volatile("rep stosq" : "+D"(p), "+c"(n) : "a"(value) : "memory"); break;
	}
}

int main(int argc, char **argv) {
	long ms = argc > 1 ? atol(argv[1]) : 300;
	struct timespec begin, now;
	unsigned char *p = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || madvise(p, SIZE, MADV_NOHUGEPAGE)) return 1;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0;; i++) {
		if (madvise(p, SIZE, MADV_DONTNEED)) return 1;
		fill(p + i * 7 % 64, SIZE - 64, i);
		if (p[SIZE / 2] == 0) return 1;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 >= ms) break;
	}
	puts("end");
	return 0;
}
