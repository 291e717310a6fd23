// Descriptors by several calls, all closed but one, and one closed twice.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

int opens(const char *name) {
	return open(name, O_RDONLY); // OPENED
}

int main(void) {
	int p[2], s[2];
	if (pipe(p) || socketpair(AF_UNIX, SOCK_STREAM, 0, s)) return 2;
	int e = epoll_create1(0), v = eventfd(0, 0), d = dup(p[0]), f = fcntl(d, F_DUPFD, 50);
	FILE *file = fopen("/proc/self/maps", "r");
	fclose(file);
	int leaked = opens("/proc/self/stat");
	int all[] = {p[0], p[1], s[0], s[1], e, v, d, f};
	for (int i = 0; i < 8; i++) close(all[i]);
	close(f); // TWICE
	printf("%d\n", leaked);
	return 0;
}
