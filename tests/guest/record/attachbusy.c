// Fifty threads do all that there is to do while recorders attach and go again: they compute, hold values in
// registers, ask for the time, hand bytes on, wait with and without a time-out, make children and threads, and send
// and take signals. Lines on standard input: "pause" has all of them stand still, until "on"; "go" ends the
// program. What is printed is the same however long it took, unless something was not as by itself.

#define _GNU_SOURCE
#include <asm/prctl.h>
#include <errno.h>
#include <fenv.h>
#include <linux/futex.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static atomic_int paused, over, standing, waiting;
static atomic_int gate; // a futex
static char *self;

// One count for each thing that must not happen, or must not be lost.
enum { lostCounts, lostRegisters, timeBack, lostBytes, badWaits, badChildren, badThreads, lostSignals, badFaults, kindsOfWrong };
static const char *const wrongNames[] = {
	"counts", "registers", "times", "bytes", "waits", "children", "threads", "signals", "faults",
};
static atomic_long wrong[kindsOfWrong];

static void fail(int what) { wrong[what]++; }

static int futex(atomic_int *word, int op, int value, const struct timespec *t) {
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, t, NULL, 0);
}

// goesOn reports whether the program is to go on, once it is not paused.
static int goesOn(void) {
	if (paused) {
		int now = gate;
		standing++;
		while (paused && gate == now)
			futex(&gate, FUTEX_WAIT, now, NULL);
		standing--;
	}
	return !over;
}

