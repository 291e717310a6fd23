// A file is cut while it is mapped: an access beyond its end is SIGBUS, which
// the program survives; then the file grows again and reads zero there.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static sigjmp_buf out;
static volatile long at, code;
static char *base;

static void bus(int s, siginfo_t *si, void *u) {
	(void)s, (void)u;
	at = (char *)si->si_addr - base, code = si->si_code;
	siglongjmp(out, 1);
}

int main(void) {
	char name[] = "/tmp/vplay-truncXXXXXX", page[4096];
	int fd = mkstemp(name);
	unlink(name);
	memset(page, 'q', sizeof page);
	for (int i = 0; i < 4; i++) write(fd, page, sizeof page);
	struct sigaction sa = {.sa_sigaction = bus, .sa_flags = SA_SIGINFO};
	sigaction(SIGBUS, &sa, 0);
	for (int flags = MAP_SHARED; flags <= MAP_PRIVATE; flags++) {
		ftruncate(fd, 4 * 4096);
		base = mmap(0, 4 * 4096, 3, flags, fd, 0);
		volatile char *v = base;
		printf("%d %d\n", v[10], v[3 * 4096]);
		ftruncate(fd, 4096 + 100);
		printf("%d %d\n", v[4096], v[4096 + 200]); // the rest of the last page
		if (sigsetjmp(out, 1) == 0) {
			v[2 * 4096 + 5] = 1;
			puts("no fault");
		} else {
			printf("SIGBUS at %ld code %ld\n", at, code);
		}
		ftruncate(fd, 3 * 4096);
		printf("%d\n", v[2 * 4096 + 5]);
		munmap(base, 4 * 4096);
	}
	return 0;
}
