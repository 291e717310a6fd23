// Processes that are killed between a handler, which changes vector registers, and what it has interrupted.
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void onSignal(int sig) {
	(void)sig;
	asm volatile("pxor %%xmm0, %%xmm0; pxor %%xmm7, %%xmm7" ::: "xmm0", "xmm7");
}

int main(void) {
	int killed = 0, status;
	for (int i = 0; i < 60; i++) {
		pid_t p = fork();
		if (p == 0) {
			signal(SIGUSR1, onSignal);
			asm volatile("pcmpeqb %%xmm0, %%xmm0; pcmpeqb %%xmm7, %%xmm7" ::: "xmm0", "xmm7");
			for (;;) kill(getpid(), SIGUSR1);
		}
		usleep(2000 + i * 7);
		kill(p, SIGKILL);
		waitpid(p, &status, 0);
		killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	}
	printf("%d killed\n", killed);
	return 0;
}
