// Children of all kinds, which must not notice the recorder.
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

extern char **environ;
static int wait1(pid_t p) {
	int st = -1;
	waitpid(p, &st, 0);
	return WIFEXITED(st) ? WEXITSTATUS(st) : -WTERMSIG(st);
}
static char stack[65536];
static volatile int shared;
static int in_clone(void *x) {
	(void)x;
	shared = 77;
	return 5;
}
int main(void) {
	cpu_set_t set;
	sched_getaffinity(0, sizeof set, &set);
	int cpus = CPU_COUNT(&set);
	printf("cpus %d\n", cpus);
	fflush(stdout);
	pid_t p = fork();
	if (!p) {
		unsigned long long t = __rdtsc();
		sched_getaffinity(0, sizeof set, &set);
		_exit(t != 0 && CPU_COUNT(&set) == cpus ? 11 : 12);
	}
	printf("fork %d\n", wait1(p));
	p = vfork();
	if (!p) {
		execl("/bin/sh", "sh", "-c", "exit 13", (char *)0);
		_exit(1);
	}
	printf("vfork %d\n", wait1(p));
	char *argv[] = {"sh", "-c", "date +%s >/dev/null; exit 14", 0};
	int e = posix_spawn(&p, "/bin/sh", 0, 0, argv, environ);
	printf("spawn %d %d\n", e, wait1(p));
	e = posix_spawn(&p, "/nonexistent", 0, 0, argv, environ);
	printf("spawn fails %s\n", strerror(e));
	p = clone(in_clone, stack + sizeof stack, CLONE_VM | SIGCHLD, 0);
	e = wait1(p);
	printf("clone %d %d\n", e, shared);
	printf("system %d\n", WEXITSTATUS(system("exit 3")));
	FILE *f = popen("echo popen", "r");
	char line[64];
	if (fgets(line, sizeof line, f)) fputs(line, stdout);
	pclose(f);
	e = waitpid(-1, 0, __WALL | WNOHANG);
	printf("no other children %d\n", e == -1 && errno == ECHILD);
	fflush(stdout);
	if (getenv("AGAIN")) return 15;
	setenv("AGAIN", "1", 1);
	execl("/nonexistent", "x", (char *)0);
	execl("/proc/self/exe", "again", (char *)0);
	return 1;
}
