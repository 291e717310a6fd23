// Memory whose content changes without a store of the program's: a file is mapped
// over it, system calls write to it, it moves away, is emptied and unmapped.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { page = 4096 };
volatile long *seen;

int main(void) {
	int pair[2];
	FILE *f = tmpfile();
	long words[page / sizeof(long)] = {11};
	fwrite(words, page, 1, f);
	fflush(f);
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	char *p = mmap(0, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	seen = (volatile long *)p;
	*seen = 1; // STORE
	mmap(p, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fileno(f), 0); // MAP
	words[0] = 22;
	write(pair[0], words, 8);
	read(pair[1], p, 8); // READ
	words[0] = 33;
	write(pair[0], words, 8);
	recv(pair[1], p, 8, 0); // RECV
	madvise(p, page, MADV_DONTNEED); // DROP
	long *q = mmap(0, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*q = 44;
	mremap(q, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, p); // MOVE
	*seen = 44; // SAME
	munmap(p, page); // UNMAP
	abort();
}
