// Addresses change between private memory and a shared object while intervals end at
// any instruction, and stores replace bytes by what they were: what such an end's hash
// counts must not depend on who knows of which store.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, SIZE = 3 * PAGE, TURNS = 3000000 };

static volatile long sum;

// spin makes no call for some milliseconds.
static void spin(volatile char *p) {
	for (long i = 0; i < TURNS; i++) sum += i ^ p[0];
}

int main(void) {
	int fd = memfd_create("remapsame", 0);
	if (fd < 0 || ftruncate(fd, SIZE)) return 1;
	volatile char *one = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	volatile char *two = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset((char *)one, 1, SIZE);
	memset((char *)two, 2, SIZE);
	spin(two);
	for (int i = 0; i < 3; i++) {
		// private memory becomes a view of the object, and a store changes nothing
		if (mmap((char *)two, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != two) return 2;
		two[PAGE] = one[PAGE];
		spin(two);
		two[2 * PAGE + i] = (char)(i + 7); // one does
		spin(one);
		// and the other way
		if (mmap((char *)two, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) != two) return 3;
		two[0] = (char)i;
		two[PAGE] = 0;
		spin(two);
		memset((char *)two, 2, SIZE);
		one[i] = 1;
		spin(one);
	}
	if (munmap((char *)one, SIZE)) return 4;
	spin(two);
	printf("%ld\n", sum);
	return 0;
}
