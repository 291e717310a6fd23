// mremap: grow, shrink, move, move onto another mapping, leave the old behind.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned long sum(unsigned char *p, int n) {
	unsigned long s = 1;
	for (int i = 0; i < n; i++) s = s * 31 + p[i];
	return s;
}

int main(void) {
	int n = 16 * 4096;
	for (int round = 0; round < 20; round++) {
		unsigned char *a = mmap(0, n, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (int i = 0; i < n; i++) a[i] = i * 7 + round;
		unsigned char *b = mremap(a, n, 4 * n, MREMAP_MAYMOVE);
		b[4 * n - 1] = 9;
		printf("%lx ", sum(b, 4 * n));
		b = mremap(b, 4 * n, n / 2, 0);
		printf("%lx ", sum(b, n / 2));
		unsigned char *to = mmap(0, 2 * n, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(to, 5, 2 * n);
		unsigned char *c = mremap(b, n / 2, n / 2, MREMAP_MAYMOVE | MREMAP_FIXED, to + 4096);
		printf("%d %lx ", c == to + 4096, sum(to, 2 * n));
		unsigned char *d = mremap(c, 4096, 4096, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
		if (d != MAP_FAILED) printf("%lx %lx", sum(d, 4096), sum(c, 4096));
		puts("");
		munmap(to, 2 * n);
		if (d != MAP_FAILED) munmap(d, 4096);
	}
	return 0;
}
