// Another thread than the first crashes, while the first waits for it.
#include <pthread.h>

static int *volatile nowhere;

static void *worker(void *arg) {
	(void)arg;
	*nowhere = 1; // CRASH
	return 0;
}

int main(void) {
	pthread_t t;
	pthread_create(&t, 0, worker, 0);
	return pthread_join(t, 0);
}
