// Two threads add to a list without a lock. One of them reads the head, the other one stores a
// new one, the first stores its own: what the other has added is lost, and the program
// finds fewer nodes than it counted.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct node {
	struct node *next;
	long by;
};

struct node *head;
int count;
static pthread_barrier_t added;

static void *adder(void *arg) {
	char name[16];
	snprintf(name, sizeof name, "adder-%ld", (long)arg);
	pthread_setname_np(pthread_self(), name);
	while (arg == (void *)2 && !head) // the first one begins, on slow machines too
		sched_yield();
	for (int i = 0; i < 20; i++) {
		struct node *n = malloc(sizeof *n);
		n->by = (long)arg;
		n->next = head; // READ
		sched_yield();
		head = n; // STORE
		count++;
	}
	pthread_barrier_wait(&added);
	pause();
	return 0;
}

int main(void) {
	pthread_t t[2];
	pthread_barrier_init(&added, 0, 3);
	for (long i = 0; i < 2; i++)
		pthread_create(&t[i], 0, adder, (void *)(i + 1));
	pthread_barrier_wait(&added);
	struct node *n = head;
	long sum = 0;
	for (int i = 0; i < count; i++) {
		sum += n->by; // CRASH
		n = n->next;
	}
	printf("%ld\n", sum);
	return 0;
}
