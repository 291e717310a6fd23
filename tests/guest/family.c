// A parent asks its child for a number, and the child crashes on the way.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct answer {
	int number;
	const char *unit;
};

static struct answer *lookup(int question) {
	static struct answer known = {42, "years"};
	return question == 1 ? &known : 0;
}

static int child(int question) {
	struct answer *a = lookup(question);
	return a->number; // CRASH
}

int main(void) {
	int question = 2, status = 0;
	pid_t pid = fork();
	if (pid == 0)
		_exit(child(question));
	waitpid(pid, &status, 0);
	printf("the child has ended with %d\n", status);
	return status != 0;
}
