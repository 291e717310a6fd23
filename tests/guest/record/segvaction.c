// The action for SIGSEGV, which the recorder has a hand in (segvaction ACTION WAY): what the program is told of it, and what becomes
// of a SIGSEGV of each kind.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void tell(const char *when)
{
	struct sigaction sa;
	memset(&sa, 0x55, sizeof sa);
	sigaction(SIGSEGV, 0, &sa);
	printf("%s: %s %x\n", when, sa.sa_handler == SIG_DFL ? "default" : sa.sa_handler == SIG_IGN ? "ignored" : "handled", sa.sa_flags);
	fflush(stdout);
}

static void handler(int sig, siginfo_t *si, void *u) { printf("handler: code %d\n", si->si_code); fflush(stdout); _exit(3); }

static void rdtsc(void) { unsigned a, d; __asm__ volatile("rdtsc" : "=a"(a), "=d"(d)); }

static void null(void) { *(volatile int *)8 = 1; }
static void noncanonical(void) { *(volatile int *)(1ul << 63) = 1; }
static void raised(void) { raise(SIGSEGV); }
static void killed(void) { kill(getpid(), SIGSEGV); for (;;) pause(); }
static void queued(void) { sigqueue(getpid(), SIGSEGV, (union sigval){ 7 }); for (;;) pause(); }
static void blocked(void)
{
	sigset_t set;
	sigemptyset(&set), sigaddset(&set, SIGSEGV);
	sigprocmask(SIG_BLOCK, &set, 0);
	rdtsc();
	raise(SIGSEGV);
	sigprocmask(SIG_UNBLOCK, &set, 0);
}
static void faultBlocked(void)
{
	sigset_t set;
	sigemptyset(&set), sigaddset(&set, SIGSEGV);
	sigprocmask(SIG_BLOCK, &set, 0);
	null();
}
static int deep(int n) { volatile char b[4096]; b[0] = n; return deep(n + 1) + b[0]; }
static void overflow(void) { deep(0); }
static void jump(void) { ((void (*)(void))0x1000)(); }
static void inCall(void) { if (fork() == 0) { usleep(20000); kill(getppid(), SIGSEGV); _exit(0); } for (;;) pause(); }

static void handles(void) { struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO }; sigaction(SIGSEGV, &sa, 0); }
static void handlesAndBack(void)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO }, old;
	sigaction(SIGSEGV, &sa, &old);
	sigaction(SIGSEGV, &old, &sa);
	printf("back: %d\n", sa.sa_sigaction == handler), fflush(stdout);
}
static void tellOnly(void) {}
static void ignores(void) { signal(SIGSEGV, SIG_IGN); }

// A child that shares the actions.
static int sharer(void *arg) { rdtsc(); handles(); rdtsc(); return 0; }
static void shares(void)
{
	char *stack = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t p = clone(sharer, stack + (1 << 16), CLONE_VM | CLONE_SIGHAND | SIGCHLD, 0);
	waitpid(p, 0, 0);
	tell("shared");
	null();
}

static struct { const char *name; void (*run)(void); } ways[] = {
	{ "null", null }, { "noncanonical", noncanonical }, { "raise", raised }, { "kill", killed }, { "queue", queued }, { "blocked", blocked },
	{ "faultblocked", faultBlocked }, { "overflow", overflow }, { "jump", jump }, { "incall", inCall }, { "shares", shares }, { "none", tellOnly },
};
static struct { const char *name; void (*run)(void); } firsts[] = { { "default", 0 }, { "handled", handles }, { "back", handlesAndBack }, { "ignored", ignores } };

int main(int argc, char **argv)
{
	tell("begin");
	rdtsc();
	for (unsigned i = 0; i < sizeof firsts / sizeof *firsts; i++)
		if (!strcmp(firsts[i].name, argv[1]) && firsts[i].run)
			firsts[i].run();
	tell("then");
	rdtsc();
	for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++)
		if (!strcmp(ways[i].name, argv[2]))
			ways[i].run();
	tell("end");
	return 0;
}
