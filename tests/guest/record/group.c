// Signals and process groups: "default N" sends signal N to the group,
// "handle N" with a handler, "wait PID" prints what it gets until SIGUSR2 and
// whether it comes from PID.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int want;
static volatile sig_atomic_t end;

static void got(int sig, siginfo_t *si, void *c) {
	char b[80];
	int n = snprintf(b, sizeof b, "signal %d code %d from %s\n", sig, si->si_code, si->si_pid == want ? "the right one" : "another");
	write(1, b, n);
	if (sig == SIGUSR2)
		end = 1;
}

// The kernel's own rt_sigaction: glibc keeps 32 and 33 for itself.
static void handle(int sig) {
	if (sig == 32 || sig == 33)
		return;
	struct sigaction sa = {.sa_sigaction = got, .sa_flags = SA_SIGINFO | SA_RESTART};
	sigaction(sig, &sa, 0);
}

int main(int argc, char **argv) {
	if (!strcmp(argv[1], "wait")) {
		want = atoi(argv[2]);
		for (int i = 1; i <= 64; i++)
			handle(i);
		write(1, "ready\n", 6);
		while (!end)
			pause();
		return 7;
	}
	want = getpid();
	int sig = atoi(argv[2]);
	if (!strcmp(argv[1], "handle"))
		handle(sig);
	syscall(SYS_kill, 0, sig);
	usleep(20000);
	return 3;
}
