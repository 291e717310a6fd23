// A child that is not recorded writes with pwrite(2) to a file that its parent maps:
// "read" maps it shared and read-only, "private" private, "later" shared and
// writable after the child was made.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
	char name[] = "childwrites-XXXXXX";
	int fd = mkstemp(name), go[2];
	unlink(name);
	ftruncate(fd, 8192);
	int later = !strcmp(argv[1], "later");
	volatile char *p = 0;
	if (!later)
		p = mmap(0, 8192, PROT_READ, strcmp(argv[1], "read") ? MAP_PRIVATE : MAP_SHARED, fd, 0);
	pipe(go);
	if (fork() == 0) {
		char c;
		read(go[0], &c, 1);
		pwrite(fd, "x", 1, 0);
		_exit(0);
	}
	if (later)
		p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int sum = p[0];
	usleep(20000);
	write(go[1], "g", 1);
	wait(0);
	sum += p[0];
	printf("%d\n", sum);
	fflush(stdout);
	abort();
}