static double seconds(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

// Computing: locks and counts.

enum { lockers = 6, locks = 3 };
static pthread_mutex_t lock[locks] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static long counted[locks];
static atomic_long done;

static void counts(long id) {
	unsigned x = id * 7 + 1;
	while (goesOn()) {
		x = x * 1103515245 + 12345;
		int i = (x >> 16) % locks;
		pthread_mutex_lock(&lock[i]);
		counted[i]++;
		for (volatile int k = 0; k < 200; k++)
			;
		pthread_mutex_unlock(&lock[i]);
		done++;
		free(memset(malloc((x >> 20 & 1023) + 1), 1, 1));
	}
}

// Values in registers, over a loop that uses no other: general, vector and x87 ones, and what controls them.

static void registers(long id) {
	struct { unsigned long r[6]; } want, got;
	unsigned char vector[16][32] __attribute__((aligned(32))), after[16][32] __attribute__((aligned(32)));
	int avx = __builtin_cpu_supports("avx");
	unsigned round = 0;
	while (goesOn()) {
		round++;
		for (int i = 0; i < 6; i++)
			want.r[i] = (id * 1000003 + round) * (i + 0x9e3779b97f4a7c15ul);
		for (int i = 0; i < 16; i++)
			memset(vector[i], id * 16 + i + round, 32);
		memset(after, 0, sizeof after);
		unsigned mxcsr = (_mm_getcsr() & ~0x6000u) | (round & 3) << 13, csr;
		_mm_setcsr(mxcsr);
		long double x87 = 1.0L / (3 + id + round), back;
		if (avx)
			for (int i = 0; i < 1; i++)
				__asm__ volatile(
					"vmovdqa (%[v]), %%ymm0\n vmovdqa 32(%[v]), %%ymm1\n vmovdqa 224(%[v]), %%ymm7\n vmovdqa 480(%[v]), %%ymm15\n"
					"fldt %[x]\n"
					"mov (%[w]), %%rbx\n mov 8(%[w]), %%r12\n mov 16(%[w]), %%r13\n mov 24(%[w]), %%r14\n mov 32(%[w]), %%r15\n mov 40(%[w]), %%r11\n"
					"mov $200000, %%ecx\n"
					"1: dec %%ecx\n jnz 1b\n"
					"rdtsc\n"
					"mov $200000, %%ecx\n"
					"1: dec %%ecx\n jnz 1b\n"
					"mov %%rbx, (%[g])\n mov %%r12, 8(%[g])\n mov %%r13, 16(%[g])\n mov %%r14, 24(%[g])\n mov %%r15, 32(%[g])\n mov %%r11, 40(%[g])\n"
					"fstpt %[b]\n"
					"vmovdqa %%ymm0, (%[a])\n vmovdqa %%ymm1, 32(%[a])\n vmovdqa %%ymm7, 224(%[a])\n vmovdqa %%ymm15, 480(%[a])\n"
					"vzeroupper\n"
					: [b] "=m"(back)
					: [v] "r"(vector), [a] "r"(after), [w] "r"(&want), [g] "r"(&got), [x] "m"(x87)
					: "rax", "rbx", "rcx", "rdx", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm7", "xmm15", "memory", "cc");
		else
			__asm__ volatile(
				"movdqa (%[v]), %%xmm0\n movdqa 32(%[v]), %%xmm1\n movdqa 224(%[v]), %%xmm7\n movdqa 480(%[v]), %%xmm15\n"
				"fldt %[x]\n"
				"mov (%[w]), %%rbx\n mov 8(%[w]), %%r12\n mov 16(%[w]), %%r13\n mov 24(%[w]), %%r14\n mov 32(%[w]), %%r15\n mov 40(%[w]), %%r11\n"
				"mov $400000, %%ecx\n"
				"1: dec %%ecx\n jnz 1b\n"
				"rdtsc\n"
				"mov %%rbx, (%[g])\n mov %%r12, 8(%[g])\n mov %%r13, 16(%[g])\n mov %%r14, 24(%[g])\n mov %%r15, 32(%[g])\n mov %%r11, 40(%[g])\n"
				"fstpt %[b]\n"
				"movdqa %%xmm0, (%[a])\n movdqa %%xmm1, 32(%[a])\n movdqa %%xmm7, 224(%[a])\n movdqa %%xmm15, 480(%[a])\n"
				: [b] "=m"(back)
				: [v] "r"(vector), [a] "r"(after), [w] "r"(&want), [g] "r"(&got), [x] "m"(x87)
				: "rax", "rbx", "rcx", "rdx", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm7", "xmm15", "memory", "cc");
		csr = _mm_getcsr();
		int size = avx ? 32 : 16;
		if (memcmp(&want, &got, sizeof want) || back != x87 || csr != mxcsr)
			fail(lostRegisters);
		for (int i = 0; i < 16; i++)
			if ((i < 2 || i == 7 || i == 15) && memcmp(vector[i], after[i], size))
				fail(lostRegisters);
		_mm_setcsr(mxcsr & ~0x6000u);
		unsigned long gs = 1;
		if (syscall(SYS_arch_prctl, ARCH_GET_GS, &gs) || gs)
			fail(lostRegisters);
	}
}

// The time.

static void clocks(long id) {
	clockid_t which = id % 2 ? CLOCK_MONOTONIC : CLOCK_MONOTONIC_COARSE;
	struct timespec last = {0}, now;
	while (goesOn())
		for (int i = 0; i < 50; i++) {
			if (clock_gettime(which, &now) || now.tv_sec < last.tv_sec || now.tv_sec == last.tv_sec && now.tv_nsec < last.tv_nsec || sched_getcpu() < 0)
				fail(timeBack);
			last = now;
			unsigned long tsc = __rdtsc();
			if (__rdtsc() == tsc)
				fail(timeBack);
		}
}

// Bytes, handed on from thread to thread through pipes, in a ring that one of them leads.

enum { handers = 10 };
static int ring[handers][2];

static void handsOn(long id) {
	int in = ring[id][0], out = ring[(id + 1) % handers][1];
	unsigned char sent = 0, got;
	for (;;) {
		if (id == 0) {
			int more = goesOn();
			sent = more ? sent % 200 + 1 : 0;
			if (write(out, &sent, 1) != 1)
				fail(lostBytes);
			if (read(in, &got, 1) != 1 || got != sent)
				fail(lostBytes);
			if (!more)
				return;
			continue;
		}
		if (read(in, &got, 1) != 1 || got && got != sent % 200 + 1 || write(out, &got, 1) != 1)
			fail(lostBytes);
		sent = got;
		if (!got)
			return;
	}
}

// Waiting, with a time-out that must pass, and no signal that would end it.

static void waitsFor(long id) {
	atomic_int word = 0;
	struct timespec ms = {0, 2000000};
	struct epoll_event e;
	int ep = epoll_create1(EPOLL_CLOEXEC);
	while (goesOn()) {
		double start = seconds();
		long r = -2, want = 0;
		switch (id % 4) {
		case 0: r = nanosleep(&ms, NULL); break;
		case 1: r = poll(NULL, 0, 2); break;
		case 2: r = futex(&word, FUTEX_WAIT, 0, &ms) < 0 && errno == ETIMEDOUT ? 0 : -1; break;
		case 3: r = epoll_wait(ep, &e, 1, 2); break;
		}
		if (r != want || seconds() - start < 0.0019)
			fail(badWaits);
	}
	close(ep);
}

// Waiting for ever: for a byte, a word, a signal.

static int never[2];
static atomic_int word;

static void waitsLong(long id) {
	char c = 0;
	sigset_t s;
	int sig;
	waiting++;
	switch (id % 3) {
	case 0:
		if (read(never[0], &c, 1) != 1 || c != 'x')
			fail(badWaits);
		break;
	case 1:
		while (!word)
			if (futex(&word, FUTEX_WAIT, 0, NULL) < 0 && errno != EAGAIN)
				fail(badWaits);
		break;
	case 2:
		sigemptyset(&s);
		sigaddset(&s, SIGRTMIN + 5);
		if (sigwait(&s, &sig) || sig != SIGRTMIN + 5)
			fail(badWaits);
		break;
	}
	waiting--;
}

// Children and threads.

extern char **environ;

static void *gives(void *arg) {
	volatile unsigned long tsc = __rdtsc();
	(void)tsc;
	return arg;
}

static void makes(long id) {
	char *args[] = {self, "child", NULL};
	while (goesOn()) {
		pid_t pid = -1;
		int status = -1, want = 0;
		switch (id % 4) {
		case 0:
			if ((pid = fork()) == 0) {
				volatile unsigned long tsc = __rdtsc();
				(void)tsc;
				_exit(3);
			}
			want = 3 << 8;
			break;
		case 1:
			if ((pid = vfork()) == 0) {
				execv("/proc/self/exe", args);
				_exit(1);
			}
			want = 4 << 8;
			break;
		case 2:
			if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, environ))
				fail(badChildren);
			want = 4 << 8;
			break;
		case 3:
			for (int i = 0; i < 20; i++) {
				pthread_t t;
				void *r = NULL;
				if (pthread_create(&t, NULL, gives, &status) || pthread_join(t, &r) || r != &status)
					fail(badThreads);
			}
			continue;
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != want)
			fail(badChildren);
		usleep(1000);
	}
}

// Signals: queued ones between two threads, the process's timer, faults.

static atomic_long sent, taken, ticked;
static atomic_int sentAll;
static pthread_t taker;

static void takes(int sig, siginfo_t *si, void *u) {
	(void)u, (void)sig;
	taken += si->si_code == SI_QUEUE && si->si_value.sival_int == 77;
}

static void ticks(int sig) {
	(void)sig;
	ticked++;
}

static __thread sigjmp_buf away;

static void faulted(int sig, siginfo_t *si, void *u) {
	(void)u, (void)sig;
	siglongjmp(away, si->si_addr == (void *)16 ? 1 : 2);
}

static void signals(long id) {
	sigset_t mine;
	struct itimerval often = {{0, 3000}, {0, 3000}}, none = {0};
	sigemptyset(&mine);
	sigaddset(&mine, id == 1 ? SIGRTMIN + 6 : SIGALRM);
	if (id == 1 || id == 2)
		pthread_sigmask(SIG_UNBLOCK, &mine, NULL);
	long before;
	while (goesOn() || id == 1 && !(sentAll && taken >= sent))
		switch (id) {
		case 0: // sends what the next takes
			if (pthread_sigqueue(taker, SIGRTMIN + 6, (union sigval){.sival_int = 77}))
				fail(lostSignals);
			sent++;
			usleep(200);
			break;
		case 1:
			usleep(300);
			break;
		case 2:
			before = ticked;
			setitimer(ITIMER_REAL, &often, NULL);
			for (double start = seconds(); ticked < before + 3;)
				if (seconds() - start > 60) {
					fail(lostSignals);
					break;
				}
			setitimer(ITIMER_REAL, &none, NULL);
			break;
		case 3:
			switch (sigsetjmp(away, 1)) {
			case 0: *(volatile int *)16 = 1; __attribute__((fallthrough));
			case 2: fail(badFaults);
			}
			usleep(500);
		}
	if (id == 0)
		sentAll = 1;
}

static struct {
	void (*does)(long id);
	int threads;
} const roles[] = {{counts, lockers}, {registers, 6}, {clocks, 6}, {handsOn, handers}, {waitsFor, 8}, {waitsLong, 6}, {makes, 4}, {signals, 4}};

static struct job {
	int role;
	long id;
	pthread_t thread;
	int whole; // its restartable sequences work at its end
} jobs[50];

static pthread_barrier_t started;

static void *works(void *arg) {
	struct job *j = arg;
	sigset_t all;
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	free(malloc(100));
	pthread_barrier_wait(&started);
	roles[j->role].does(j->id);
	struct rseq *r = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	j->whole = __rseq_size == 0 || (int)r->cpu_id >= 0;
	return NULL;
}

static void end(int n) {
	over = 1;
	for (int i = 0; i < 3; i++) {
		char x = 'x';
		if (write(never[1], &x, 1) != 1)
			fail(badWaits);
	}
	word = 1;
	futex(&word, FUTEX_WAKE, 100, NULL);
	for (int i = 0; i < n; i++) {
		if (roles[jobs[i].role].does == waitsLong && jobs[i].id % 3 == 2)
			pthread_kill(jobs[i].thread, SIGRTMIN + 5);
		pthread_join(jobs[i].thread, NULL);
	}
}

int main(int argc, char **argv) {
	if (argc > 1) {
		volatile unsigned long tsc = __rdtsc();
		(void)tsc;
		return 4;
	}
	self = argv[0];
	mallopt(M_ARENA_MAX, 1); // what is mapped stays the same
	mallopt(M_TOP_PAD, 16 << 20);
	mallopt(M_TRIM_THRESHOLD, 64 << 20);
	cpu_set_t before, after;
	sched_getaffinity(0, sizeof before, &before);
	sigaction(SIGRTMIN + 6, &(struct sigaction){.sa_sigaction = takes, .sa_flags = SA_SIGINFO}, NULL);
	sigaction(SIGALRM, &(struct sigaction){.sa_handler = ticks}, NULL);
	sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = faulted, .sa_flags = SA_SIGINFO}, NULL);
	signal(SIGTRAP, SIG_IGN); // and so it stays, where a tracer has it sent for each instruction
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	pipe(never);
	for (int i = 0; i < handers; i++)
		pipe(ring[i]);
	int n = 0, standers = 0;
	for (int r = 0; r < (int)(sizeof roles / sizeof *roles); r++)
		for (int i = 0; i < roles[r].threads; i++)
			jobs[n++] = (struct job){.role = r, .id = i};
	pthread_barrier_init(&started, NULL, n + 1);
	for (int i = 0; i < n; i++) {
		pthread_create(&jobs[i].thread, NULL, works, &jobs[i]);
		if (roles[jobs[i].role].does == signals && jobs[i].id == 1)
			taker = jobs[i].thread;
	}
	pthread_barrier_wait(&started);
	// Of those that hand bytes on the first alone stands still, and those that wait for ever never do.
	standers = n - (handers - 1) - 6;
	printf("ready %d\n", n);
	fflush(stdout);
	char line[16];
	while (fgets(line, sizeof line, stdin) && strcmp(line, "go\n")) {
		int pause = !strcmp(line, "pause\n");
		if (pause)
			paused = 1;
		else {
			paused = 0;
			gate++;
			futex(&gate, FUTEX_WAKE, 100, NULL);
		}
		while (pause && (standing < standers || waiting < 6))
			usleep(1000);
		puts(line[0] == 'p' ? "paused" : "on");
		fflush(stdout);
	}
	end(n);
	long sum = 0, whole = 0;
	for (int i = 0; i < locks; i++)
		sum += counted[i];
	if (sum != done || sum == 0)
		fail(lostCounts);
	if (sent != taken || ticked == 0)
		fail(lostSignals);
	for (int i = 0; i < n; i++)
		whole += jobs[i].whole;
	for (int i = 0; i < kindsOfWrong; i++)
		printf("%s: %ld wrong\n", wrongNames[i], (long)wrong[i]);
	sched_getaffinity(0, sizeof after, &after);
	int tsc = 0;
	prctl(PR_GET_TSC, &tsc);
	printf("%ld of %d threads whole, affinity %s, RDTSC %s\n", whole, n, CPU_EQUAL(&before, &after) ? "same" : "changed", tsc == PR_TSC_ENABLE ? "runs" : "faults");
	return 5;
}
