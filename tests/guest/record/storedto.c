// Two processes that are not parent and child, and have a file mapped shared: "store FILE" waits
// for questions and answers them, "ask FILE" asks, and reads the answers. It sleeps so long before
// it looks that the answer has come before the call's exit, not between the exit and the look.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 10 };

struct page {
	volatile unsigned ready, question, answer, end;
};

static void nap(long ms)
{
	struct timespec t = { 0, ms * 1000000 };
	nanosleep(&t, 0);
}

int main(int argc, char **argv)
{
	int fd = open(argv[2], O_RDWR);
	struct page *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (argc != 3 || fd < 0 || p == MAP_FAILED)
		return 1;
	if (!strcmp(argv[1], "store")) {
		for (p->ready = 1; !p->end; nap(1))
			p->answer = p->question * 7;
		return 0;
	}
	unsigned sum = 0;
	for (unsigned i = 1; i <= ROUNDS; i++) {
		p->question = i;
		do
			nap(20);
		while (p->answer != i * 7);
		sum += p->answer;
	}
	printf("%u\n", sum);
	return 0;
}
