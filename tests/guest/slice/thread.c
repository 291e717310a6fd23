// Another thread gives the pointer away half made.
#include <pthread.h>
#include <stdint.h>
#include <stddef.h>

struct job {
	int n;
};
static struct job *volatile shared;
static struct job one = {1};
volatile long busy;
static pthread_barrier_t ready;

static void *worker(void *arg) {
	(void)arg;
	shared = (struct job *)((uintptr_t)&one | (uintptr_t)1 << 60); // cause
	pthread_barrier_wait(&ready);
	return NULL;
}

int main(void) {
	pthread_t t;
	pthread_barrier_init(&ready, NULL, 2);
	pthread_create(&t, NULL, worker, NULL);
	for (int i = 0; i < 50; i++)
		busy += i; // unrelated
	pthread_barrier_wait(&ready);
	return shared->n;
}
