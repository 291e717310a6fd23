// Maps 72 MiB of a file to read from it, more than the recorder takes of a mapping at
// once, and reads the last of it page by page while it computes, so that intervals that
// end anywhere have pages that nobody had touched before.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MIB = 1 << 20, SIZE = 72 * MIB, PAGE = 4096 };

int main(void)
{
	static char part[MIB];
	int fd = open("large", O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (int i = 0; i < SIZE / MIB; i++) {
		for (int k = 0; k < MIB; k += PAGE)
			memset(part + k, 1 + (i * 256 + k / PAGE) % 255, 64);
		if (write(fd, part, MIB) != MIB)
			return 1;
	}
	unlink("large");
	const unsigned char *p = mmap(0, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return 2;
	unsigned long sum = 0;
	for (int at = 65 * MIB; at < SIZE; at += 16 * PAGE) {
		for (int k = 0; k < 300000; k++)
			sum = sum * 31 + k;
		sum += p[at];
	}
	printf("%lx\n", sum);
	return 0;
}
