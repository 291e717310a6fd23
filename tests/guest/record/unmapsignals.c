// Maps memory of its own and a file by turns at one place, and unmaps both piece by piece, while signals come.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

enum { PAGE = 4096, PIECE = 2 * PAGE, PIECES = 40, ROUNDS = 60 };

static volatile int signals;

static void on_signal(int n) { signals++; }

static void *map(int flags, int fd) {
	void *p = mmap(0, PIECES * PIECE, PROT_READ | (fd < 0 ? PROT_WRITE : 0), MAP_PRIVATE | flags, fd, 0);
	if (p == MAP_FAILED) abort();
	return p;
}

static void unmap(char *p) {
	for (int i = 0; i < PIECES; i++)
		if (munmap(p + i * PIECE, PIECE)) abort();
}

int main(int argc, char **argv) {
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	int fd = open("unmapsignals.data", O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (ftruncate(fd, PIECES * PIECE)) abort();
	sigaction(SIGALRM, &a, 0);
	setitimer(ITIMER_REAL, &often, 0);
	for (int i = 0; i < ROUNDS; i++) {
		char *p = map(MAP_ANONYMOUS, -1);
		memset(p, 1, PIECES * PIECE);
		unmap(p);
		unmap(map(0, fd));
	}
	setitimer(ITIMER_REAL, &never, 0);
	printf("end\n");
	return 0;
}
