// The program becomes another one in the middle, through a script, with a
// signal blocked, one pending and one ignored across it.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
	if (argc > 1 && !strcmp(argv[1], "second")) {
		sigset_t p, m;
		sigpending(&p), sigprocmask(SIG_SETMASK, 0, &m);
		struct sigaction sa;
		sigaction(SIGUSR2, 0, &sa);
		printf("second: pending %d blocked %d ignored %d\n", sigismember(&p, SIGUSR1), sigismember(&m, SIGUSR1), sa.sa_handler == SIG_IGN);
		return 12;
	}
	sigset_t m;
	sigemptyset(&m), sigaddset(&m, SIGUSR1);
	sigprocmask(SIG_BLOCK, &m, 0);
	raise(SIGUSR1);
	signal(SIGUSR2, SIG_IGN);
	char name[] = "/tmp/vplay-scriptXXXXXX";
	int fd = mkstemp(name);
	char text[4200];
	int n = snprintf(text, sizeof text, "#!/bin/sh\nrm %s\necho script \"$1\"\nexec \"$1\" second\n", name);
	write(fd, text, n);
	fchmod(fd, 0700);
	close(fd);
	printf("first\n");
	fflush(stdout);
	execl("/no/such/program", "x", (char *)0);
	execl(name, name, argv[0], (char *)0);
	return 3;
}
