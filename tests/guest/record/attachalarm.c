// Reads from a pipe that nobody writes to. A handler without SA_RESTART is to end the read, once
// job control has stopped the program, the signal has come, and a recorder has attached and gone.
//   attachalarm [restart]
// With restart the handler has SA_RESTART: the read goes on, and ends by what comes on standard input.

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile int got;
static void handler(int sig) { got = sig; }

int main(int argc, char **argv) {
	struct sigaction a = {.sa_handler = handler, .sa_flags = argc > 1 ? SA_RESTART : 0};
	sigaction(SIGUSR1, &a, NULL);
	int p[2];
	char c;
	pipe(p);
	printf("ready\n");
	fflush(stdout);
	long r = read(argc > 1 ? 0 : p[0], &c, 1);
	printf("read %ld, %s, signal %d\n", r, r < 0 ? strerror(errno) : "no error", got);
	return 6;
}
