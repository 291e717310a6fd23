// Writes lines to standard error in the ways in which programs do that: whole, in parts, several by
// one writev, a long one, by a child while its parent has written half a line, by another thread, by a
// copy of the descriptor. Those with "fault" in them are meant to be seen, those with "never" are not.
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(int fd, const char *text) { write(fd, text, strlen(text)); }

static void *thread(void *arg) {
	say(2, "fault of a thread\n");
	return arg;
}

static char big[100000];

int main(void) {
	pthread_t t;
	say(2, "nothing here\nfault at once\nand more\n");
	say(2, "fault in p");
	say(2, "arts\nnot yet: fa");
	struct iovec v[] = {{"ult by blo", 10}, {"", 0}, {"cks\nthe rest", 12}};
	writev(2, v, 3);
	say(2, "\n");
	memset(big, 'x', sizeof big);
	memcpy(big, "fault that is long", 18);
	memcpy(big + sizeof big - 6, "never\n", 6);
	for (size_t n = 0; n < sizeof big;) {
		ssize_t got = write(2, big + n, sizeof big - n);
		if (got <= 0)
			return 1;
		n += got;
	}
	say(2, "fault around ");
	pid_t child = fork();
	if (child == 0) {
		say(2, "fault of a child\n");
		_exit(0);
	}
	waitpid(child, 0, 0);
	say(2, "a child\n");
	pthread_create(&t, 0, thread, 0);
	pthread_join(t, 0);
	say(dup(2), "fault by a copy\n");
	say(open("/proc/self/fd/2", O_WRONLY), "never: fault by another open file\n");
	say(2, "fault without an end");
	return isatty(2) ? 2 : 3;
}
