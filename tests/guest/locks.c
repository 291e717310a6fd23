// Threads that race, take locks in orders that may deadlock, or do neither. The first argument names what they do, the second is how often. Lines that
// tests look for are marked.
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

static int times = 20;

static int counter, guarded;
static struct field { long before, value; } *heap;
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER, three = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t sem;
static atomic_int ready, total;
static atomic_flag own = ATOMIC_FLAG_INIT;
static int word; // of a futex
static int box, is_full;
static char text[64];

static void *race_global(void *arg) {
	for (int i = 0; i < times; i++) {
		counter++; // RACE global
		if (i % 16 == 0)
			sched_yield();
	}
	return arg;
}

static void *race_heap(void *arg) {
	for (int i = 0; i < times; i++)
		heap->value += i; // RACE heap
	return arg;
}

static void *race_copy(void *arg) {
	char own_text[64];
	if (arg)
		memset(text, 'x', sizeof text); // RACE copy store
	else
		memcpy(own_text, text, sizeof text); // RACE copy load
	return arg ? arg : (void *)(long)own_text[1];
}

static void *with_mutex(void *arg) {
	for (int i = 0; i < times; i++) {
		pthread_mutex_lock(&one);
		guarded++;
		heap->value++;
		pthread_mutex_unlock(&one);
		if (i % 16 == 0)
			sched_yield();
	}
	return arg;
}

static void *with_spin(void *arg) {
	for (int i = 0; i < times; i++) {
		pthread_spin_lock(&spin);
		guarded++;
		pthread_spin_unlock(&spin);
	}
	return arg;
}

static void *with_atomics(void *arg) {
	if (arg) {
		box = 1;
		atomic_store_explicit(&ready, 1, memory_order_release); // a plain store
	} else {
		while (!atomic_load_explicit(&ready, memory_order_acquire))
			sched_yield();
		box++;
	}
	atomic_fetch_add(&total, 1);
	while (atomic_flag_test_and_set(&own))
		sched_yield();
	guarded++;
	atomic_flag_clear_explicit(&own, memory_order_release);
	return arg;
}

static void *with_futex(void *arg) {
	if (arg) {
		box = 1;
		__atomic_exchange_n(&word, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &word, 1 /* FUTEX_WAKE */, 1, 0, 0, 0);
	} else {
		while (!__atomic_load_n(&word, __ATOMIC_ACQUIRE))
			syscall(SYS_futex, &word, 0 /* FUTEX_WAIT */, 0, 0, 0, 0);
		box++;
	}
	return arg;
}

static void *with_condition(void *arg) {
	for (int i = 0; i < times; i++) {
		pthread_mutex_lock(&one);
		while (is_full == (arg != 0))
			pthread_cond_wait(&filled, &one);
		box += arg ? 1 : -1;
		is_full = arg != 0;
		pthread_cond_broadcast(&filled);
		pthread_mutex_unlock(&one);
	}
	return arg;
}

static void *with_rwlock(void *arg) {
	long sum = 0;
	for (int i = 0; i < times; i++) {
		if (arg && i % 4 == 0) {
			pthread_rwlock_wrlock(&rw);
			guarded++;
		} else {
			pthread_rwlock_rdlock(&rw);
			sum += guarded;
		}
		pthread_rwlock_unlock(&rw);
	}
	return (void *)sum;
}

static void *race_rwlock(void *arg) {
	pthread_rwlock_rdlock(&rw);
	guarded++; // RACE rwlock
	pthread_rwlock_unlock(&rw);
	return arg;
}

static void *with_barrier(void *arg) {
	static int parts[2];
	long me = arg != 0;
	for (int i = 0; i < times; i++) {
		parts[me] = i;
		pthread_barrier_wait(&barrier);
		guarded = parts[!me]; // RACE barrier
		pthread_barrier_wait(&barrier);
	}
	return arg;
}

static void *of_barrier(void *arg) {
	static int parts[2];
	long me = arg != 0, sum = 0;
	for (int i = 0; i < times; i++) {
		parts[me] = i;
		pthread_barrier_wait(&barrier);
		sum += parts[!me];
		pthread_barrier_wait(&barrier);
	}
	return (void *)sum;
}

static int ends[2];

static void *with_pipe(void *arg) {
	char c = 0;
	if (arg) {
		box = 1;
		write(ends[1], &c, 1);
	} else {
		read(ends[0], &c, 1);
		box++;
	}
	return arg;
}

static void *with_epoll(void *arg) { // who is told that there is something does not read it
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = 1UL << 40};
	if (arg) {
		box = 1;
		write(ends[1], &e, 1);
		return arg;
	}
	int set = epoll_create1(0);
	epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &e);
	epoll_wait(set, &e, 1, -1);
	box++;
	return arg;
}

static void *with_poll(void *arg) {
	struct pollfd list[] = {{-1, POLLIN}, {ends[0], POLLIN}};
	if (arg) {
		box = 1;
		write(ends[1], list, 1);
	} else {
		poll(list, 2, -1);
		box++;
	}
	return arg;
}

