// A program whose recorder is killed at some moment: what it prints does not depend on when. Its argument says what it
// does: tsc has threads that execute RDTSC; calls has threads that hand bytes to each other by pipes, with registers that
// are looked at after each call; broken has children that write to pipes without a reader; forks makes children, one after the other, that make some of their own; waits waits in
// calls meanwhile, and says then what it has of its own.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t rdtsc(void) {
	uint32_t lo, hi;
	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

static void *tsc(void *arg) {
	uint64_t last = 0;
	for (int i = 0; i < 3000; i++) {
		uint64_t now = rdtsc();
		if (now < last) {
			printf("time goes back\n");
			exit(1);
		}
		last = now;
		for (volatile int k = 0; k < 2000; k++)
			;
	}
	return arg;
}

// call makes a system call, and looks whether its arguments are still in their registers.
static long call(long nr, long a, long b, long c) {
	register long rdi __asm__("rdi") = a, rsi __asm__("rsi") = b, rdx __asm__("rdx") = c;
	register long r12 __asm__("r12") = 0x1212, r13 __asm__("r13") = 0x1313;
	long rax = nr;
	__asm__ volatile("syscall" : "+a"(rax), "+r"(rdi), "+r"(rsi), "+r"(rdx), "+r"(r12), "+r"(r13) : : "rcx", "r11", "memory");
	if (rdi != a || rsi != b || rdx != c || r12 != 0x1212 || r13 != 0x1313) {
		printf("call %ld: registers changed: %lx %lx %lx %lx %lx\n", nr, rdi, rsi, rdx, r12, r13);
		exit(1);
	}
	return rax;
}

static int ring[4][2];
enum { ROUNDS = 4000 };

static void *calls(void *arg) {
	int n = (int)(long)arg;
	for (int i = 0; i < ROUNDS; i++) {
		unsigned char b[3] = {0xee, 0xee, 0xee};
		long got = call(SYS_read, ring[n][0], (long)&b[1], 1);
		if (got != 1 || b[0] != 0xee || b[1] != (unsigned char)i || b[2] != 0xee) {
			printf("round %d of %d: %ld, %02x %02x %02x\n", i, n, got, b[0], b[1], b[2]);
			exit(1);
		}
		if (call(SYS_getppid, 0, 0, 0) < 0)
			exit(1);
		if (n == 3)
			b[1]++;
		if (n == 3 && i == ROUNDS - 1)
			break;
		if (call(SYS_write, ring[(n + 1) % 4][1], (long)&b[1], 1) != 1) {
			printf("write: %s\n", strerror(errno));
			exit(1);
		}
	}
	return 0;
}

static void *reads(void *arg) {
	char b[6] = "......";
	for (int n = 1; n < 5; n++)
		if (call(SYS_read, 0, (long)&b[n], 1) != 1)
			b[n] = '!';
	printf("read %.6s\n", b);
	return arg;
}

// owns says what the recorder has changed while it recorded.
static void owns(void) {
	cpu_set_t set;
	sched_getaffinity(0, sizeof set, &set);
	const struct rseq *r = (void *)((char *)__builtin_thread_pointer() + __rseq_offset);
	printf("%d CPUs, rseq %d\n", CPU_COUNT(&set), (int)r->cpu_id >= 0);
	tsc(0);
}

static int waits(void) {
	struct timespec now, then, two = {2, 0};
	pthread_t t;
	pthread_create(&t, 0, reads, 0);
	clock_gettime(CLOCK_MONOTONIC, &then);
	puts("ready");
	if (call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&two))
		puts("sleep interrupted");
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec * 1000000000L + now.tv_nsec - then.tv_sec * 1000000000L - then.tv_nsec < 2000000000L)
		puts("sleep too short");
	pthread_join(t, 0);
	pid_t pid = fork();
	if (pid == 0) {
		owns();
		_exit(3);
	}
	int status;
	if (waitpid(pid, &status, 0) != pid)
		puts("no child");
	printf("child %x\n", status);
	owns();
	return 7;
}

static int forks(int depth) {
	int sum = 0;
	for (int i = 0; i < (depth ? 3 : 60); i++) {
		pid_t pid = fork();
		if (pid == 0) {
			char text[32];
			snprintf(text, sizeof text, "%lx", (long)(rdtsc() > 0));
			if (depth < 1)
				forks(depth + 1);
			_exit(text[0] == '1' ? i % 7 : 99);
		}
		int status;
		if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
			printf("child %d: %x\n", i, status);
			exit(1);
		}
		sum += WEXITSTATUS(status);
	}
	return sum;
}

static volatile sig_atomic_t signals;

static void count(int sig) { signals++; }

// broken has each child write to a pipe that nobody reads: SIGPIPE, which comes with the end of the call, kills one half of them, and
// the others count it.
static int broken(void) {
	int killed = 0, counted = 0, p[2], status;
	for (int i = 0; i < 150; i++) {
		if (pipe(p) || close(p[0]))
			exit(1);
		pid_t pid = fork();
		if (pid == 0) {
			if (i % 2)
				signal(SIGPIPE, count);
			if (write(p[1], "x", 1) != -1 || errno != EPIPE)
				_exit(2);
			_exit(signals == 1 ? 1 : 3 + signals);
		}
		close(p[1]);
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			exit(1);
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE)
			killed++;
		else if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
			counted++;
		else
			printf("child %d: %x\n", i, status);
	}
	printf("broken: %d killed, %d counted\n", killed, counted);
	return 7;
}

int main(int argc, char **argv) {
	const char *how = argc > 1 ? argv[1] : "";
	setvbuf(stdout, 0, _IOLBF, 0);
	if (!strcmp(how, "waits"))
		return waits();
	if (!strcmp(how, "broken"))
		return broken();
	if (!strcmp(how, "forks")) {
		printf("forks: %d\n", forks(0));
		return 7;
	}
	pthread_t t[4];
	void *(*f)(void *) = !strcmp(how, "tsc") ? tsc : calls;
	for (int i = 0; i < 4; i++)
		if (pipe(ring[i]))
			return 1;
	for (long i = 0; i < 4; i++)
		if (pthread_create(&t[i], 0, f, (void *)i))
			return 1;
	if (f == calls && write(ring[0][1], "", 1) != 1)
		return 1;
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	printf("%s: done\n", how);
	return 7;
}
