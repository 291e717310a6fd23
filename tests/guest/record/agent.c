/* Calls that the recorder's agent makes, those that it leaves to the recorder, and what lies
 * between: a short read at the end of a mapping, faults of the kernel, writes to a file that is
 * mapped, descriptors that are made anew, registers and flags that a call must keep. Argument: a folder
 * with files. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static unsigned long sum;
static void add(const void *p, long n) { for (const unsigned char *c = p; n > 0; n--) sum = sum * 31 + *c++; }
static void note(const char *what, long v) { printf("%s %ld %d\n", what, v, v < 0 ? errno : 0); }

static void files(const char *dir, int depth)
{
	char path[4096], buf[3000];
	DIR *d = opendir(dir);
	struct dirent *e;
	while (d && (e = readdir(d))) {
		struct stat st;
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		if (lstat(path, &st))
			continue;
		if (S_ISDIR(st.st_mode)) {
			files(path, depth + 1);
			continue;
		}
		int fd = open(path, O_RDONLY);
		for (long n; (n = read(fd, buf, sizeof buf)) > 0;)
			add(buf, n);
		note("pread", pread(fd, buf, 100, 50));
		note("lseek", lseek(fd, 0, SEEK_CUR));
		close(fd);
	}
	if (d)
		closedir(d);
}

/* Calls on names and attributes of files, and those that copy from one to another. Three times: the first may be made at stops. */
static void names(void)
{
	char dir[40], value[64];
	snprintf(dir, sizeof dir, "/tmp/agent-names-%d", getpid());
	note("mkdir", mkdir(dir, 0700));
	int d = open(dir, O_RDONLY | O_DIRECTORY), p[2];
	pipe(p);
	fcntl(p[0], F_SETFL, O_NONBLOCK);
	fcntl(p[1], F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 3; i++) {
		note("mkdirat", mkdirat(d, "sub", 0700));
		int from = openat(d, "from", O_RDWR | O_CREAT, 0600), to = openat(d, "to", O_RDWR | O_CREAT, 0600);
		for (int k = 0; k < 3; k++)
			note("write", write(from, "some bytes of a file", 20));
		note("linkat", linkat(d, "from", d, "sub/hard", 0));
		note("symlinkat", symlinkat("from", d, "soft"));
		note("renameat", renameat(d, "sub/hard", d, "moved"));
		note("fchmod", fchmod(from, 0640));
		note("fchmodat", fchmodat(d, "to", 0600, 0));
		note("fchown", fchown(from, -1, -1));
		note("fchownat", fchownat(d, "to", -1, -1, 0));
		struct timespec times[2] = {{1, 2}, {3, 4}};
		note("utimensat", utimensat(d, "from", times, 0));
		memset(value, i, sizeof value);
		note("fgetxattr", fgetxattr(from, "user.none", value, sizeof value));
		int set = fsetxattr(from, "user.some", "its value", 9, 0) == 0; /* not every file system has them */
		note("size", set ? fgetxattr(from, "user.some", 0, 0) : 9);
		note("value", set ? fgetxattr(from, "user.some", value, sizeof value) : 9);
		note("too small", set ? fgetxattr(from, "user.some", value, 3) : -1);
		note("list", set ? flistxattr(from, value, sizeof value) > 0 : 1);
		add(value, set ? 64 : 0);
		off_t at = 5, into = 7;
		note("sendfile", sendfile(p[1], from, &at, 10));
		note("at", at);
		note("sendfile from where it is", lseek(from, 0, SEEK_SET) == 0 && sendfile(p[1], from, 0, 10) == 10);
		note("sendfile nowhere", sendfile(p[1], from, (void *)16, 10));
		note("sendfile beyond", (at = 1000, sendfile(p[1], from, &at, 10)));
		note("read", read(p[0], value, 20));
		add(value, 20);
		at = 3;
		note("copy_file_range", copy_file_range(from, &at, to, &into, 12, 0));
		note("at", at * 1000 + into);
		note("copy_file_range", copy_file_range(from, 0, to, 0, 12, 0));
		note("copy to nothing", copy_file_range(from, 0, 999, 0, 12, 0));
		note("dup3", dup3(from, to, O_CLOEXEC) == to);
		for (int k = 0; k < 3; k++)
			note("write", write(to, "through the other", 17));
		note("size", lseek(from, 0, SEEK_END));
		note("getsid", getsid(0) > 0 && getpgid(0) > 0);
		close(from);
		close(to);
		for (const char *n[] = {"from", "to", "moved", "soft", 0}, **l = n; *l; l++)
			note("unlinkat", unlinkat(d, *l, 0));
		note("rmdir", unlinkat(d, "sub", AT_REMOVEDIR));
	}
	close(p[0]);
	close(p[1]);
	close(d);
	note("rmdir", rmdir(dir));
}

