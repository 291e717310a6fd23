// MADV_FREE, whose pages may vanish at any time, and MADV_DONTNEED on anonymous,
// private file and written file pages.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
	unsigned char *a = mmap(0, 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned long sum = 0;
	for (int i = 0; i < 30; i++) {
		memset(a, i + 1, 1 << 20);
		if (madvise(a + 8192, 1 << 18, i & 1 ? MADV_FREE : MADV_DONTNEED)) return 2;
		a[8192 + 4096 * 3] = 5; // writing keeps a page
		for (int k = 0; k < 1 << 20; k += 512) {
			// A freed page is old content or zero; only its sum in the replay matters.
			sum += a[k] * (k / 512 + 1ul);
		}
		madvise(a, 1 << 20, MADV_DONTNEED);
	}
	char name[] = "/tmp/vplay-adviseXXXXXX", page[4096];
	int fd = mkstemp(name);
	unlink(name);
	memset(page, 'f', sizeof page);
	for (int i = 0; i < 8; i++) write(fd, page, sizeof page);
	char *p = mmap(0, 8 * 4096, 3, MAP_PRIVATE, fd, 0);
	p[0] = 'w';
	printf("%c%c", p[0], p[4096]);
	memset(page, 'g', sizeof page);
	pwrite(fd, page, sizeof page, 0);
	printf("%c", p[0]);
	madvise(p, 8 * 4096, MADV_DONTNEED);
	printf("%c%c\n", p[0], p[4096]); // the file as it is now
	madvise(p, 8 * 4096, MADV_WILLNEED);
	madvise(p, 8 * 4096, MADV_POPULATE_READ);
	printf("%d\n", sum > 0);
	return 0;
}
