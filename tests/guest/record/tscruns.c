// RDTSC in a program whose threads are switched to often: in its own code, with SIGSEGV blocked and ignored, in children, in code
// that is made meanwhile, and after the program has asked for it to fault.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

enum { ROUNDS = 4000 };
static int to[2], from[2];
static unsigned long last;
static sigjmp_buf out;

__attribute__((noinline)) static int later(void) {
	unsigned aux;
	unsigned long was = last, now = __rdtsc(), behind = __rdtscp(&aux);
	last = behind;
	return now > was && behind >= now;
}

#ifdef BARE // in a function that the unwind table does not have
unsigned long bare(void);
asm(".text\nbare: rdtsc\nshl $32, %rdx\nor %rdx, %rax\nret\n");
#endif

static void *echo(void *arg) {
	char c;
	int n = 0;
	while (read(to[0], &c, 1) == 1 && write(from[1], &c, 1) == 1)
		n += ((unsigned long)__rdtsc() & 0) + 1;
	*(int *)arg = n;
	return 0;
}

static int pass(int n) {
	char c = 0;
	int ok = 0;
	for (int i = 0; i < n; i++) {
		if (write(to[1], &c, 1) != 1 || read(from[0], &c, 1) != 1) return -1;
		if (i % 100 == 0) ok += later();
	}
	return ok;
}

static void caught(int sig) {
	(void)sig;
	siglongjmp(out, 1);
}

int main(void) {
	pthread_t t;
	int echoed = 0;
	volatile unsigned alike = 0x310f310f; // the bytes of RDTSC, in an instruction
	if (pipe(to) || pipe(from)) return 1;
	pthread_create(&t, 0, echo, &echoed);
	printf("%d in time\n", pass(ROUNDS));
#ifdef BARE
	unsigned long before = last;
	printf("bare: %d\n", bare() > before);
#endif
	printf("%x\n", alike);

	sigset_t m, old, now;
	struct sigaction sa;
	sigemptyset(&m), sigaddset(&m, SIGSEGV);
	sigprocmask(SIG_BLOCK, &m, &old);
	int ok = later();
	sigprocmask(SIG_SETMASK, &old, &now);
	printf("blocked: %d %d\n", ok, sigismember(&now, SIGSEGV));
	signal(SIGSEGV, SIG_IGN);
	ok = later();
	sigaction(SIGSEGV, 0, &sa);
	printf("ignored: %d %d\n", ok, sa.sa_handler == SIG_IGN);
	signal(SIGSEGV, SIG_DFL);

	int status;
	if (fork() == 0) _exit(later() ? 3 : 4);
	wait(&status);
	printf("child %d\n", WEXITSTATUS(status));
	if (vfork() == 0) _exit(later() ? 5 : 6);
	wait(&status);
	printf("vfork %d, %d in time\n", WEXITSTATUS(status), pass(500));

	static const unsigned char code[] = { 0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0, 0xc3 }; // RDTSC; SHL RDX, 32; OR RAX, RDX; RET
	void *made = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(made, code, sizeof code);
	unsigned long was = last, there = ((unsigned long (*)(void))made)();
	printf("made: %d %d, %d in time\n", there > was, later(), pass(500));
	munmap(made, 4096);
	printf("gone: %d in time\n", pass(1000));

	signal(SIGSEGV, caught);
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	if (sigsetjmp(out, 1) == 0) printf("ran %d\n", later());
	else printf("faulted\n");
	prctl(PR_SET_TSC, PR_TSC_ENABLE);
	printf("again %d\n", later());

	close(to[1]);
	pthread_join(t, 0);
	printf("echoed %d\n", echoed);
	return 0;
}
