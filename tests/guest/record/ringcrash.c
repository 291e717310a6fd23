// Writes to stretches of 64 MiB without a system call, some of which it may not read
// itself afterwards, and crashes. With the argument "filter" it does so under a seccomp
// filter that kills it for memfd_create, with "full" where it can map no more.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { PAGE = 4096, PAGES = 16384 };

int main(int argc, char **argv)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof f / sizeof *f, f};
	char *p = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned x = 1, page;

	if (argc > 1 && argv[1][1] == 'i' && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog)))
		return 1;
	if (argc > 1 && argv[1][1] == 'u' && setrlimit(RLIMIT_AS, &(struct rlimit){PAGE, PAGE}))
		return 1;
	for (page = 0; page < 400; page++)
		p[page * PAGE] = page;
	if (mprotect(p + 100 * PAGE, 200 * PAGE, PROT_NONE))
		return 1;
	for (page = PAGES - 300; page < PAGES; page++) // of four contents, in runs of 1 to 10
		p[page * PAGE + page % 10 / 9 * 4095] = page / 10 % 4;
	for (int turn = 0; turn < 200; turn++) {
		x = x * 1664525 + 1013904223;
		unsigned first = 400 + x % (PAGES - 800);
		for (page = first; page < first + 300; page++) {
			x = x * 1664525 + 1013904223;
			*(unsigned *)(p + page * PAGE + x % 1000 * 4) = x;
		}
	}
	return *(volatile int *)0;
}
