/* ROUNDS MICROSECONDS: changes the signal mask in all ways. What a change unblocks is there when it returns, what is blocked does not
 * come; threads, and a timer's signals each MICROSECONDS, are at the end, but with 0 ROUNDS. "masks mask" prints the mask that it was
 * started with. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

typedef unsigned long set_t;
#define BIT(sig) (1ul << ((sig) - 1))

static const set_t all = ~0ul;
static set_t in_file = BIT(SIGUSR1), in_bss;
static volatile int came[65], ticks, order[64], orders;

static long mask(int how, const void *set, void *old) { return syscall(SYS_rt_sigprocmask, how, set, old, 8) ? -errno : 0; }
static set_t now(void) { set_t s = 0; mask(SIG_BLOCK, 0, &s); return s; }

static void count(int sig)
{
	came[sig]++;
	if (orders < 64)
		order[orders++] = sig;
}

static void on(int sig, void (*handler)(int), set_t blocked)
{
	struct sigaction sa;
	memset(&sa, 0, sizeof sa);
	sa.sa_handler = handler;
	memcpy(&sa.sa_mask, &blocked, 8);
	sigaction(sig, &sa, 0);
}

static void show(const char *what)
{
	printf("%s: mask %lx, came", what, now());
	for (int i = 0; i < orders; i++)
		printf(" %d", order[i]);
	puts("");
	orders = 0;
}

/* pending has signals wait that are then unblocked, by each way and from memory of each kind. */
static void pending(void)
{
	set_t some = BIT(SIGUSR1) | BIT(SIGUSR2) | BIT(SIGRTMIN + 1) | BIT(SIGWINCH), none = 0, old = 1, *heap = malloc(8);

	mask(SIG_BLOCK, &some, &old);
	printf("old %lx\n", old);
	kill(getpid(), SIGUSR1), raise(SIGUSR2), raise(SIGRTMIN + 1), kill(getpid(), SIGRTMIN + 1), raise(SIGWINCH);
	show("pending");
	mask(SIG_SETMASK, &none, &old);
	show("set to none");
	mask(SIG_BLOCK, &all, &old);
	raise(SIGUSR1), kill(getpid(), SIGUSR2);
	mask(SIG_UNBLOCK, &in_file, 0);
	show("one unblocked, from a file");
	in_bss = BIT(SIGUSR2);
	mask(SIG_UNBLOCK, &in_bss, &in_bss);
	show("the other");
	*heap = in_bss;
	mask(SIG_SETMASK, heap, heap);
	printf("old %lx\n", *heap);
	mask(SIG_SETMASK, &none, 0);
	signal(SIGUSR2, SIG_IGN);
	mask(SIG_SETMASK, &all, 0);
	raise(SIGUSR1), raise(SIGUSR2);
	mask(SIG_SETMASK, &none, 0);
	show("one of both is ignored");
	on(SIGUSR2, count, 0);
	on(SIGUSR1, count, all);
	mask(SIG_SETMASK, &all, 0);
	raise(SIGUSR2), raise(SIGUSR1), raise(SIGRTMIN + 1);
	mask(SIG_SETMASK, &none, 0);
	show("one blocks the others");
	on(SIGUSR1, count, 0);
	free(heap);
}

