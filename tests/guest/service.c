// A service as systemd starts them: tells that it is ready, reloads at SIGHUP, ends at SIGTERM with
// code 7, and tells each time what it was told itself.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void notify(const char *text) {
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	strncpy(to.sun_path, getenv("NOTIFY_SOCKET"), sizeof to.sun_path - 1);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sendto(fd, text, strlen(text), 0, (struct sockaddr *)&to, sizeof to) < 0)
		_exit(99);
	close(fd);
}

static int mine(const char *name) { return getenv(name) && atoi(getenv(name)) == getpid(); }

int main(void) {
	char text[200];
	int sig;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, 0);
	snprintf(text, sizeof text, "READY=1\nSTATUS=pid %d, sockets %d %s, watchdog %d, main %d, pidfd %s", getpid(),
		mine("LISTEN_PID"), getenv("LISTEN_FDS"), mine("WATCHDOG_PID"), mine("SYSTEMD_EXEC_PID"), getenv("LISTEN_PIDFDID") ? "given" : "none");
	notify(text);
	for (;;) {
		sigwait(&set, &sig);
		notify(sig == SIGHUP ? "RELOADING=1" : "STOPPING=1");
		if (sig == SIGTERM)
			return 7;
	}
}
