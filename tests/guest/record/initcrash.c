/* A program that crashes in the way that its argument says, as the first process of a PID
 * namespace: signals with their default action do not kill that one, but for its own faults. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	printf("number %d\n", getpid());
	kill(getpid(), SIGTERM);
	raise(SIGUSR1);
	for (volatile int i = 0; i < 20000000; i++)
		; /* long enough for the recorder's timer */
	puts("alive");
	fflush(stdout);
	if (!strcmp(how, "abort"))
		abort(); /* its last resort is HLT */
	if (!strcmp(how, "fault"))
		*(volatile int *)8 = 1;
	return 3;
}
