// What a runtime says before it ends a program, in pieces, to standard error: then it aborts, or with an
// argument exits with code 3.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static void say(const char *text) {
	if (write(2, text, strlen(text)) < 0)
		abort();
}

int main(int argc, char **argv) {
	(void)argv;
	say("starting\n");
	for (int i = 0; i < 100; i++)
		if (write(1, "working\n", 8) < 0)
			abort();
	struct iovec v[2] = {{"fatal: ", 7}, {"no such ", 8}};
	if (writev(2, v, 2) < 0)
		abort();
	say("account\n");
	free(malloc(1 << 20)); // a search for names takes memory
	say("\tin main\n");
	if (argc > 1)
		exit(3);
	abort();
}
