// A mapped file is cut while the program uses it: the first access behind its new end is SIGBUS.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 4 * 4096 };

static char *map;

static void cut(int fd) {
	if (ftruncate(fd, 4096)) exit(2); // CULPRIT
}

int main(void) {
	char name[] = "/tmp/cutfileXXXXXX";
	int fd = mkstemp(name);
	if (fd < 0 || unlink(name) || ftruncate(fd, SIZE)) return 1;
	map = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) return 1;
	for (int i = 0; i < SIZE; i += 4096) map[i] = 1;
	cut(fd);
	int sum = 0;
	for (int i = 0; i < SIZE; i += 4096) sum += map[i]; // CRASH
	return sum;
}
