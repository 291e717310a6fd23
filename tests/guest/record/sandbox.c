// A program that is killed for any call but a few (seccomp(2)), as a server's sandbox has it, and uses the CPU for a while.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int main(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_write), ALLOW(SYS_exit_group), ALLOW(SYS_rt_sigreturn), ALLOW(SYS_getpid),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog prog = { sizeof filter / sizeof *filter, filter };
	static char memory[64 * 4096];
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return 1;
	unsigned long sum = 0;
	for (unsigned long i = 0; i < 60000000; i++) {
		sum = sum * 31 + i;
		memory[i * 64 % sizeof memory] += sum;
		if (i % 100000 == 0)
			syscall(SYS_getpid);
	}
	char text[32];
	write(1, text, snprintf(text, sizeof text, "%lx\n", sum));
	syscall(SYS_exit_group, 3);
}