static void errors(void)
{
	char *end = (char *)mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 4096, *ro = end - 4096;
	set_t some = BIT(SIGUSR1) | BIT(SIGHUP), none = 0, old = 1;

	munmap(end, 4096);
	memset(ro, 0, 4096);
	printf("bad old %ld\n", mask(SIG_BLOCK, &some, (void *)8));
	show("and blocked");
	raise(SIGUSR1);
	printf("bad old %ld\n", mask(SIG_SETMASK, &none, (void *)-8ul));
	show("and unblocked");
	printf("old in a constant %ld\n", mask(SIG_BLOCK, &some, (void *)&all));
	printf("old over the end %ld\n", mask(SIG_SETMASK, &none, end - 4));
	printf("bad set %ld, over the end %ld\n", mask(SIG_BLOCK, (void *)8, &old), mask(SIG_BLOCK, end - 4, &old));
	printf("set before the end %ld\n", mask(SIG_BLOCK, end - 8, &old));
	printf("how %ld, %ld\n", mask(7, &some, &old), mask(-1, &all, 0));
	printf("how without a set %ld\n", mask(7, 0, &old));
	printf("upper half %ld\n", syscall(SYS_rt_sigprocmask, 1ul << 32 | SIG_BLOCK, &some, &old, 8));
	mask(SIG_SETMASK, &none, 0);
	printf("size %ld", syscall(SYS_rt_sigprocmask, SIG_BLOCK, &some, &old, 16));
	printf(" %d\n", errno);
	mprotect(ro, 4096, PROT_READ);
	printf("read-only %ld", mask(SIG_BLOCK, ro, 0));
	printf(" %ld\n", mask(SIG_BLOCK, &some, ro));
	mprotect(ro, 4096, PROT_NONE);
	printf("neither %ld %lx\n", mask(SIG_SETMASK, ro, &old), old);
	munmap(ro, 4096);
	printf("gone %ld\n", mask(SIG_SETMASK, ro, &old));
	mask(SIG_SETMASK, &none, 0);
	show("errors");
}

static void busy(long n)
{
	for (volatile long i = 0; i < n; i++)
		;
}

/* closed runs with signals blocked that the recorder has a hand in, all and one by one. */
static void closed(long n)
{
	const set_t sets[] = {all, BIT(SIGSEGV), BIT(SIGSYS), BIT(SIGTRAP) | BIT(SIGBUS), BIT(64), all & ~BIT(SIGSEGV), all & ~BIT(64)};
	set_t none = 0, usr = BIT(SIGUSR1), got;

	for (int i = 0; i < 7; i++) {
		raise(SIGUSR1);
		mask(SIG_SETMASK, &sets[i], 0);
		busy(n / 2);
		unsigned long t = __rdtsc();
		busy(n / 2);
		getppid(), sched_yield();
		mask(SIG_BLOCK, &usr, &got);
		int back = __rdtsc() < t;
		raise(SIGUSR1), raise(SIGUSR2);
		printf("old %lx, back %d, ", got, back);
		mask(i % 2 ? SIG_UNBLOCK : SIG_SETMASK, i % 2 ? &all : &none, 0);
		show("closed and open");
	}
}

static pthread_barrier_t both;

static void *thread(void *arg)
{
	set_t usr = BIT(SIGUSR1), got, none = 0;
	long wrong = 0, rounds = (long)arg;

	wrong += now() != usr;
	for (long i = 0; i < rounds; i++) {
		mask(SIG_SETMASK, i % 3 ? &usr : &all, &got);
		int was = came[SIGUSR1];
		pthread_barrier_wait(&both); /* the other has blocked it, too, */
		pthread_barrier_wait(&both); /* and sent it to the process */
		wrong += was != came[SIGUSR1];
		pthread_barrier_wait(&both);
		if (i % 2)
			mask(SIG_SETMASK, &none, 0), wrong += came[SIGUSR1] != was + 1;
		pthread_barrier_wait(&both);
	}
	return (void *)wrong;
}

static void threads(long rounds)
{
	set_t usr = BIT(SIGUSR1), none = 0;
	pthread_t other;
	void *wrong;
	long mine = 0;

	came[SIGUSR1] = 0;
	pthread_barrier_init(&both, 0, 2);
	mask(SIG_SETMASK, &usr, 0);
	pthread_create(&other, 0, thread, (void *)rounds);
	for (long i = 0; i < rounds; i++) {
		mask(SIG_SETMASK, &usr, 0);
		pthread_barrier_wait(&both);
		int was = came[SIGUSR1];
		kill(getpid(), SIGUSR1);
		pthread_barrier_wait(&both);
		pthread_barrier_wait(&both);
		if (i % 2 == 0)
			mask(SIG_UNBLOCK, &usr, 0), mine += came[SIGUSR1] != was + 1;
		pthread_barrier_wait(&both);
	}
	pthread_join(other, &wrong);
	mask(SIG_SETMASK, &none, 0);
	printf("threads: %d came, %ld and %ld wrong\n", came[SIGUSR1], mine, (long)wrong);
	orders = 0;
}

