// A thread that ends while the first one waits for it, and a program that goes on.
#include <pthread.h>

static int sum;

static void *add(void *arg) {
	sum += (long)arg; // ADD
	return 0;
}

int main(void) {
	pthread_t t;
	for (long i = 1; i < 3; i++) {
		pthread_create(&t, 0, add, (void *)i);
		pthread_join(t, 0); // JOINED
	}
	return sum; // END
}
