// Maps memory of its own, stores and reads files into parts of it, gives pages up, makes it smaller, larger and
// unmaps it in parts, all the time and by chance; what is mapped anew is zero. With a number that many threads do.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCKS = 40, MOST = 24, PAGE = 4096, ROUNDS = 4000 };

static __thread struct { unsigned char *at; long pages; int parts; /* it may be two mappings, which cannot grow */ } blocks[BLOCKS];
static __thread unsigned long state, sum;
static int fd, rounds = ROUNDS;

static unsigned long draw(unsigned long n) {
	state = state * 6364136223846793005 + 1442695040888963407;
	return (state >> 33) % n;
}

static void add(unsigned char *p, long n) {
	for (long i = 0; i < n; i += 509) sum = sum * 31 + p[i];
}

// What the kernel has handed out is zero, whatever was there before.
static void make(int i) {
	blocks[i].pages = 1 + draw(MOST), blocks[i].parts = 0;
	blocks[i].at = mmap(0, blocks[i].pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (blocks[i].at == MAP_FAILED) abort();
	add(blocks[i].at, blocks[i].pages * PAGE);
}

static void drop(int i) {
	if (munmap(blocks[i].at, blocks[i].pages * PAGE - draw(PAGE))) abort(); // a length need not be whole pages
	blocks[i].pages = 0;
}

static void change(int i) {
	unsigned char *p = blocks[i].at;
	long n = blocks[i].pages, k = draw(n), size;
	switch (draw(8)) {
	case 0: memset(p + k * PAGE, i + 1, draw(PAGE)); break;
	case 1: sum = sum * 31 + pread(fd, p + k * PAGE, (n - k) * PAGE, draw(100000)); break; // short, at the file's end
	case 2: if (madvise(p + k * PAGE, 1 + draw((n - k) * PAGE), MADV_DONTNEED)) abort(); break;
	case 3:
		if (k == 0) break;
		if (mremap(p, n * PAGE, k * PAGE - draw(100), MREMAP_MAYMOVE) != p) abort();
		blocks[i].pages = k;
		break;
	case 4:
		if (blocks[i].parts) break;
		size = n + 1 + draw(4);
		if ((blocks[i].at = mremap(p, n * PAGE, size * PAGE, MREMAP_MAYMOVE)) == MAP_FAILED) abort();
		blocks[i].pages = size;
		break;
	case 5: // its end, or its start
		if (k == 0) break;
		if (draw(2)) { if (munmap(p + k * PAGE, (n - k) * PAGE)) abort(); blocks[i].pages = k; }
		else { if (munmap(p, k * PAGE)) abort(); blocks[i].at += k * PAGE; blocks[i].pages = n - k; }
		break;
	case 6: // another page in its midst
		blocks[i].parts = 1;
		if (mmap(p + k * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) abort();
		break;
	case 7: if (madvise(p + 1, PAGE, MADV_DONTNEED) == 0 || munmap(p + 1, PAGE) == 0) abort(); break;
	}
	add(blocks[i].at, blocks[i].pages * PAGE);
}

static void *run(void *seed) {
	state = (unsigned long)seed;
	for (int k = 0; k < rounds; k++) {
		int i = draw(BLOCKS);
		if (blocks[i].pages == 0) make(i);
		else if (draw(6) == 0) drop(i);
		else change(i);
	}
	for (int i = 0; i < BLOCKS; i++)
		if (blocks[i].pages) drop(i);
	return (void *)sum;
}

int main(int argc, char **argv) {
	int n = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t threads[n + 1];
	void *all = 0;
	fd = open(argv[0], O_RDONLY);
	if (n) rounds /= n;
	for (long i = 0; i < n; i++)
		if (pthread_create(&threads[i], 0, run, (void *)(i + 1))) abort();
	for (int i = 0; i < n; i++) {
		if (pthread_join(threads[i], &all)) abort();
		printf("%lx\n", (unsigned long)all);
	}
	printf("%lx\n", (unsigned long)run((void *)12345));
	return 0;
}
