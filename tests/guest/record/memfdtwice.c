// One memfd mapped twice, as mirror rings and double-mapped code are: a store
// at one address is seen at the other, also by a string instruction across.
// What is stored before it is mapped again was zero when it was mapped first.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
	int fd = memfd_create("ring", 0);
	ftruncate(fd, 8192);
	char *r = mmap(0, 16384, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mmap(r, 8192, 3, MAP_SHARED | MAP_FIXED, fd, 0);
	((volatile char *)r)[5000] += 5;
	mmap(r + 8192, 8192, 3, MAP_SHARED | MAP_FIXED, fd, 0);
	((volatile char *)r)[8192 + 5000] += 7;
	unsigned long sum = ((volatile char *)r)[5000];
	for (int i = 0; i < 3000; i++) {
		int at = i * 37 % 8192;
		memset(r + at, i, 300); // may run over the border of the ring
		volatile unsigned char *v = (unsigned char *)r;
		sum = sum * 31 + v[at] + v[(at + 299) % 8192] + v[(at + 8192) % 16384];
	}
	char copy[64];
	pread(fd, copy, sizeof copy, 100);
	for (int i = 0; i < 64; i++) sum = sum * 31 + copy[i];
	// Code written at one address and run at the other.
	int cfd = memfd_create("code", 0);
	ftruncate(cfd, 4096);
	unsigned char *w = mmap(0, 4096, 3, MAP_SHARED, cfd, 0);
	int (*x)(void) = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, cfd, 0);
	for (int i = 0; i < 300; i++) {
		memcpy(w, "\xb8\0\0\0\0\xc3", 6);
		w[1] = i;
		sum = sum * 31 + x();
	}
	printf("%lu\n", sum);
	return 0;
}
