// Memory calls that fail and have acted all the same, and others whose effect
// their arguments do not tell. What is left of the memory is looked at with
// loads and stores, which fault where something is gone.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };

#ifndef PR_SET_VMA_ANON_NAME
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

static sigjmp_buf at;
static void fault(int sig) { siglongjmp(at, sig); }

// look prints for each page: its first byte, '#' when it cannot be read, and '!'
// when it cannot be written.
static void look(const char *what, long ret, unsigned char *p, int pages) {
	printf("%-22s %3d ", what, ret == -1 ? -errno : 0);
	for (int i = 0; i < pages; i++) {
		volatile unsigned char *b = p + i * PAGE;
		if (sigsetjmp(at, 1)) {
			putchar('#');
			continue;
		}
		unsigned char c = *b;
		putchar(c ? c : '0');
		if (sigsetjmp(at, 1)) {
			putchar('!');
			continue;
		}
		b[1] = c;
	}
	putchar('\n');
}

// area maps pages and marks each with its letter.
static unsigned char *area(int pages, int flags, int fd) {
	unsigned char *p = mmap(0, (pages + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	p = mmap(p + PAGE, pages * PAGE, 3, flags | MAP_FIXED, fd, 0); // a guard page on both sides
	for (int i = 0; i < pages; i++) p[i * PAGE] = 'a' + i;
	return p;
}

static int file(const char *text, int pages) {
	char name[] = "/tmp/vplay-failXXXXXX", page[PAGE];
	int fd = mkstemp(name);
	unlink(name);
	for (int i = 0; i < pages; i++) {
		memset(page, text[0] + i, sizeof page);
		if (write(fd, page, sizeof page) != sizeof page) exit(3);
	}
	return fd;
}

enum { ANON = MAP_PRIVATE | MAP_ANONYMOUS };

static void advice(void) {
	unsigned char *p = area(8, ANON, -1);
	munmap(p + 4 * PAGE, PAGE);
	look("DONTNEED over a hole", madvise(p, 8 * PAGE, MADV_DONTNEED), p, 8);
	p = area(8, ANON, -1);
	mlock(p + 3 * PAGE, PAGE);
	look("DONTNEED at a lock", madvise(p, 8 * PAGE, MADV_DONTNEED), p, 8);
	p = area(8, ANON, -1);
	munmap(p + 6 * PAGE, PAGE);
	look("FREE over a hole", madvise(p, 8 * PAGE, MADV_FREE), p + 6 * PAGE, 1); // the rest may be there or not
	int fd = file("A", 8);
	p = area(8, MAP_PRIVATE, fd);
	look("FREE of a file", madvise(p, 8 * PAGE, MADV_FREE), p, 8);
	munmap(p + 2 * PAGE, PAGE);
	look("DONTNEED of a file", madvise(p, 8 * PAGE, MADV_DONTNEED), p, 8);
	pwrite(fd, "zzzz", 4, 5 * PAGE);
	p[5 * PAGE] = 'x', p[6 * PAGE] = 'y';
	look("DONTNEED, file written", madvise(p, 8 * PAGE, MADV_DONTNEED), p, 8);
	p = area(8, MAP_SHARED | MAP_ANONYMOUS, -1);
	look("REMOVE", madvise(p + PAGE, 3 * PAGE, MADV_REMOVE), p, 8);
	munmap(p + 6 * PAGE, PAGE);
	look("REMOVE over a hole", madvise(p + 5 * PAGE, 3 * PAGE, MADV_REMOVE), p, 8);
	p = area(4, ANON, -1);
	munmap(p + 2 * PAGE, PAGE);
	look("WIPEONFORK at a hole", madvise(p, 4 * PAGE, MADV_WIPEONFORK), p, 4);
}

static void protect(void) {
	unsigned char *p = area(8, ANON, -1);
	munmap(p + 4 * PAGE, PAGE);
	look("mprotect over a hole", mprotect(p, 8 * PAGE, PROT_READ), p, 8);
	char name[] = "/tmp/vplay-failXXXXXX";
	int fd = mkstemp(name), ro = open(name, O_RDONLY);
	unlink(name);
	ftruncate(fd, 4 * PAGE);
	p = area(8, ANON, -1);
	mprotect(p, 4 * PAGE, PROT_READ);
	mmap(p + 2 * PAGE, 4 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, ro, 0);
	look("mprotect of a read-only", mprotect(p, 8 * PAGE, PROT_READ | PROT_WRITE), p, 8);
}

static void remap(void) {
	unsigned char *p = area(4, ANON, -1), *to = area(4, ANON, -1);
	munmap(p + 2 * PAGE, 2 * PAGE);
	look("mremap of a hole", (long)mremap(p, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to), p, 4);
	look("  onto", 0, to, 4);
	p = area(4, ANON, -1), to = area(4, ANON, -1);
	look("mremap of nothing", (long)mremap(p, 0, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to), p, 4);
	look("  onto", 0, to, 4);
	int fd = memfd_create("m", 0);
	ftruncate(fd, 8 * PAGE);
	p = area(8, ANON, -1), to = area(8, ANON, -1);
	mmap(p + 4 * PAGE, 2 * PAGE, 3, MAP_SHARED | MAP_FIXED, fd, 0);
	memset(p + 4 * PAGE, 'M', 2 * PAGE);
	mprotect(p + PAGE, PAGE, PROT_READ);
	for (int i = 0; i < 8; i++) to[i * PAGE] = 'A' + i;
	look("mremap of several", (long)mremap(p, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to), p, 8);
	look("  onto", 0, to, 8);
	p = area(8, ANON, -1), to = area(8, ANON, -1);
	mprotect(p + PAGE, PAGE, PROT_READ);
	munmap(p + 6 * PAGE, PAGE);
	for (int i = 0; i < 8; i++) to[i * PAGE] = 'A' + i;
	look("mremap with a hole", (long)mremap(p, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to), p, 8);
	look("  onto", 0, to, 8);
	p = area(8, ANON, -1), to = area(8, ANON, -1);
	for (int i = 0; i < 8; i++) to[i * PAGE] = 'A' + i;
	mprotect(p + 2 * PAGE, PAGE, PROT_READ);
	syscall(462, p + 4 * PAGE, PAGE, 0); // mseal
	look("mremap to a seal", (long)mremap(p, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to), p, 8);
	look("  onto", 0, to, 8);
	to = area(4, MAP_SHARED, fd);
	strcpy(to, "kept"), munmap(to, 4 * PAGE);
	for (int i = 0; i < 4; i++) getppid();
	to = mmap(0, 4 * PAGE, 3, MAP_SHARED, fd, 0);
	look("a memfd mapped again", 0, to, 4);
	munmap(to, 4 * PAGE), pwrite(fd, "wxyz", 4, PAGE);
	to = mmap(0, 4 * PAGE, 3, MAP_SHARED, fd, 0);
	look("  written between", 0, to, 4);
	p = area(4, MAP_SHARED | MAP_ANONYMOUS, -1);
	to = mremap(p, 0, 2 * PAGE, MREMAP_MAYMOVE);
	look("mremap to a second view", (long)to, to, 2);
	to[0] = 'S', p[PAGE] = 'T';
	look("  the first view", 0, p, 4);
	look("  the second view", 0, to, 2);
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, p, 4 * PAGE, "named");
	look("a name", 0, p, 4);
	look("remap_file_pages", syscall(SYS_remap_file_pages, p, 2 * PAGE, 0, 2, 0), p, 4);
	p[0] = 'U';
	look("  after a store", 0, p, 4);
}

static void fixed(void) {
	unsigned char *p = area(4, ANON, -1);
	int s = socket(AF_UNIX, SOCK_STREAM, 0), pipes[2];
	pipe(pipes);
	look("mmap of a socket", (long)mmap(p + PAGE, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, s, 0), p, 4);
	p = area(4, ANON, -1);
	look("mmap of a pipe", (long)mmap(p + PAGE, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, pipes[0], 0), p, 4);
	p = area(4, ANON, -1);
	look("munmap at an odd address", munmap(p + 1, PAGE), p, 4);
	look("munmap of too much", munmap(p, -PAGE), p, 4);
	personality(READ_IMPLIES_EXEC);
	p = mmap(0, 4 * PAGE, PROT_READ | PROT_WRITE, ANON, -1, 0);
	memcpy(p, "\xb8\x2a\0\0\0\xc3", 6); // mov eax, 42; ret
	if (sigsetjmp(at, 1)) puts("not executable");
	else printf("READ_IMPLIES_EXEC %d\n", ((int (*)(void))p)());
	mprotect(p, PAGE, PROT_NONE), mprotect(p, PAGE, PROT_READ);
	if (sigsetjmp(at, 1)) puts("not executable");
	else printf("and mprotect %d\n", ((int (*)(void))p)());
	personality(0);
}

int main(void) {
	struct sigaction sa = {.sa_handler = fault};
	sigaction(SIGSEGV, &sa, 0), sigaction(SIGBUS, &sa, 0);
	advice();
	protect();
	remap();
	fixed();
	return 0;
}
