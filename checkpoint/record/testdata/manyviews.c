// argv[1] shared mappings of one file, as many private ones of it, and as many
// of shared anonymous memory, each a page between pages that are nothing.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long n = atol(argv[1]);
	int fd = memfd_create("views", 0);
	int file = open(argv[0], O_RDONLY);
	char *p = mmap(0, 6 * n * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fd < 0 || p == MAP_FAILED || ftruncate(fd, 16 * 4096))
		return 1;
	for (long i = 0; i < n; i++) {
		char *at = p + 6 * i * 4096;
		if (mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, i % 16 * 4096) != at ||
		    mmap(at + 2 * 4096, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, i % 4 * 4096) != at + 2 * 4096 ||
		    mmap(at + 4 * 4096, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at + 4 * 4096)
			return 2;
		at[0] = at[4 * 4096] = at[2 * 4096];
	}
	return 0;
}
