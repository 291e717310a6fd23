// One thread computes, and makes no call; another waits in poll(2), with the time-out of the argument in milliseconds, for a line, and
// answers it.
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int stop;

static void *computes(void *arg) {
	volatile unsigned long *x = arg;
	while (!stop) *x = *x * 6364136223846793005ul + 1;
	return NULL;
}

int main(int argc, char **argv) {
	int ms = argc > 1 ? atoi(argv[1]) : -1;
	struct pollfd *p = calloc(1, sizeof *p);
	unsigned long x = 1;
	pthread_t t;
	char line[16];
	pthread_create(&t, NULL, computes, &x);
	p->events = POLLIN;
	printf("ready\n");
	do {
		fflush(stdout);
		p->revents = 0;
		if (poll(p, 1, ms) != 1 || !(p->revents & POLLIN) || !fgets(line, sizeof line, stdin)) {
			printf("poll: %d\n", p->revents);
			break;
		}
		printf("got %s", line);
	} while (strcmp(line, "go\n") != 0);
	stop = 1;
	pthread_join(t, NULL);
	return 3;
}
