// Memory that a fork wipes or omits must be in the recording all the same.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
	unsigned char *w = mmap(0, 1 << 16, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *d = mmap(0, 1 << 16, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (madvise(w, 1 << 16, MADV_WIPEONFORK) || madvise(d, 1 << 16, MADV_DONTFORK)) return 2;
	unsigned long sum = 0;
	for (int round = 0; round < 40; round++) {
		memset(w + round * 1000, round + 1, 1000);
		memset(d + round * 1000, round + 7, 1000);
		pid_t p = fork();
		if (p == 0) _exit(w[0]); // wiped: zero
		int st;
		waitpid(p, &st, 0);
		if (WEXITSTATUS(st)) return 3;
		for (int k = 0; k < 200000; k++) sum = sum * 31 + w[k % 40000] + d[k % 40000];
	}
	printf("%lu\n", sum);
	return 0;
}
