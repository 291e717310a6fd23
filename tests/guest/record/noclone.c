// A program that no process can be cloned of, as its filter refuses that, stores to page after
// page of its file, which it has mapped private. Then it maps the end of that file, which holds the section table, never looks
// there, and maps other memory over it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGES = 64, SIZE = 4096 };

static volatile unsigned char data[PAGES * SIZE] = {[0 ... PAGES * SIZE - 1] = 7};

static void wait_long(void) {
	for (int k = 0; k < 300000; k++) __builtin_ia32_pause();
}

static int map_over(int fd, long last) {
	unsigned char *p = mmap(0, SIZE, PROT_READ, MAP_PRIVATE, fd, last / SIZE * SIZE);
	if (p == MAP_FAILED) return -1;
	wait_long();
	if (mmap(p, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != p) return -1;
	*(volatile unsigned char *)p += 1;
	wait_long();
	return munmap(p, SIZE);
}

int main(void) {
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof code / sizeof *code, code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog)) return 1;
	unsigned long sum = 0;
	for (int i = 0; i < PAGES; i++) {
		for (int k = 0; k < 20000; k++) __builtin_ia32_pause();
		data[i * SIZE + i]++;
		sum = sum * 3 + data[i * SIZE + i];
	}
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < 4; i++)
		if (map_over(fd, lseek(fd, -1, SEEK_END))) return 2;
	printf("%lu\n", sum);
	return 0;
}
