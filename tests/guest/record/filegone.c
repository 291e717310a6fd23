// A file is mapped privately and read; it is unmapped, changed by a write, and other memory stands at its address when the
// interval ends (filegone ROUNDS).
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 4096 };
static volatile unsigned sink;

static void compute(int ms) {
	struct timespec begin, now;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		for (unsigned i = 0; i < 100000; i++) sink += i * sink;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

int main(int argc, char **argv) {
	int rounds = argc > 1 ? atoi(argv[1]) : 20;
	char name[] = "filegone.XXXXXX", b[SIZE];
	int fd = mkstemp(name), other = open("/proc/self/exe", O_RDONLY);
	if (fd < 0 || other < 0 || unlink(name)) return 1;
	for (int i = 0; i < rounds; i++) {
		memset(b, 'a' + i % 20, SIZE);
		if (pwrite(fd, b, SIZE, 0) != SIZE) return 1;
		char *p = mmap(0, SIZE, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p == MAP_FAILED || p[17] != b[17]) return 1;
		compute(8);
		munmap(p, SIZE);
		if (i % 2) munmap(mmap(0, SIZE, PROT_READ, MAP_PRIVATE, other, 0), SIZE);
		memset(b, 'A' + i % 20, SIZE);
		lseek(fd, 0, SEEK_SET);
		for (int k = 0; k < 3; k++)
			if (i % 3 ? write(fd, b, 1000) != 1000 : pwrite(fd, b, 1000, 100) != 1000) return 1;
		if (mmap(p, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != p) return 1;
		p[i] = i;
		for (unsigned k = 0; k < 3000000; k++) sink += k * sink;
		if (i % 4 == 3 && ftruncate(fd, 0)) return 1;
		munmap(p, SIZE);
	}
	puts("end");
	return 0;
}
