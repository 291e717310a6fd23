// Maps a file shared and executes itself, which maps it as well, reads it and crashes.
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (argc == 2 && pwrite(fd, "some text", 9, 5000) != 9)
		return 1;
	char *p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return 1;
	printf("%s\n", p + 5000);
	fflush(stdout);
	if (argc == 2)
		execl("/proc/self/exe", argv[0], argv[1], "again", (char *)0);
	return *(volatile int *)0;
}
