// SIGCHLD handlers with siginfo, stops and continues of a child included.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int codes[32], stat[32], n;
static volatile pid_t who;
static void h(int s, siginfo_t *si, void *u) {
	(void)s, (void)u;
	codes[n] = si->si_code, stat[n++] = si->si_status;
	who = si->si_pid;
}

// until waits for the kernel's notices, which may merge when they are many.
static void until(int k) {
	while (n < k) usleep(1000);
}

int main(void) {
	struct sigaction sa;
	memset(&sa, 0, sizeof sa);
	sa.sa_sigaction = h, sa.sa_flags = SA_SIGINFO | SA_RESTART;
	sigaction(SIGCHLD, &sa, 0);
	int st;
	pid_t p = fork();
	if (p == 0) _exit(9);
	waitpid(p, &st, 0);
	until(1);
	p = fork();
	if (p == 0) {
		raise(SIGSTOP);
		for (;;) pause();
	}
	waitpid(p, &st, WUNTRACED);
	until(2);
	printf("stopped %d by %d\n", WIFSTOPPED(st), WSTOPSIG(st));
	kill(p, SIGCONT);
	waitpid(p, &st, WCONTINUED);
	until(3);
	printf("continued %d\n", WIFCONTINUED(st));
	kill(p, SIGKILL);
	siginfo_t info;
	waitid(P_PID, p, &info, WEXITED);
	until(4);
	printf("killed %d by %d\n", info.si_code == CLD_KILLED, info.si_status);
	for (int i = 0; i < n; i++) printf("%d/%d ", codes[i], stat[i]);
	printf("\n%d\n", who == p);
	return 0;
}
