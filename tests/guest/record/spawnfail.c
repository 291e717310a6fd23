// posix_spawn of a program that is not there: the error comes through memory
// that parent and child share. Then one that is there.
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

extern char **environ;

int main(void) {
	pid_t p = -1;
	char *bad[] = {"/no/such/program", 0}, *good[] = {"/bin/sh", "-c", "exit 5", 0};
	int e = posix_spawn(&p, bad[0], 0, 0, bad, environ);
	printf("missing: %s\n", e == ENOENT ? "ENOENT" : "?");
	e = posix_spawn(&p, good[0], 0, 0, good, environ);
	int st = -1;
	waitpid(p, &st, 0);
	printf("good: %d status %d\n", e, WEXITSTATUS(st));
	return 0;
}
