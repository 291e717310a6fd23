// Maps parts of a file, shared (filemem shared) or for itself (filemem private), stores to them, writes and cuts the file
// meanwhile (not as filemem quiet, which is private otherwise), gives pages up, moves, protects and unmaps mappings, and has children look at them, all by chance. With one more
// argument it is a file in memory.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VIEWS = 12, MOST = 8, PAGE = 4096, FILE_PAGES = 32, ROUNDS = 1500 };

static struct { unsigned char *at; long first, pages; int readOnly; } views[VIEWS];
static unsigned long state = 4711, sum;
static int fd, shared, quiet;

static unsigned long draw(unsigned long n) {
	state = state * 6364136223846793005 + 1442695040888963407;
	return (state >> 33) % n;
}

static void look(int i) {
	for (long k = 0; k < views[i].pages * PAGE; k += 251) sum = sum * 31 + views[i].at[k];
}

static void make(int i) {
	views[i].pages = 1 + draw(MOST);
	views[i].first = draw(FILE_PAGES - views[i].pages + 1);
	views[i].readOnly = 0;
	views[i].at = mmap(0, views[i].pages * PAGE, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, fd, views[i].first * PAGE);
	if (views[i].at == MAP_FAILED) abort();
	if (draw(2)) look(i); // else no page of it is there yet
}

static void protect(int i) {
	views[i].readOnly ^= 1;
	if (mprotect(views[i].at, views[i].pages * PAGE, views[i].readOnly ? PROT_READ : PROT_READ | PROT_WRITE)) abort();
}

static void child(int i) {
	pid_t p = fork();
	int st;
	if (p == 0) {
		look(i);
		if (!views[i].readOnly) views[i].at[draw(views[i].pages * PAGE)] += 3;
		look(i);
		_exit(sum & 63);
	}
	if (waitpid(p, &st, 0) != p) abort();
	sum = sum * 31 + WEXITSTATUS(st);
}

static void change(int i) {
	unsigned char *p = views[i].at;
	long n = views[i].pages, k = draw(n), size;
	char b[600];
	switch (draw(11)) {
	case 0: case 1:
		if (views[i].readOnly) break;
		size = draw(1000);
		memset(p + k * PAGE + draw(3000), i + state, size);
		break;
	case 2: if (quiet) break; memset(b, state, sizeof b); if (pwrite(fd, b, sizeof b, draw(FILE_PAGES * PAGE - sizeof b)) != sizeof b) abort(); break;
	case 3: if (madvise(p + k * PAGE, PAGE, MADV_DONTNEED)) abort(); break;
	case 4: protect(i); break;
	case 5: if (!views[i].readOnly) sum = sum * 31 + pread(fd, p + k * PAGE, PAGE, draw(FILE_PAGES) * PAGE); break;
	case 6: // to elsewhere
		views[i].at = mmap(0, n * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (mremap(p, n * PAGE, n * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, views[i].at) != views[i].at) abort();
		break;
	case 7: // its start or its end
		if (k == 0) break;
		if (draw(2)) { if (munmap(p, k * PAGE)) abort(); views[i].at += k * PAGE; views[i].first += k; views[i].pages -= k; }
		else { if (munmap(p + (n - k) * PAGE, k * PAGE)) abort(); views[i].pages -= k; }
		break;
	case 8: // what lies behind is zero when the file is long again
		if (draw(4) || !shared) break; // of its own pages some would stay
		k = draw(FILE_PAGES);
		if (ftruncate(fd, k * PAGE) || ftruncate(fd, FILE_PAGES * PAGE)) abort();
		break;
	case 9: if (draw(4) == 0) child(i); break;
	case 10: if (msync(p, n * PAGE, MS_ASYNC)) abort(); break;
	}
	look(i);
}

int main(int argc, char **argv) {
	char page[PAGE];
	shared = argv[1][0] == 's';
	quiet = argv[1][0] == 'q';
	fd = argc > 2 ? memfd_create("filemem", 0) : open("filemem.data", O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (int i = 0; i < FILE_PAGES; i++) {
		memset(page, i * 7, PAGE);
		if (i % 3 == 2) { if (ftruncate(fd, (i + 1) * PAGE)) abort(); } // a hole
		else if (pwrite(fd, page, PAGE, i * PAGE) != PAGE) abort();
	}
	for (int k = 0; k < ROUNDS; k++) {
		int i = draw(VIEWS);
		if (views[i].pages == 0) make(i);
		else if (draw(8) == 0) { if (munmap(views[i].at, views[i].pages * PAGE)) abort(); views[i].pages = 0; }
		else change(i);
	}
	printf("%lx\n", sum);
	return 0;
}
