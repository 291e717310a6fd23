// A program for moving about in: synchronous signals with handlers (two at one
// instruction among them), a fault that is handled, REP instructions, system
// calls that write memory, calls that end the interval, trapped instructions.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

volatile int counter;
volatile int handled;
static char *page;
char from[300], to[300];

void on_signal(int s) {
	handled += s;
}

void on_fault(int s, siginfo_t *si, void *ctx) {
	(void)ctx;
	handled += s;
	mprotect((void *)((uintptr_t)si->si_addr & ~4095ul), 4096, PROT_READ | PROT_WRITE);
}

void bump(int n) {
	counter += n;
}

int main(void) {
	struct sigaction a = {.sa_handler = on_signal}, f = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	sigaction(SIGUSR1, &a, 0);
	sigaction(SIGUSR2, &a, 0);
	sigaction(SIGSEGV, &f, 0);
	page = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int p[2];
	if (pipe(p)) return 2;
	for (int i = 0; i < 6; i++) {
		bump(i);
		raise(SIGUSR1);
		page[i] = (char)i; // faults when it is read-only
		mprotect(page, 4096, PROT_READ);
		memset(from, i, sizeof from);
		void *d = to, *s = from;
		size_t n = sizeof to;
		__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
		uint32_t lo, hi;
		__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
		if (write(p[1], &lo, 4) != 4 || read(p[0], to + 8 * i, 4) != 4) return 3;
		sigset_t both, old;
		sigemptyset(&both);
		sigaddset(&both, SIGUSR1);
		sigaddset(&both, SIGUSR2);
		sigprocmask(SIG_BLOCK, &both, &old);
		kill(getpid(), SIGUSR1);
		kill(getpid(), SIGUSR2);
		sigprocmask(SIG_SETMASK, &old, 0); // two frames at one instruction
		if (i % 2) {
			pid_t c = vfork(); // ends the interval
			if (c == 0) _exit(0);
			waitpid(c, 0, 0);
		}
		bump(1);
	}
	printf("%d %d\n", counter, handled);
	return counter & 15;
}
