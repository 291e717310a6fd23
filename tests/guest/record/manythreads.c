// Thousands of threads at once: manythreads N [crash]. Each adds to a sum under a lock, makes a call, waits until all are
// there, and ends. What is printed is the same however many there were, unless one could not be made.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all = PTHREAD_COND_INITIALIZER;
static long sum, there, wanted;

static void *works(void *arg) {
	char name[16];
	snprintf(name, sizeof name, "worker %ld", (long)arg);
	pthread_setname_np(pthread_self(), name);
	pthread_mutex_lock(&lock);
	sum += (long)arg;
	if (++there == wanted)
		pthread_cond_broadcast(&all);
	while (there < wanted)
		pthread_cond_wait(&all, &lock);
	pthread_mutex_unlock(&lock);
	return arg;
}

int main(int argc, char **argv) {
	int n = atoi(argv[1]), made = 0, joined = 0;
	pthread_t *t = calloc(n, sizeof *t);
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	wanted = n;
	for (int i = 0; i < n; i++) {
		int e = pthread_create(&t[i], &small, works, (void *)(long)i);
		if (e) {
			printf("thread %d: %s\n", i, strerror(e));
			return 1;
		}
		made++;
	}
	for (int i = 0; i < n; i++) {
		void *r;
		joined += pthread_join(t[i], &r) == 0 && r == (void *)(long)i;
		if (argc > 2 && i == n / 2) {
			printf("%d made, %d joined\n", made, joined);
			fflush(stdout);
			abort();
		}
	}
	printf("%d made, %d joined, sum %s\n", made, joined, sum == (long)n * (n - 1) / 2 ? "right" : "wrong");
	return 6;
}
