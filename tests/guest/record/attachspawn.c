// Programs are executed one after the other, while recorders attach and go again, until line "go" comes on
// standard input:
//   attachspawn vfork     by children of vfork(2), and a handler of SIGCHLD
//   attachspawn fork      by children of fork(2), likewise
//   attachspawn self      by the process itself
// Each reads the time stamp counter. What is printed is the same however often it was done.

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

static int isOver(void) {
	struct pollfd in = {.fd = 0, .events = POLLIN};
	return poll(&in, 1, 0) == 1;
}

static void ended(int sig) { (void)sig; }

static int spawns(char *name, int shares) {
	int bad = 0, status;
	do {
		char *child[] = {name, "child", NULL};
		pid_t pid = shares ? vfork() : fork();
		if (pid == 0) {
			execv("/proc/self/exe", child);
			_exit(1);
		}
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		bad += status != 0;
	} while (!isOver());
	printf("%d children failed\n", bad);
	return 0;
}

int main(int argc, char **argv) {
	volatile unsigned long tsc = __rdtsc();
	(void)tsc;
	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "child"))
		return 0;
	if (argc == 2) {
		printf("ready\n");
		fflush(stdout);
	}
	if (strstr(argv[1], "fork")) {
		struct sigaction act = {.sa_handler = ended};
		sigaction(SIGCHLD, &act, NULL);
		return spawns(argv[0], argv[1][0] == 'v');
	}
	if (argc > 2 && isOver()) {
		printf("executed\n");
		return 0;
	}
	execv("/proc/self/exe", (char *[]){argv[0], argv[1], "again", NULL});
	return 1;
}
