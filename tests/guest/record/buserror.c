// SIGBUS behind the end of a file that is mapped (buserror KIND WAY CASE): KIND is memfd, a file in /dev/shm or a file in the
// working directory, WAY is shared or private. The file is too short from the beginning, or is cut while it is mapped, by the
// program itself, by a thread of it, by another process, or (outside) by the test, and grows again.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 4 };

static int fd, way;
static char *base;
static sigjmp_buf out;
static volatile sig_atomic_t faults, mends; // mends: what the handler does in place of the jump
enum { JUMP, GROW, MAP };

static void bus(int sig, siginfo_t *si, void *u) {
	char *at = si->si_addr;
	printf("signal %d code %d at %ld\n", sig, si->si_code, (long)(at - base));
	faults++;
	switch (mends) {
	case GROW: if (ftruncate(fd, PAGES * PAGE)) abort(); return;
	case MAP:
		at = (char *)((long)at & -PAGE);
		if (mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at) abort();
		return;
	}
	siglongjmp(out, 1);
}

static void size(long pages) {
	if (ftruncate(fd, pages * PAGE)) abort();
}

static void map(long pages) {
	size(pages);
	base = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, way, fd, 0);
	if (base == MAP_FAILED) abort();
}

static void load(long at) {
	if (sigsetjmp(out, 1) == 0) printf("load %ld: %d\n", at, ((volatile char *)base)[at]);
}

static void store(long at, int c) {
	if (sigsetjmp(out, 1) == 0) {
		((volatile char *)base)[at] = c;
		printf("store %ld\n", at);
	}
}

static void loads(void) {
	for (long p = 0; p < PAGES; p++) load(p * PAGE + 7);
}

static void stores(void) {
	for (long p = 0; p < PAGES; p++) store(p * PAGE + 7, p + 'a');
}

// The end is where it was when the file was mapped.
static void beyond(void) { map(1), loads(), stores(), loads(); }

// The file is cut and grows: what it had is gone.
static void cut(void) {
	map(4), stores(), size(1), loads(), stores();
	size(3), loads(), stores();
	size(1), loads();
	size(4), loads(), stores(), loads();
	if (pwrite(fd, "written", 7, 2 * PAGE + 7) != 7) abort();
	loads();
}

// An empty file, and one that grows by write(2).
static void empty(void) {
	map(0), loads();
	if (pwrite(fd, "written", 7, PAGE + 5) != 7) abort();
	loads();
	if (fallocate(fd, 0, 0, 3 * PAGE)) abort();
	loads();
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, PAGE)) abort();
	loads();
}

// The handler has the file grow, and the instruction is executed again.
static void grown(void) {
	map(1), mends = GROW;
	stores(), loads(), size(2), loads();
}

// The handler maps something else there.
static void mapped(void) {
	map(2), mends = MAP;
	stores(), loads();
}

// Accesses that begin before the end.
static void across(void) {
	static char to[PAGES * PAGE];
	void *rdi, *rsi;
	long rcx;
	map(2);
	if (sigsetjmp(out, 1) == 0) printf("%ld\n", *(volatile long *)(base + 2 * PAGE - 3));
	if (sigsetjmp(out, 1) == 0) *(volatile long *)(base + 2 * PAGE - 3) = -1;
	loads();
	mends = MAP; // rcx and rdi are those of the fault
	rdi = base + PAGE + 100, rcx = 2 * PAGE;
	__asm__ volatile("rep stosb" : "+D"(rdi), "+c"(rcx) : "a"('s') : "memory");
	loads();
	munmap(base, PAGES * PAGE);
	map(2);
	rdi = to, rsi = base + 3, rcx = 3 * PAGE;
	__asm__ volatile("rep movsb" : "+D"(rdi), "+S"(rsi), "+c"(rcx) : : "memory");
	printf("%d %d %ld\n", to[5], to[3 * PAGE - 1], rcx);
}

// The kernel's own accesses fail with EFAULT.
static void calls(void) {
	int p[2];
	map(2);
	if (pipe(p)) abort();
	printf("%zd\n", write(p[1], base + 3 * PAGE, 10));
	printf("%zd\n", write(p[1], base + PAGE, 10));
	printf("%zd\n", read(p[0], base + 3 * PAGE, 5));
	printf("%zd\n", read(p[0], base + PAGE, 5));
	loads();
}

// Code behind the end.
static void code(void) {
	map(1);
	memset(base, 0xc3, PAGE);
	if (mprotect(base, PAGES * PAGE, PROT_READ | PROT_EXEC)) abort();
	for (long p = 0; p < 2; p++)
		if (sigsetjmp(out, 1) == 0) {
			((void (*)(void))(base + p * PAGE))();
			printf("ran %ld\n", p);
		}
}

