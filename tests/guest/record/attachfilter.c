// What cannot be attached to: a program under a seccomp filter that allows all calls, or, with an
// argument, one that has unmapped its vdso.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void unmapVDSO(void) {
	char line[256];
	unsigned long lo, hi;
	FILE *f = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof line, f))
		if (strstr(line, "[vdso]") && sscanf(line, "%lx-%lx", &lo, &hi) == 2)
			munmap((void *)lo, hi - lo);
	fclose(f);
}

int main(int argc, char **argv) {
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = {1, &all};
	if (argc > 1)
		unmapVDSO();
	else if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog))
		return 1;
	write(1, "ready\n", 6);
	char c;
	read(0, &c, 1);
	return 7;
}