static void fill(void) { box = 7; }

static void *with_once(void *arg) {
	pthread_once(&once, fill);
	return (void *)(long)(box + (arg != 0));
}

static void *with_semaphore(void *arg) {
	for (int i = 0; i < times; i++) {
		sem_wait(&sem);
		guarded++;
		sem_post(&sem);
	}
	return arg;
}

static void *of_freed(void *arg) {
	for (int i = 0; i < times; i++) { // the allocator hands the same block to both
		long *p = malloc(40);
		p[1] = i;
		p[4] = i;
		free(p);
		sched_yield();
	}
	return arg;
}

static volatile long *lent; // in a frame of the other thread

static __attribute__((noinline)) void lend(void) {
	volatile long here[16] = {0};
	pthread_mutex_lock(&one);
	lent = &here[8];
	pthread_mutex_unlock(&one);
	while (!here[8]) // RACE frame load
		sched_yield();
}

static __attribute__((noinline)) long use_again(void) {
	volatile long here[16] = {1}; // what the other thread did to the frame before is nothing to this one
	return here[8];
}

static void *race_frame(void *arg) {
	volatile long *p = 0;
	if (arg) {
		lend();
		return (void *)use_again();
	}
	while (!p) {
		pthread_mutex_lock(&one);
		p = lent;
		pthread_mutex_unlock(&one);
		sched_yield();
	}
	*p = 1; // RACE frame store
	return arg;
}

static void *with_vfork(void *arg) { // the child has the parent's memory, which waits for it
	for (int i = 0; arg && i < times; i++) {
		if (vfork() == 0) {
			box = i;
			guarded++;
			_exit(0);
		}
		guarded += box;
	}
	return arg;
}

static void both(pthread_mutex_t *a, pthread_mutex_t *b) {
	pthread_mutex_lock(a); // ORDER first
	pthread_mutex_lock(b); // ORDER second
	pthread_mutex_unlock(b);
	pthread_mutex_unlock(a);
}

// The threads come one after the other, so that they do not deadlock.
static void *order_two(void *arg) {
	if (arg)
		both(&one, &two);
	else
		both(&two, &one);
	return arg;
}

static void *order_three(void *arg) {
	both(arg ? &one : &two, arg ? &two : &three);
	if (!arg)
		both(&three, &one);
	return arg;
}

static void *order_gate(void *arg) {
	pthread_mutex_lock(&gate);
	order_two(arg);
	pthread_mutex_unlock(&gate);
	return arg;
}

static void *order_try(void *arg) {
	pthread_mutex_t *a = arg ? &one : &two, *b = arg ? &two : &one;
	pthread_mutex_lock(a);
	if (pthread_mutex_trylock(b) == 0)
		pthread_mutex_unlock(b);
	pthread_mutex_unlock(a);
	return arg;
}

static void *order_freed(void *arg) {
	for (int i = 0; i < 2; i++) { // other locks at the same address
		pthread_mutex_t *m = malloc(2 * sizeof *m);
		m[0] = m[1] = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
		both(m + i, m + !i);
		free(m);
	}
	return arg;
}

static const struct {
	const char *name;
	void *(*run)(void *);
	int is_apart; // the second thread is created when the first has ended
} cases[] = {
	{"global", race_global}, {"heap", race_heap}, {"copy", race_copy}, {"frame", race_frame}, {"rwlock-race", race_rwlock}, {"barrier-race", with_barrier},
	{"mutex", with_mutex}, {"spin", with_spin}, {"atomics", with_atomics}, {"futex", with_futex}, {"condition", with_condition},
	{"rwlock", with_rwlock}, {"barrier", of_barrier}, {"once", with_once}, {"semaphore", with_semaphore}, {"freed", of_freed}, {"pipe", with_pipe}, {"epoll", with_epoll}, {"poll", with_poll}, {"vfork", with_vfork},
	{"order-two", order_two, 1}, {"order-three", order_three, 1}, {"order-gate", order_gate, 1}, {"order-try", order_try, 1},
	{"order-freed", order_freed},
};

int main(int argc, char **argv) {
	pthread_t a, b;
	if (argc == 3)
		times = atoi(argv[2]);
	pthread_spin_init(&spin, 0);
	pthread_barrier_init(&barrier, 0, 2);
	sem_init(&sem, 0, 1);
	pipe(ends);
	heap = calloc(1, sizeof *heap);
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (argc < 2 || strcmp(argv[1], cases[i].name))
			continue;
		pthread_create(&a, 0, cases[i].run, (void *)1);
		if (cases[i].is_apart)
			pthread_join(a, 0);
		pthread_create(&b, 0, cases[i].run, 0);
		if (!cases[i].is_apart)
			pthread_join(a, 0);
		pthread_join(b, 0);
		printf("%d\n", counter + guarded + box);
		return 0;
	}
	return 1;
}
