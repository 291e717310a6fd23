// A fault that the program catches. By the number of arguments: its handler aborts (none), sends the
// signal once more and returns (1), sends it and stays (2), exits (3); or it has been repaired, and the
// program aborts later for another reason (4), or has been left by a longjmp (5, and 6, where it aborts in the
// handler of another signal).
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int kind;
static sigjmp_buf out;
static char *page;

static void on_fault(int signo) {
	switch (kind) {
	case 1:
		abort();
	case 2:
		signal(signo, SIG_DFL);
		raise(signo);
		return;
	case 3: {
		sigset_t all;
		sigfillset(&all);
		signal(signo, SIG_DFL);
		sigprocmask(SIG_UNBLOCK, &all, NULL);
		raise(signo);
		return;
	}
	case 4:
		_exit(9);
	case 5:
		mprotect(page, 4096, PROT_READ | PROT_WRITE);
		return;
	default:
		siglongjmp(out, 1);
	}
}

static void on_user(int signo) {
	(void)signo;
	abort();
}

int use(volatile char *p) {
	p[5] = 1; // FAULT
	return p[5];
}

int main(int argc, char **argv) {
	(void)argv;
	kind = argc;
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); // PAGE
	signal(SIGSEGV, on_fault);
	if (sigsetjmp(out, 1) == 0)
		use(page);
	if (kind == 7) {
		signal(SIGUSR1, on_user);
		raise(SIGUSR1);
	}
	abort();
}