/* What SYSCALL keeps: all registers but RAX, RCX and R11, and the flags. */
static void registers(void)
{
	for (int i = 0; i < 200; i++) {
		unsigned long rax = SYS_getppid, flags, want = 0x246 | (i & 1) | (i & 2 ? 0x80 : 0) | (i & 4 ? 0x400 : 0) | (i & 8 ? 0x800 : 0), rbx = i * 3, rdx = i * 5, r8 = i * 7;
		register unsigned long r9 __asm__("r9") = i * 11, r10 __asm__("r10") = i * 13, r12 __asm__("r12") = i * 17;
		__asm__ volatile("lea -128(%%rsp),%%rsp; push %[want]; popfq; mov $110,%%eax; syscall; pushfq; pop %[flags]; cld; lea 128(%%rsp),%%rsp"
			: "+a"(rax), "+b"(rbx), "+d"(rdx), "+r"(r9), "+r"(r10), "+r"(r12), [flags] "=&r"(flags)
			: [want] "r"(want) : "rcx", "r11", "memory", "cc");
		if (flags != want || rbx != i * 3u || rdx != i * 5u || r9 != i * 11u || r10 != i * 13u || r12 != i * 17u)
			printf("registers changed: %lx, not %lx\n", flags, want);
		add(&rdx, 8);
	}
}

static volatile int alarms;
static void on_alarm(int s) { struct timespec ts; clock_gettime(CLOCK_MONOTONIC, &ts); alarms++; (void)s; }

static void *thread(void *dir)
{
	long n = 0;
	for (int i = 0; i < 200; i++)
		n += getppid() > 0;
	return (void *)n;
}

/* Waits in some way, during which its recorder is killed, and goes on. */
static void orphaned(const char *dir, const char *how)
{
	char b[8];
	for (int i = 0; i < 20; i++)
		add(b, pread(open("/dev/zero", O_RDONLY), b, 8, 0));
	puts("ready");
	if (!strcmp(how, "spin")) {
		clock_t end = clock() + CLOCKS_PER_SEC / 2;
		while (clock() < end)
			for (volatile int k = 0; k < 100000000; k++);
	} else if (!strcmp(how, "poll")) {
		poll(0, 0, 700);
	} else {
		note("read", read(0, b, 8));
	}
	files(dir, 0);
	registers();
	pthread_t t[4];
	void *n;
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], 0, thread, 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], &n);
		note("thread", (long)n);
	}
	struct sigaction sa;
	sigaction(SIGSYS, 0, &sa);
	note("SIGSYS", sa.sa_handler == SIG_DFL);
	if (fork() == 0)
		_exit(0);
	note("child", wait(0) > 0);
	printf("%lu\n", sum);
}

