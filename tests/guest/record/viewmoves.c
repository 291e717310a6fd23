// A child writes to a file all the time while its parent has pages of it mapped privately, and moves them (mremap):
//   viewmoves ROUNDS
// What the child has written before the move is seen first where the pages are then.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 4, SIZE = PAGES * PAGE };
#define CHECK(c) do { if (!(c)) { perror(#c); _exit(9); } } while (0)

static void change(int file) {
	static unsigned char b[PAGE];
	for (unsigned n = 0;; n++) {
		memset(b, n, sizeof b);
		CHECK(pwrite(file, b, sizeof b, (1 + n % (PAGES - 1)) * PAGE) == sizeof b);
	}
}

int main(int argc, char **argv) {
	char name[] = "/tmp/viewmoves-XXXXXX";
	int file = mkstemp(name), rounds = argc > 1 ? atoi(argv[1]) : 1;
	CHECK(file >= 0 && !unlink(name) && !ftruncate(file, SIZE));
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) change(file);
	volatile unsigned long sum = 0;
	for (int i = 0; i < rounds; i++) {
		unsigned char *p = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
		unsigned char *to = mmap(0, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(p != MAP_FAILED && to != MAP_FAILED);
		p[5]++;
		for (int k = 1; k < PAGES; k++) sum += p[k * PAGE];
		for (int n = 0; n < i % 64 * 1000; n++) sum += n; // so that the turn is given up at this call or at that
		CHECK(mremap(p, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
		for (int k = 1; k < PAGES; k++) sum += to[k * PAGE + 7];
		CHECK(!munmap(to, SIZE));
	}
	CHECK(!kill(child, SIGKILL) && waitpid(child, 0, 0) == child);
	puts("end");
	return 0;
}
