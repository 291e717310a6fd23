// Several signals at one instruction: pending ones are all delivered when they
// are unblocked, frame upon frame, with no instruction between.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile int order[256], n;
static void *volatile pcs[256];

static void h(int s, siginfo_t *si, void *u) {
	(void)u;
	order[n] = s;
	pcs[n++] = si->si_value.sival_ptr;
}

int main(void) {
	struct sigaction sa;
	memset(&sa, 0, sizeof sa);
	sa.sa_sigaction = h, sa.sa_flags = SA_SIGINFO;
	int sigs[] = {SIGUSR1, SIGUSR2, SIGHUP, SIGRTMIN + 1, SIGRTMIN + 2};
	sigset_t m, o;
	sigemptyset(&m);
	for (int i = 0; i < 5; i++) sigaction(sigs[i], &sa, 0), sigaddset(&m, sigs[i]);
	for (int round = 0; round < 5; round++) {
		sigprocmask(SIG_BLOCK, &m, &o);
		for (int i = 0; i < 5; i++) {
			union sigval v = {.sival_int = i * 10 + round};
			sigqueue(getpid(), sigs[i], v);
			sigqueue(getpid(), sigs[i], v); // real-time ones queue, others do not
		}
		sigprocmask(SIG_SETMASK, &o, 0);
		for (int i = 0; i < n; i++) printf("%d:%d ", order[i], (int)(long)pcs[i]);
		puts("");
		n = 0;
	}
	return 0;
}
