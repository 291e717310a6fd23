// A program that is executed from a memfd, as runc and fexecve(3) do it: the kernel maps shared memory for itself, of
// which ld.so and the program write to parts of pages.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static int written[3000] = {1, 2, 3};
static const char *const relocated[] = {"one", "two", "three"};
static char kept[5000] = "as it was in the file";

static void execute(const char *how) {
	static char buf[1 << 16];
	char *argv[] = {"memfdexec", (char *)how, NULL};
	int to = memfd_create("program", 0), from = open("/proc/self/exe", O_RDONLY);
	for (ssize_t n; (n = read(from, buf, sizeof buf)) > 0;) write(to, buf, n);
	syscall(SYS_execveat, to, "", argv, environ, AT_EMPTY_PATH);
}

int main(int argc, char **argv) {
	if (argc > 1) {
		written[2000] = 5;
		printf("%s: %d %s %s\n", argv[1], written[0] + written[2000], relocated[argc], kept);
		fflush(stdout);
		if (!strcmp(argv[1], "self")) return 3;
		execute("self");
	}
	pid_t p = fork();
	if (p == 0) execute("child");
	int status;
	waitpid(p, &status, 0);
	printf("status %d\n", WEXITSTATUS(status));
	fflush(stdout);
	execute("self");
	return 1;
}
