// Two threads lock two mutexes, each in its own order. Both get their first, and wait for ever
// for the second.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct account {
	pthread_mutex_t lock;
	long balance;
};

static struct account savings = {PTHREAD_MUTEX_INITIALIZER, 100};
static struct account checking = {PTHREAD_MUTEX_INITIALIZER, 100};
static pthread_barrier_t both;

static void transfer(struct account *from, struct account *to, long amount) {
	pthread_mutex_lock(&from->lock); // FIRST
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&to->lock); // SECOND
	from->balance -= amount;
	to->balance += amount;
	pthread_mutex_unlock(&to->lock);
	pthread_mutex_unlock(&from->lock);
}

static void *spend(void *unused) {
	pthread_setname_np(pthread_self(), "spend");
	transfer(&savings, &checking, 10);
	return 0;
}

static void *save(void *unused) {
	pthread_setname_np(pthread_self(), "save");
	transfer(&checking, &savings, 20);
	return 0;
}

int main(void) {
	pthread_t a, b;
	pthread_barrier_init(&both, 0, 2);
	pthread_create(&a, 0, spend, 0);
	pthread_create(&b, 0, save, 0);
	pthread_join(a, 0); // JOIN
	pthread_join(b, 0);
	printf("%ld\n", savings.balance + checking.balance);
	return 0;
}