int main(int c, char **v)
{
	setvbuf(stdout, 0, _IONBF, 0);
	if (c > 2) {
		orphaned(v[1], v[2]);
		return 0;
	}
	files(v[1], 0);
	names();
	registers();

	/* A buffer that ends with its mapping, one that is absent in part, and one that is nowhere. */
	char *m = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(m + 4096, 4096);
	int p[2];
	pipe(p);
	for (int i = 0; i < 3; i++) {
		note("write", write(p[1], "0123456789", 10));
		note("read at the end", read(p[0], m + 4096 - 10, 10));
		note("write", write(p[1], "0123456789", 10));
		note("read across the end", read(p[0], m + 4096 - 12, 4096));
		note("write", write(p[1], "0123456789", 10));
		note("read nowhere", read(p[0], (void *)16, 10));
		note("read nothing", read(p[0], m, 0));
		note("read of no descriptor", read(999, m, 10));
		note("stat of nothing", access("/nonexistent", 0));
		note("stat nowhere", fstat(1, (void *)16));
		struct termios tio;
		memset(&tio, 0, sizeof tio);
		note("ioctl", ioctl(p[0], TCGETS, &tio));
		int left = 0;
		note("ioctl", ioctl(p[0], FIONREAD, &left));
		while (left > 0)
			left -= read(p[0], m, left);
		add(m, 4096);
	}

	/* Writes to a file before, while and after it is mapped, by descriptors that change. */
	char name[40];
	snprintf(name, sizeof name, "/tmp/agent-%d", getpid());
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	for (int i = 0; i < 4; i++)
		note("write", write(fd, m, 4096));
	char *f = mmap(0, 8192, PROT_READ, MAP_SHARED, fd, 0);
	for (int i = 0; i < 4; i++) {
		note("pwrite", pwrite(fd, "changed", 7, i * 100));
		add(f, 8192);
	}
	int null = open("/dev/null", O_WRONLY);
	for (int i = 0; i < 4; i++)
		note("write", write(null, m, 10));
	dup2(fd, null);
	lseek(fd, 1000, SEEK_SET);
	for (int i = 0; i < 4; i++) {
		note("write", write(null, "by another number", 17));
		add(f, 8192);
	}
	close(null);
	null = open(name, O_WRONLY);
	note("write", write(null, "anew", 4));
	add(f, 8192);

	/* New descriptors, of the file that is mapped, of others, and of memory. */
	char second[48];
	snprintf(second, sizeof second, "%s-2", name);
	for (int i = 0; i < 4; i++) {
		int o = open(second, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		note("write", write(o, "elsewhere", 9));
		note("write", write(o, "elsewhere", 9));
		close(o);
		o = open(name, O_WRONLY);
		note("write", pwrite(o, "through a new one", 17, 100 * i));
		close(o);
		add(f, 8192);
		o = open("/proc/self/mem", O_RDWR);
		note("write", pwrite(o, "by the file of memory", 21, (off_t)m + 100 * i));
		close(o);
		add(m, 4096);
		o = open(name, O_WRONLY | O_TRUNC);
		note("truncate", ftruncate(o, 16384));
		close(o);
		add(f, 8192);
		unlink(i & 1 ? second : "/nonexistent");
	}
	munmap(f, 8192);
	ftruncate(fd, 0);
	close(null);
	close(fd);
	unlink(name);

	/* All signals blocked. */
	sigset_t all, old, now;
	memset(&old, 0, sizeof old);
	memset(&now, 0, sizeof now);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	for (int i = 0; i < 20; i++) {
		sum += getpid() > 0;
		sum += getuid() == geteuid();
	}
	sigprocmask(SIG_SETMASK, &old, 0);
	sigprocmask(SIG_BLOCK, 0, &now);
	note("mask", memcmp(&now, &old, sizeof now));

	/* A child with its own memory, and one that shares it. */
	for (int i = 0; i < 2; i++) {
		int pid = i ? vfork() : fork();
		if (pid == 0)
			_exit(getpid() > 0 ? 3 + i : 0);
		int status;
		waitpid(pid, &status, 0);
		note("child", WEXITSTATUS(status));
		for (int k = 0; k < 10; k++)
			sum += getppid() > 0;
	}
	struct sigaction sa;
	sigaction(SIGSYS, 0, &sa);
	note("SIGSYS", sa.sa_handler == SIG_DFL);
	printf("%lu\n", sum);

	/* Signals under load. */
	memset(&sa, 0, sizeof sa);
	sa.sa_handler = on_alarm, sa.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &sa, 0);
	struct itimerval it = { { 0, 1000 }, { 0, 1000 } };
	setitimer(ITIMER_REAL, &it, 0);
	int zero = open("/dev/zero", O_RDONLY);
	while (alarms < 20) {
		add(m, read(zero, m, 64));
		for (volatile int k = 0; k < 300; k++);
	}
	memset(&it, 0, sizeof it);
	setitimer(ITIMER_REAL, &it, 0);
	return 0;
}
