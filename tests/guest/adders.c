// Three threads add to a list, each with a count of its own, for tests of debug code over several intervals.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct list {
	struct list *next;
	int v;
};

static __thread int mine;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list *head;
static int total;

__attribute__((noinline)) static void add(int v) {
	pthread_mutex_lock(&lock);
	struct list *l = malloc(sizeof *l);
	l->v = v;
	l->next = head;
	head = l;
	mine++;
	total++;
	pthread_mutex_unlock(&lock);
}

static void *work(void *arg) {
	for (int i = 0; i < 300; i++) {
		add(i);
		for (volatile long k = 0; k < 50000; k++)
			;
	}
	return arg;
}

int main(void) {
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], 0, work, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	return total == 900 ? 0 : 1;
}
