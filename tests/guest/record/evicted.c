// Reads a file through a private mapping, says where it is mapped, and waits until
// somebody has taken its pages out of the page tables.
//   evicted FILE READY GO: writes the address to READY, goes on when GO exists
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
	int fd = open(argv[1], O_RDONLY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st)) return 1;
	unsigned char *p = mmap(0, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED) return 1;
	unsigned sum = 0;
	for (long i = 0; i < st.st_size; i += 512) sum = sum * 31 + p[i];
	FILE *ready = fopen(argv[2], "w");
	fprintf(ready, "%p\n", (void *)p);
	fclose(ready);
	while (access(argv[3], F_OK)) usleep(1000);
	printf("%u\n", sum);
	return 0;
}
