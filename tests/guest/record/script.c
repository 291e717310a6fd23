// Makes the system calls of a script that checkpoint/abi's fuzzer has written
// (kernelscript_test.go): script FILE FOLDER. It goes into namespaces of its own,
// under a user that owns nothing, with its root in FOLDER, as the fuzzer's process
// did. After each call it prints the result and a sum of the memory that the
// calls use, and looks at the pages that memory calls have changed.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

typedef unsigned long u64;
enum { PAGE = 4096, BLOCK = 2 * PAGE, PITCH = 3 * PAGE, BLOCKS = 16, MAP_PAGES = 32 };
enum { END, PUT, CALL, FILL };
static char *const arena = (char *)0x1000000000, *const range = (char *)0x1200000000;

static sigjmp_buf at;
static void fault(int sig) { siglongjmp(at, sig); }

static void save(const char *path, const char *text) {
	int fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, strlen(text)) < 0) exit(90);
	close(fd);
}

// leave gives up all that the process could do to the machine.
static void leave(const char *folder) {
	char map[40];
	if (geteuid() == 0 && (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))) exit(91);
	prctl(PR_SET_DUMPABLE, 1); // or its maps of users belong to root
	int uid = geteuid(), gid = getegid();
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWCGROUP)) exit(92);
	save("/proc/self/setgroups", "deny");
	snprintf(map, sizeof map, "0 %d 1", uid), save("/proc/self/uid_map", map);
	snprintf(map, sizeof map, "0 %d 1", gid), save("/proc/self/gid_map", map);
	if (setresgid(0, 0, 0) || setresuid(0, 0, 0) || chdir(folder) || chroot(".")) exit(93);
}

static long call(u64 *a) {
	register u64 r10 asm("r10") = a[4], r8 asm("r8") = a[5], r9 asm("r9") = a[6];
	long ret;
	asm volatile("syscall" : "=a"(ret) : "a"(a[0]), "D"(a[1]), "S"(a[2]), "d"(a[3]), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return ret;
}

static void fill(char *p, u64 seed) {
	for (u64 i = 0; i < BLOCK / 8; i++) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		((u64 *)p)[i] = seed ^ seed >> 29;
	}
}

static u64 sum(void) {
	u64 s = 0;
	for (int b = 0; b < BLOCKS; b++)
		for (u64 i = 0; i < BLOCK / 8; i += 8) s = s * 31 + ((u64 *)(arena + b * PITCH))[i];
	return s;
}

// look loads from each page of the range, and stores to some.
static u64 look(int n) {
	volatile u64 s = 0;
	for (volatile int i = 0; i < MAP_PAGES; i++) {
		volatile u64 *p = (u64 *)(range + i * PAGE);
		int sig = sigsetjmp(at, 0);
		if (sig) {
			s = s * 31 + sig;
			continue;
		}
		s = s * 31 + *p;
		if ((i + n) % 3 == 0) *p = n;
	}
	return s;
}

static int usesRange(u64 nr) {
	switch (nr) {
	case 9: case 10: case 11: case 25: case 26: case 28: case 30: case 149: case 150: case 216: return 1;
	}
	return 0;
}

int main(int argc, char **argv) {
	struct stat st;
	int fd = open(argv[1], O_RDONLY);
	if (argc != 3 || fd < 0 || fstat(fd, &st)) return 94;
	u64 *p = malloc(st.st_size);
	if (read(fd, p, st.st_size) != st.st_size) return 95;
	close(fd);
	char *out = malloc(8 << 20), *end = out; // printed last: write may be among the calls
	leave(argv[2]);
	chdir("/t");
	for (int i = 1; i < 65; i++) signal(i, SIG_IGN);
	struct sigaction sa = {.sa_handler = fault, .sa_flags = SA_NODEFER};
	sigaction(SIGSEGV, &sa, 0), sigaction(SIGBUS, &sa, 0), signal(SIGALRM, SIG_DFL), signal(SIGTRAP, SIG_DFL);
	int keep = fcntl(1, F_DUPFD, 240);
	alarm(100); // a call that blocks
	for (int n = 0, mapped = 0; *p != END;) {
		u64 *a = p + 1;
		switch (*p) {
		case PUT:
			memcpy((char *)a[0], a + 2, a[1]);
			p = a + 2 + (a[1] + 7) / 8;
			break;
		case FILL:
			fill((char *)a[0], a[1]);
			p = a + 2;
			break;
		case CALL:
			n++;
			long ret = call(a);
			if (a[0] == 9 && a[1] == (u64)(arena + (BLOCKS - 1) * PITCH)) mapped = 1;
			end += sprintf(end, "%d: %lu = %ld %lx %lx\n", n, a[0], ret, mapped ? sum() : 0, usesRange(a[0]) ? look(n) : 0);
			p = a + 7;
			break;
		default:
			return 96;
		}
	}
	while (out < end) {
		long got = write(keep, out, end - out);
		if (got <= 0) return 97;
		out += got;
	}
	return 0;
}
