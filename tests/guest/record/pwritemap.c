// pwrite changes what is mapped: a shared view, and a private one whose page
// was not written. A written private page keeps its content.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
	char name[] = "/tmp/vplay-pwriteXXXXXX", page[4096];
	int fd = mkstemp(name);
	unlink(name);
	memset(page, 'a', sizeof page);
	for (int i = 0; i < 4; i++) write(fd, page, sizeof page);
	char *s = mmap(0, 4 * 4096, 3, MAP_SHARED, fd, 0), *p = mmap(0, 4 * 4096, 3, MAP_PRIVATE, fd, 0);
	printf("%c%c%c%c\n", s[0], s[4096], p[0], p[4096]);
	p[4097] = 'X'; // its own now
	for (int i = 0; i < 26; i++) {
		memset(page, 'A' + i, 100);
		pwrite(fd, page, 100, 0);
		pwrite(fd, page, 100, 4096);
		pwrite(fd, page, 100, 2 * 4096);
		putchar(s[0]), putchar(s[4096]), putchar(p[0]), putchar(p[4096]), putchar(p[4097]);
	}
	// Page 2 of the private view was never read before.
	printf("\n%c%c\n", p[2 * 4096], p[3 * 4096]);
	s[3 * 4096] = 'Z'; // a store through the shared view reaches the file
	char back[8];
	pread(fd, back, 1, 3 * 4096);
	printf("%c\n", back[0]);
	return 0;
}