static void children(char *self)
{
	const set_t sets[] = {0, BIT(SIGUSR1), all};
	int status;

	fflush(stdout);
	for (int i = 0; i < 3; i++) {
		mask(SIG_SETMASK, &sets[i], 0);
		if (fork() == 0) {
			set_t was = now();
			raise(SIGUSR1);
			int early = came[SIGUSR1];
			mask(SIG_SETMASK, &sets[0], 0);
			printf("child: %lx, came %d, then %d\n", was, early - came[0], came[SIGUSR1]);
			fflush(stdout);
			mask(SIG_SETMASK, &sets[i], 0);
			execl(self, self, "mask", (char *)0);
		}
		wait(&status);
		pid_t pid = vfork();
		if (pid == 0) {
			mask(SIG_SETMASK, &sets[1], 0);
			execl(self, self, "mask", (char *)0);
			_exit(1);
		}
		waitpid(pid, &status, 0);
		printf("parent: %lx\n", now());
		fflush(stdout);
	}
	mask(SIG_SETMASK, &sets[0], 0);
}

/* waits makes calls with a mask of their own between changes of the mask. */
static void waits(void)
{
	set_t some = BIT(SIGUSR1) | BIT(SIGUSR2), usr2 = BIT(SIGUSR2), none = 0;
	struct timespec soon = {0, 1000000};

	mask(SIG_BLOCK, &some, 0);
	raise(SIGUSR1), raise(SIGUSR2);
	printf("ppoll %ld", syscall(SYS_ppoll, 0, 0, &soon, &usr2, 8));
	printf(" %d\n", errno);
	show("ppoll");
	raise(SIGUSR1);
	printf("sigsuspend %ld\n", syscall(SYS_rt_sigsuspend, &usr2, 8));
	show("sigsuspend");
	printf("sigtimedwait %ld\n", syscall(SYS_rt_sigtimedwait, &some, 0, &soon, 8));
	mask(SIG_SETMASK, &none, 0);
	show("waits");
}

static void tick(int sig)
{
	set_t usr = BIT(SIGUSR1), old;
	ticks++;
	mask(SIG_BLOCK, &usr, &old);
	mask(SIG_SETMASK, &old, 0);
}

/* ticking has signals come from outside at any time. */
static void ticking(long rounds, long us)
{
	struct itimerval every = {{0, us}, {0, us}}, never = {{0, 0}, {0, 0}};
	set_t alarm = BIT(SIGALRM), none = 0;
	long early = 0, late = 0;

	on(SIGALRM, tick, 0);
	setitimer(ITIMER_REAL, &every, 0);
	for (long i = 0; i < rounds || ticks < 3; i++) {
		set_t waits = 0;
		mask(SIG_BLOCK, i % 8 ? &alarm : &all, 0);
		int was = ticks;
		if (i % 16 == 0)
			busy(20000);
		early += ticks != was;
		syscall(SYS_rt_sigpending, &waits, 8);
		mask(SIG_SETMASK, &none, 0);
		late += waits & alarm && ticks == was;
	}
	setitimer(ITIMER_REAL, &never, 0);
	printf("ticking: %ld early, %ld late, mask %lx\n", early, late, now());
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "mask") == 0) {
		printf("executed: %lx\n", now());
		return 0;
	}
	long rounds = argc > 1 ? atol(argv[1]) : 300, us = argc > 2 ? atol(argv[2]) : 2000;

	on(SIGUSR1, count, 0), on(SIGUSR2, count, 0), on(SIGRTMIN + 1, count, 0);
	for (int i = 0; i < 50; i++)
		now(); /* so that it has the agent */
	pending();
	errors();
	closed(10000 * rounds);
	waits();
	children(argv[0]);
	if (rounds) {
		threads(rounds);
		ticking(10 * rounds, us);
	}
	return 0;
}