// The registers are the same each time, before the fault and when it comes.
static void repeated(void) {
	char *other = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at[100];
	volatile long n = 0;
	map(1);
	for (int i = 0; i < 100; i++) at[i] = i == 77 ? base : other;
	if (sigsetjmp(out, 1) == 0)
		for (;;) {
			char **p = &at[n];
			__asm__ volatile("incq %0\n\tmov %1, %%rax\n\tcmpb $1, 4096(%%rax)\n\txor %%eax, %%eax" : "+m"(n) : "m"(*p) : "rax", "cc", "memory");
		}
	printf("%ld\n", n);
}

// Another process cuts the file while this one waits for it, and has it grow.
static void child(void) {
	for (int i = 0; i < 2; i++) {
		if (i == 0) map(4), stores(); else loads();
		pid_t p = fork();
		if (p == 0) size(i == 0 ? 1 : 3), _exit(0);
		waitpid(p, 0, 0);
		loads(), stores();
	}
}

// It writes to the file, and empties it by open(2), and writes again.
static void emptied(void) {
	for (int i = 0; i < 3; i++) {
		if (i == 0) map(4), loads(), store(7, 'p');
		pid_t p = fork();
		if (p == 0) {
			char name[64];
			sprintf(name, "/proc/self/fd/%d", fd);
			if (i == 1) close(open(name, O_RDWR | O_TRUNC));
			else if (pwrite(fd, "written", 7, 2 * PAGE + 5) != 7) abort();
			_exit(0);
		}
		waitpid(p, 0, 0);
		loads();
	}
}

// It cuts the file while this one reads it, and lets it grow when this one has seen that.
static void meanwhile(void) {
	static volatile long turns;
	int seen[2];
	map(4), stores();
	if (pipe(seen)) abort();
	pid_t p = fork();
	if (p == 0) {
		char c;
		usleep(20000), size(1);
		if (read(seen[0], &c, 1) != 1) abort();
		size(4);
		_exit(0);
	}
	if (sigsetjmp(out, 1) == 0)
		for (;; turns++, __builtin_ia32_pause()) (void)((volatile char *)base)[2 * PAGE];
	if (write(seen[1], "", 1) != 1) abort();
	waitpid(p, 0, 0);
	loads();
}

// One that is not recorded does, the test. Before, the same instruction has read the page, which nobody has stored to.
static void outside(void) {
	static volatile long turns;
	static char data[PAGES * PAGE];
	memset(data, 'd', sizeof data);
	if (pwrite(fd, data, sizeof data, 0) != sizeof data) abort();
	map(4);
	if (sigsetjmp(out, 1) == 0)
		for (long n = 1;; n++) { // in a register: where all registers repeat, replay does not know which of the loads failed
			turns = n;
			(void)((volatile char *)base)[2 * PAGE];
			for (volatile int i = 0; i < 30000; i++)
				__builtin_ia32_pause(); // replay has fewer instructions to execute so
		}
	loads();
}

static void *cuts(void *arg) { return usleep(5000), size(1), arg; }

// A thread does.
static void thread(void) {
	pthread_t t;
	map(4), stores();
	pthread_create(&t, 0, cuts, 0);
	if (sigsetjmp(out, 1) == 0)
		for (;;) (void)((volatile char *)base)[2 * PAGE];
	pthread_join(t, 0);
	loads(), size(4), loads();
}

// It kills.
static void kills(void) {
	map(1), signal(SIGBUS, SIG_DFL), load(0), fflush(stdout), load(PAGE);
}

static struct { const char *name; void (*run)(void); } cases[] = {
	{ "beyond", beyond }, { "cut", cut }, { "empty", empty }, { "grown", grown }, { "mapped", mapped }, { "across", across }, { "calls", calls },
	{ "code", code }, { "repeated", repeated }, { "child", child }, { "emptied", emptied }, { "meanwhile", meanwhile }, { "outside", outside }, { "thread", thread }, { "kills", kills },
};

static int open_(const char *kind) {
	char name[] = "buserror-XXXXXX", memory[] = "/dev/shm/vplay-buserror-XXXXXX";
	char *path = strcmp(kind, "shm") ? name : memory;
	if (!strcmp(kind, "memfd")) return memfd_create("buserror", 0);
	int f = mkstemp(path);
	if (f < 0 || unlink(path)) abort();
	return f;
}

int main(int argc, char **argv) {
	struct sigaction sa = { .sa_sigaction = bus, .sa_flags = SA_SIGINFO };
	sigaction(SIGBUS, &sa, 0);
	fd = open_(argv[1]);
	way = strcmp(argv[2], "shared") ? MAP_PRIVATE : MAP_SHARED;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
		if (!strcmp(cases[i].name, argv[3])) cases[i].run();
	printf("%d faults\n", (int)faults);
	return 0;
}
