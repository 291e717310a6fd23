// A second thread.
#include <pthread.h>
#include <stdio.h>

static void *run(void *p) {
	*(int *)p = 42;
	return 0;
}

int main(void) {
	int v = 0;
	pthread_t t;
	if (pthread_create(&t, 0, run, &v)) return 2;
	pthread_join(t, 0);
	printf("%d\n", v);
	return 17;
}
