// Sends a signal in the way the first argument says, the second being the number: to its
// process group, to its parent, or to every process, which it does in a small process
// id namespace only. It says so before, and again when it is still there afterwards.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int got;

static void note(int sig) { got = sig; }

// handle sets a handler also for the signals that the C library keeps for itself.
static void handle(int sig)
{
	struct { void (*handler)(int); unsigned long flags; void (*restorer)(void); unsigned long mask; } act = {note};
	struct sigaction set = {.sa_handler = note}, was[4];

	sigaction(SIGUSR1, &set, 0); // whose restorer is the C library's
	if (syscall(SYS_rt_sigaction, SIGUSR1, 0, was, 8))
		exit(1);
	memcpy(&act, was, sizeof act);
	if (syscall(SYS_rt_sigaction, sig, &act, 0, 8))
		exit(1);
}

int main(int argc, char **argv)
{
	int sig = atoi(argv[2]), err = 0;

	if (sig != SIGKILL)
		handle(sig);
	printf("sends %d\n", sig);
	fflush(stdout);
	if (!strcmp(argv[1], "group"))
		err = kill(0, sig);
	else if (!strcmp(argv[1], "minus"))
		err = kill(-getpgrp(), sig);
	else if (!strcmp(argv[1], "parent"))
		err = kill(getppid(), sig);
	else if (!strcmp(argv[1], "queue")) {
		siginfo_t si = {.si_signo = sig, .si_code = SI_QUEUE};
		err = syscall(SYS_rt_sigqueueinfo, getppid(), sig, &si);
	} else if (!strcmp(argv[1], "pidfd"))
		err = syscall(SYS_pidfd_send_signal, syscall(SYS_pidfd_open, getppid(), 0), sig, 0, 0);
	else if (!strcmp(argv[1], "all") && getpid() < 64)
		err = kill(-1, sig);
	else
		return 2;
	printf("after it: %d, got %d\n", err, got);
	return 0;
}
