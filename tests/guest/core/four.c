// Four threads, each in another place: one divides by zero, one waits for a condition, one reads a pipe, and the
// first waits for the others. With WAITS nobody divides: all wait.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t ready;
static int ends[2];
static __thread int own;

static void *waits(void *arg)
{
	long waiting = (long)arg;
	own = 10;
	pthread_mutex_lock(&lock);
	pthread_barrier_wait(&ready);
	pthread_cond_wait(&never, &lock); // WAIT
	return (void *)waiting;
}

static void *reads(void *arg)
{
	char letter = 'r';
	own = 20;
	pthread_barrier_wait(&ready);
	return (void *)(read(ends[0], &letter, 1) + (long)arg); // READ
}

#ifdef WAITS
static void *divides(void *arg)
{
	long held = (long)arg;
	pthread_setname_np(pthread_self(), "holder");
	pthread_barrier_wait(&ready);
	pause(); // HOLD
	return (void *)held;
}
#else
static int zero;

static void *divides(void *arg)
{
	int divisor = zero, dividend = 7;
	own = 30;
	pthread_barrier_wait(&ready);
	usleep(300000); // until the others wait
	return (void *)(long)(dividend / divisor); // DIVIDE
}
#endif

int main(void)
{
	pthread_t t[3];
	void *(*body[3])(void *) = {waits, reads, divides};
	if (pipe(ends))
		return 1;
	pthread_barrier_init(&ready, 0, 3);
	for (long i = 0; i < 3; i++)
		pthread_create(&t[i], 0, body[i], (void *)i);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0); // JOIN
	return 0;
}
