// Changes of the memory map, and memory that a fork does not hold.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#define PG 4096
static unsigned sum(const char *p, int n) {
	unsigned s = 0;
	while (n--) s = s * 31 + (unsigned char)*p++;
	return s;
}
static void burn(void) { // long enough for an interval
	volatile unsigned long x = 1;
	for (int i = 0; i < 1000000; i++) x = x * 3 + 1;
	getppid();
}
int main(void) {
	setvbuf(stdout, 0, _IOLBF, 0);
	char *a = mmap(0, 16 * PG, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 16; i++) memset(a + i * PG, i + 1, PG);
	burn();
	char *b = mremap(a, 16 * PG, 64 * PG, MREMAP_MAYMOVE);
	b[20 * PG] = 9;
	burn();
	char *hint = mmap(0, 128 * PG, 0, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	b = mremap(b, 64 * PG, 64 * PG, MREMAP_MAYMOVE | MREMAP_FIXED, hint);
	printf("moved %u\n", sum(b, 64 * PG));
	burn();
	madvise(b, 4 * PG, MADV_DONTNEED);
	b[0] = 5;
	madvise(b + 4 * PG, 4 * PG, MADV_FREE);
	memset(b + 4 * PG, 6, 4 * PG); // before that the content is the kernel's choice
	printf("dropped %u\n", sum(b, 64 * PG));
	mprotect(b + 8 * PG, 4 * PG, PROT_READ);
	munmap(b + 12 * PG, 4 * PG);
	burn();

	char name[] = "/tmp/vplay-memory-XXXXXX";
	int fd = mkstemp(name);
	unlink(name);
	char buf[PG];
	for (int i = 0; i < 8; i++) memset(buf, 'a' + i, PG), write(fd, buf, PG);
	char *pv = mmap(0, 8 * PG, 3, MAP_PRIVATE, fd, 0), *sh = mmap(0, 8 * PG, 3, MAP_SHARED, fd, 0);
	printf("file %u %u\n", sum(pv, 2 * PG), sum(sh, 8 * PG));
	burn();
	pv[0] = 'z', sh[5 * PG] = 'y';
	pwrite(fd, "hello", 5, 2 * PG);
	pwrite(fd, "hello", 5, 0);
	printf("pwrite %u %u\n", sum(pv, 4 * PG), sum(sh, 8 * PG));
	burn();
	madvise(pv, PG, MADV_DONTNEED);
	printf("refill %u\n", sum(pv, 4 * PG));

	int mf = memfd_create("twice", 0);
	ftruncate(mf, 4 * PG);
	char *m1 = mmap(0, 4 * PG, 3, MAP_SHARED, mf, 0), *m2 = mmap(0, 4 * PG, 3, MAP_SHARED, mf, 0);
	m1[100] = 1, m2[101] = 2;
	burn();
	m2[PG] = 3;
	printf("memfd %u %u\n", sum(m1, 4 * PG), sum(m2, 4 * PG));

	int id = shmget(IPC_PRIVATE, 3 * PG, IPC_CREAT | 0600);
	char *s = shmat(id, 0, 0);
	shmctl(id, IPC_RMID, 0);
	strcpy(s, "segment");
	burn();
	printf("shm %s\n", s);
	shmdt(s);

	char *w = mmap(0, 4 * PG, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(w, 7, 4 * PG);
	madvise(w, 4 * PG, MADV_WIPEONFORK);
	madvise(b + 20 * PG, 4 * PG, MADV_DONTFORK);
	burn();
	w[5] = 1;
	burn();
	printf("wipe %u %u\n", sum(w, 4 * PG), sum(b + 16 * PG, 8 * PG));

	char *top = sbrk(0);
	sbrk(10 * PG), memset(top, 3, 10 * PG), burn();
	sbrk(-5 * PG), burn();
	printf("brk %u\n", sum(top, 5 * PG));

	for (int i = 0; i < 3; i++) { // dirty pages while a child lives
		memset(b + 30 * PG, i + 1, 4 * PG);
		pid_t kid = fork();
		if (!kid) {
			usleep(30000);
			_exit(b[30 * PG]);
		}
		burn();
		int st;
		waitpid(kid, &st, 0);
		printf("child %d\n", WEXITSTATUS(st));
	}
	prctl(PR_SET_DUMPABLE, 0);
	burn();
	printf("not dumpable\n");
	return 0;
}
