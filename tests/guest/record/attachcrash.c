// Crashes some time after line "crash" has come: one thread spoils a pointer of another's, which
// follows it later. A debugger is to find who has spoilt it.

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct node { struct node *next; long value; };

static struct node nodes[64];
static volatile int spoil;
static volatile long sum;

static void spoils(struct node *n) {
	n->next = (struct node *)0x1230; // CAUSE
}

static void *meddles(void *arg) {
	while (!spoil)
		usleep(1000);
	spoils(&nodes[41]);
	for (;;)
		pause();
}

int main(void) {
	pthread_t t;
	for (int i = 0; i < 64; i++)
		nodes[i] = (struct node){&nodes[(i + 1) % 64], i};
	pthread_create(&t, NULL, meddles, NULL);
	printf("ready\n");
	fflush(stdout);
	char line[16];
	fgets(line, sizeof line, stdin);
	spoil = strncmp(line, "crash", 5) == 0;
	for (struct node *n = nodes;; n = n->next) {
		sum += n->value; // CRASH
		for (volatile int i = 0; i < 2000; i++)
			;
	}
}
