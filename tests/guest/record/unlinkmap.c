// Unlinks a file that it has mapped, as the Java virtual machine does with its performance data.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
	char name[] = "unlinkmap-XXXXXX";
	int fd = mkstemp(name);
	if (fd < 0 || ftruncate(fd, 8192)) return 1;
	volatile int *p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	p[0] = 1;
	getppid();
	unlink(name);
	p[1024] = p[0] + 1;
	getppid();
	printf("%d\n", p[1024]);
	return 0;
}
