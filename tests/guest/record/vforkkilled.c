/* A process that is killed in vfork(2), its child still there: another one has stored in memory
 * that all three share since it ran last. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	int ready[2];
	char c;
	volatile int *word = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pipe(ready))
		return 1;
	pid_t parent = fork();
	if (parent == 0) {
		if (vfork() == 0) {
			word[0] = getpid();
			if (write(ready[1], "x", 1) != 1)
				_exit(1);
			pause();
			_exit(0);
		}
		_exit(0);
	}
	if (read(ready[0], &c, 1) != 1)
		return 2;
	for (int i = 0; i < 200; i++)
		word[1]++;
	kill(parent, SIGKILL);
	int status = 0;
	waitpid(parent, &status, 0);
	kill(word[0], SIGKILL);
	printf("%d stores, killed %d\n", word[1], WIFSIGNALED(status));
	return 0;
}
