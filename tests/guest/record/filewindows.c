// Calls of one process that change what another has mapped shared, while that one reads there and
// makes no call, or other calls:
//   filewindows CASE
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define CHECK(c) do { if (!(c)) { perror(#c); _exit(9); } } while (0)

static int file;           // of two pages, in no directory
static volatile char *m;   // its mapping
static int to[2], from[2]; // pipes to the child and from it

static void tell(int *p) { CHECK(write(p[1], "x", 1) == 1); }
static void hear(int *p) { char c; CHECK(read(p[0], &c, 1) == 1); }
static volatile char *map(int prot) {
	volatile char *p = mmap(0, 2 * PAGE, prot, MAP_SHARED, file, 0);
	CHECK(p != MAP_FAILED);
	return p;
}

// What the child does to the second page, which holds 'a', to make it hold something else.
static void removes(void) {
	volatile char *own = map(PROT_READ | PROT_WRITE);
	tell(from);
	hear(to);
	usleep(3000);
	CHECK(!madvise((char *)own + PAGE, PAGE, MADV_REMOVE));
}
static void punches(void) { CHECK(!fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, PAGE)); }
static int newFile(void) { // in no directory
	char name[] = "/tmp/filewindows-XXXXXX";
	int fd = mkstemp(name);
	CHECK(fd >= 0 && !unlink(name) && !ftruncate(fd, 2 * PAGE));
	return fd;
}
static int other(void) { // a file with two pages of 'b'
	char b[2 * PAGE];
	int fd = newFile();
	memset(b, 'b', sizeof b);
	CHECK(write(fd, b, sizeof b) == sizeof b);
	return fd;
}
static void copies(void) {
	loff_t in = 0, out = PAGE;
	CHECK(copy_file_range(other(), &in, file, &out, PAGE, 0) == PAGE);
}
static void sends(void) {
	off_t in = 0;
	CHECK(lseek(file, PAGE, SEEK_SET) == PAGE);
	CHECK(sendfile(file, other(), &in, PAGE) == PAGE);
}
static void writes(void) { CHECK(pwrite(file, "b", 1, PAGE) == 1); }
static void splices(void) { // of what is in the pipe already
	int p[2];
	loff_t out = PAGE;
	CHECK(!pipe(p) && write(p[1], "b", 1) == 1);
	CHECK(splice(p[0], 0, file, &out, PAGE, 0) == 1);
}
// These wait in the call for what the parent writes.
static void spliceWaits(void) {
	loff_t out = PAGE;
	CHECK(splice(to[0], 0, file, &out, 1, 0) == 1);
}
static void readWaits(void) { CHECK(read(to[0], (char *)map(PROT_READ | PROT_WRITE) + PAGE, 1) == 1); }
static void vectorWaits(void) {
	struct iovec v = {(char *)map(PROT_READ | PROT_WRITE) + PAGE, 1};
	CHECK(readv(to[0], &v, 1) == 1);
}
static void vmspliceWaits(void) {
	struct iovec v = {(char *)map(PROT_READ | PROT_WRITE) + PAGE, 1};
	CHECK(vmsplice(to[0], &v, 1, 0) == 1);
}

// One thread waits in splice for the pipe, and signals that are sent to the process come to
// another: none may end the call.
static volatile int over;
static void nothing(int sig) { (void)sig; }
static void *takesSignals(void *arg) {
	(void)arg;
	while (!over) usleep(200);
	return 0;
}
static void *sendsSignals(void *arg) {
	(void)arg;
	while (!over) kill(getpid(), SIGUSR1), usleep(150);
	return 0;
}
static void spliceSignals(void) {
	struct sigaction sa = {.sa_handler = nothing, .sa_flags = SA_RESTART};
	pthread_t t[2];
	CHECK(!sigaction(SIGUSR1, &sa, 0) && !pthread_create(&t[0], 0, takesSignals, 0) && !pthread_create(&t[1], 0, sendsSignals, 0));
	spliceWaits();
	over = 1;
	CHECK(!pthread_join(t[0], 0) && !pthread_join(t[1], 0));
}

// waits says that the child waits for the parent in its call, late that it does so before the parent maps the file.
static const struct { const char *name; void (*run)(void); char to; int waits, late; } cases[] = {
	{"removes", removes, 0}, {"punches", punches, 0}, {"copies", copies, 'b'}, {"sends", sends, 'b'}, {"writes", writes, 'b'}, {"splices", splices, 'b'},
	{"splicewaits", spliceWaits, 'x', 1}, {"readwaits", readWaits, 'x', 1}, {"vectorwaits", vectorWaits, 'x', 1}, {"vmsplicewaits", vmspliceWaits, 'x', 1},
	{"splicesignals", spliceSignals, 'x', 1},
	{"readjoined", readWaits, 'x', 1, 1}, {"vectorjoined", vectorWaits, 'x', 1, 1}, {"splicejoined", spliceWaits, 'x', 1, 1}, {"vmsplicejoined", vmspliceWaits, 'x', 1, 1},
};

// A child that does not share the mapping changes the file while the parent looks at it, and makes calls meanwhile or not.
static void change(int i, int calls) {
	CHECK(!pipe(to) && !pipe(from));
	memset((char *)m, 'a', 2 * PAGE);
	munmap((void *)m, 2 * PAGE);
	pid_t p = fork();
	CHECK(p >= 0);
	if (p == 0) {
		usleep(3000);
		cases[i].run();
		tell(from);
		_exit(0);
	}
	if (cases[i].late) usleep(20000);
	m = map(PROT_READ | PROT_WRITE);
	if (cases[i].run == removes) hear(from), tell(to);
	if (cases[i].waits) usleep(20000), tell(to);
	unsigned long n = 0;
	for (; m[PAGE] != cases[i].to; n++) {
		for (int k = 0; k < 8; k++) __builtin_ia32_pause();
		if (calls) syscall(SYS_getppid, n);
	}
	m[0] = n; // what replay must get right, too
	hear(from);
	CHECK(waitpid(p, 0, 0) == p);
	for (int k = 0; k < 2; k++) close(to[k]), close(from[k]);
	m[0] = 0;
}

// Maps the end of a file while a child's call writes all of it, by sendfile or by a read into its mapping, and then looks at that.
// What is written comes from a file that is in no cache, so that the call waits for the disk in the middle.
static void mapMeanwhile(int reads) {
	static char fill[1 << 20];
	const off_t size = 16 * sizeof fill;
	volatile unsigned long n = 0;
	int in = newFile();
	munmap((void *)m, 2 * PAGE);
	for (off_t at = 0; at < size; at += sizeof fill)
		CHECK(pwrite(in, fill, sizeof fill, at) == sizeof fill && pwrite(file, fill, sizeof fill, at) == sizeof fill);
	for (char i = 1; i <= 10; i++) {
		CHECK(!pipe(from) && pwrite(in, &i, 1, size - 1) == 1 && !fsync(in) && !posix_fadvise(in, 0, size, POSIX_FADV_DONTNEED));
		pid_t p = fork();
		CHECK(p >= 0);
		if (p == 0) {
			off_t at = 0;
			void *all = reads ? mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : 0;
			CHECK(all != MAP_FAILED);
			tell(from);
			CHECK(reads ? pread(in, all, size, 0) == size : sendfile(file, in, &at, size) == size);
			_exit(0);
		}
		hear(from);
		usleep(i * 500);
		volatile char *end = mmap(0, PAGE, PROT_READ, MAP_SHARED, file, size - PAGE);
		CHECK(end != MAP_FAILED);
		for (; end[PAGE - 1] != i; n++) for (int k = 0; k < 8; k++) __builtin_ia32_pause();
		CHECK(waitpid(p, 0, 0) == p && lseek(file, 0, SEEK_SET) == 0);
		munmap((void *)end, PAGE);
		close(from[0]), close(from[1]);
	}
}

int main(int argc, char **argv) {
	alarm(60); // a child that fails leaves its parent looking for ever
	file = newFile();
	m = map(PROT_READ | PROT_WRITE);
	if (argc > 1 && strstr(argv[1], "meanwhile")) { // mapmeanwhile, readmeanwhile
		mapMeanwhile(*argv[1] == 'r');
		puts("end");
		return 0;
	}
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
		if (argc > 1 && !strcmp(argv[1], cases[i].name)) {
			for (int k = 0; k < 4; k++) change(i, k % 2);
			puts("end");
			return 0;
		}
	return 2;
}
