// A program that has used up what it may have, and dies of a fault, or ends:
//   atlimits memory N    30 MiB of it, written; N times over, a call each time
//   atlimits quiet N     likewise, without the calls
//   atlimits space       address space: RLIMIT_AS is what it has
//   atlimits files       descriptors: every one that it may have is open
//   atlimits processes   processes: it makes children until it may have no more, and lets them end
//   atlimits bomb        likewise, and so do its children, for a while
// What is printed is the same however many there were.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void die(void) {
	fflush(stdout);
	*(volatile int *)16 = 1;
}

static void memory(int times, int quiet) {
	unsigned long sum = 0, size = 30 << 20;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int n = 0; n < times; n++) {
		for (unsigned long i = 0; i < size; i += 64)
			*(unsigned long *)(p + i) = (i + n) * 0x9e3779b97f4a7c15ul;
		if (!quiet)
			sum += getppid() != 0;
	}
	printf("written %lu times\n", sum);
	die();
}

static void space(void) {
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	fscanf(f, "%ld", &pages);
	fclose(f);
	struct rlimit l = {pages * 4096, pages * 4096};
	setrlimit(RLIMIT_AS, &l);
	void *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("more: %s\n", p == MAP_FAILED ? strerror(errno) : "there is");
	int fd[2], n = 0;
	pipe(fd);
	for (struct timespec ms = {0, 1000000}; n < 200; n++) {
		char c = n;
		if (write(fd[1], &c, 1) != 1 || read(fd[0], &c, 1) != 1 || c != (char)n)
			break;
		nanosleep(&ms, NULL);
	}
	printf("%d bytes passed\n", n);
	die();
}

static void files(void) {
	int n = 0, bad = 0, fd;
	while ((fd = dup(0)) >= 0)
		n++;
	printf("no more: %s, there were some: %d\n", strerror(errno), n > 3);
	for (int i = 0; i < 200; i++) {
		struct timespec ms = {0, 1000000};
		bad += open("/dev/null", O_RDONLY) >= 0;
		nanosleep(&ms, NULL);
	}
	printf("%d opened\n", bad);
	die();
}

// children makes processes until there may be no more, lets them end, and returns whether all did well.
static int children(int deeper, double until) {
	int gate[2], ok = 1, status;
	pid_t pids[2000];
	int n = 0;
	pipe(gate);
	while (n < 2000) {
		pid_t pid = fork();
		if (pid < 0) {
			ok &= errno == EAGAIN;
			break;
		}
		if (pid == 0) {
			char c;
			close(gate[1]);
			if (deeper > 0)
				_exit(children(deeper - 1, until) ? 3 : 4);
			_exit(read(gate[0], &c, 1) == 0 ? 3 : 4);
		}
		pids[n++] = pid;
		struct timespec now;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (deeper >= 0 && now.tv_sec + now.tv_nsec / 1e9 > until)
			break;
	}
	close(gate[1]);
	close(gate[0]);
	for (int i = 0; i < n; i++)
		ok &= waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status) && WEXITSTATUS(status) == 3;
	return ok;
}

int main(int argc, char **argv) {
	if (!strcmp(argv[1], "memory"))
		memory(atoi(argv[2]), 0);
	else if (!strcmp(argv[1], "quiet"))
		memory(atoi(argv[2]), 1);
	else if (!strcmp(argv[1], "space"))
		space();
	else if (!strcmp(argv[1], "files"))
		files();
	else {
		struct timespec now;
		clock_gettime(CLOCK_MONOTONIC, &now);
		int bomb = !strcmp(argv[1], "bomb"), ok = 1;
		for (int i = 0; i < 3; i++)
			ok &= children(bomb ? 2 : -1, now.tv_sec + 2);
		printf("children ended %s\n", ok ? "well" : "badly");
		die();
	}
}
