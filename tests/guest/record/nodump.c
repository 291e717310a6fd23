// PR_SET_DUMPABLE 0 denies the opening of /proc/PID/mem from then on.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
	if (prctl(PR_SET_DUMPABLE, 0)) return 2;
	unsigned long sum = 1;
	unsigned char *a = mmap(0, 1 << 18, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 40; i++) {
		memset(a, i, 1 << 18);
		for (int k = 0; k < 1 << 18; k++) sum = sum * 31 + a[k];
		getppid();
	}
	pid_t p = fork();
	if (p == 0) _exit(3);
	int st;
	waitpid(p, &st, 0);
	printf("%lu %d %d\n", sum, WEXITSTATUS(st), prctl(PR_GET_DUMPABLE));
	return 0;
}
