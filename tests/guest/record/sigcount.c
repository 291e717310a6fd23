// Counts the signals that it gets, and prints how many of each when SIGRTMAX
// comes. With an argument it first sends that signal to its process group.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile int count[65];
static void note(int sig) { count[sig]++; }

int main(int argc, char **argv)
{
	for (int s = 1; s <= 64; s++)
		signal(s, note);
	if (argc > 1)
		kill(0, atoi(argv[1]));
	puts("ready");
	fflush(stdout);
	sigset_t none;
	sigemptyset(&none);
	while (!count[SIGRTMAX])
		sigsuspend(&none);
	for (int s = 1; s < SIGRTMAX; s++)
		if (count[s])
			printf("%d:%d ", s, count[s]);
	putchar('\n');
	return 0;
}
