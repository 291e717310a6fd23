// Three processes with eight threads hand numbers on: the first process to the second, that
// to the third, and that back to the first. The threads of each process take turns at a
// counter under a mutex, which the first process has first made by a loop of some thousand
// turns, where a breakpoint is hit more often than a search notes one by one. With an argument the processes share a page of memory, too.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NUMBERS = 9 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
long counter;  // of this process
long *shared;  // by all processes, or null
static int in, out;

// pass hands numbers on until there are no more.
static void *pass(void *arg) {
	long n;
	while (read(in, &n, sizeof n) == sizeof n) {
		pthread_mutex_lock(&lock);
		counter += n; // COUNT
		sched_yield();
		counter ^= (long)arg;
		pthread_mutex_unlock(&lock);
		if (shared)
			__sync_fetch_and_add(shared, n);
		n++;
		if (out >= 0 && write(out, &n, sizeof n) != sizeof n)
			abort();
	}
	return 0;
}

// work passes numbers with several threads and ends the process.
static void work(int from, int to, long threads) {
	pthread_t t[4];
	in = from;
	out = to;
	for (long i = 0; i < threads; i++)
		pthread_create(&t[i], 0, pass, (void *)i);
	for (long i = 0; i < threads; i++)
		pthread_join(t[i], 0);
	exit(counter & 7);
}

int main(int argc, char **argv) {
	int a[2], b[2], c[2], status;
	for (int i = 0; i < 3000; i++)
		counter += i % 2; // OFTEN
	if (pipe(a) || pipe(b) || pipe(c))
		return 1;
	if (argc > 1)
		shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fork() == 0) {
		close(a[1]), close(b[0]), close(c[0]), close(c[1]);
		work(a[0], b[1], 2);
	}
	if (fork() == 0) {
		close(a[0]), close(a[1]), close(b[1]), close(c[0]);
		work(b[0], c[1], 1);
	}
	close(a[0]), close(b[0]), close(b[1]), close(c[1]);
	in = c[0];
	out = -1;
	pthread_t t[2];
	for (long i = 0; i < 2; i++)
		pthread_create(&t[i], 0, pass, (void *)i);
	for (long n = 0; n < NUMBERS; n++)
		if (write(a[1], &n, sizeof n) != sizeof n)
			return 1;
	close(a[1]);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	while (wait(&status) > 0)
		;
	printf("%ld\n", counter);
	return 0;
}
