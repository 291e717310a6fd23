// Unmaps what /proc/self/maps has that is no file, heap or stack of the program's, in a child for each and then all, and goes on making calls.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned long from[200], to[200];

static void calls(void) {
	struct timespec t;
	for (int i = 0; i < 500; i++) syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
}

int main(void) {
	static char line[512];
	int n = 0, bad = 0, status;
	calls();
	FILE *f = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof line, f) && n < 200)
		if (strstr(line, "(deleted)") && sscanf(line, "%lx-%lx", &from[n], &to[n]) == 2) n++;
	fclose(f);
	for (int i = 0; i < n; i++) {
		if (fork() == 0) {
			calls();
			if (munmap((void *)from[i], to[i] - from[i])) _exit(1);
			calls();
			_exit(0);
		}
		wait(&status);
		bad += status != 0;
	}
	for (int i = 0; i < n; i++) bad += munmap((void *)from[i], to[i] - from[i]) != 0;
	calls();
	printf("%d bad\n", bad);
	return 0;
}
