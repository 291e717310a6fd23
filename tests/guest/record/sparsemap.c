// Maps 100 GiB of a file in memory, shared, of which a few pages have data, and uses some
// of these and some of the holes between; then again, after a page has changed. With an
// argument it has so many MiB of data in the middle, and crashes.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define GIB (1L << 30)

static const long data[] = {5000, 3 * GIB, 70 * GIB + 100, 99 * GIB + 4096};
static const long holes[] = {GIB, 3 * GIB + 8192, 80 * GIB, 100 * GIB - 1};

int main(int argc, char **argv)
{
	int fd = memfd_create("sparse", 0);
	long sum = 0;

	if (ftruncate(fd, 100 * GIB))
		return 1;
	for (int i = 0; i < 4; i++)
		pwrite(fd, "data", 4, data[i]);
	if (argc > 1) {
		char *block = malloc(1 << 20);
		for (int i = 0; i < 1 << 20; i++)
			block[i] = i / 4096 + 1;
		for (long i = 0; i < atol(argv[1]); i++)
			pwrite(fd, block, 1 << 20, 50 * GIB + (i << 20));
	}
	for (int turn = 0; turn < 3; turn++) {
		char *p = mmap(0, 100 * GIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
		if (p == MAP_FAILED)
			return 1;
		for (int i = 0; i < 4; i++)
			sum = sum * 31 + p[data[i] + turn] + p[holes[i]];
		for (int i = turn; i < 4; i++) {
			p[data[i] + 1] += 3;
			p[holes[i]] += 5;
			p[holes[i] - 40960] += 7;
		}
		getppid();
		for (int i = 0; i < 4; i++)
			sum = sum * 31 + p[data[i] + 1] + p[holes[i]] + p[holes[i] - 40960];
		if (argc > 1) {
			printf("%ld\n", sum + p[50 * GIB + 70 * 4096]);
			fflush(stdout);
			return *(volatile int *)0;
		}
		if (munmap(p, 100 * GIB))
			return 1;
		if (turn == 1 && fallocate(fd, 3 /* FALLOC_FL_PUNCH_HOLE, KEEP_SIZE */, 3 * GIB, 8192))
			return 1;
		pwrite(fd, "new", 3, holes[2]);
	}
	printf("%ld\n", sum);
	return 0;
}
