// Seccomp filters: calls that trap into a handler which answers them, that fail, that kill, in
// a program with threads too, and strict mode.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static void filter(int nr, unsigned what, int flags) {
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, what),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof code / sizeof *code, code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog)) abort();
}

static volatile int trapped;
static void broker(int sig, siginfo_t *si, void *context) {
	ucontext_t *u = context;
	trapped += si->si_syscall;
	u->uc_mcontext.gregs[REG_RAX] = 42;
}

static int result(pid_t child) {
	int status;
	if (waitpid(child, &status, 0) != child) abort();
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void *asks(void *arg) {
	long sum = 0;
	for (int i = 0; i < 20; i++) sum += syscall(SYS_getppid);
	return (void *)sum;
}

int main(void) {
	setlinebuf(stdout);
	struct sigaction sa = {.sa_sigaction = broker, .sa_flags = SA_SIGINFO};
	sigaction(SIGSYS, &sa, 0);

	pid_t child = fork();
	if (!child) { // answered, in two threads
		pthread_t t;
		void *sum;
		if (pthread_create(&t, 0, asks, 0)) abort();
		filter(SYS_getppid, SECCOMP_RET_TRAP, SECCOMP_FILTER_FLAG_TSYNC);
		long mine = (long)asks(0);
		pthread_join(t, &sum);
		_exit(mine == 20 * 42 && trapped % SYS_getppid == 0 && trapped >= 20 * SYS_getppid ? 1 : 99);
	}
	printf("answered: %d\n", result(child));

	if (!(child = fork())) {
		filter(SYS_getppid, SECCOMP_RET_ERRNO | 7, 0);
		_exit(syscall(SYS_getppid) == -1 && errno == 7 ? 2 : 99);
	}
	printf("refused: %d\n", result(child));

	if (!(child = fork())) {
		filter(SYS_getppid, SECCOMP_RET_KILL_PROCESS, 0);
		syscall(SYS_getppid);
		_exit(99);
	}
	printf("killed: %d\n", result(child));

	if (!(child = fork())) {
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
		static const char said[] = "strict\n";
		write(1, said, sizeof said - 1);
		syscall(SYS_exit, 3);
	}
	fflush(stdout);
	printf("strict: %d\n", result(child));

	if (!(child = fork())) {
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
		syscall(SYS_getppid);
		syscall(SYS_exit, 99);
	}
	printf("strict and killed: %d\n", result(child));
	return 0;
}
