// readfiles FILE [CRASH]: large files that the log refers to instead of copying what is read. The file is read in every way, and then changed, by
// this process and by others, while more is read. The sums are the same in each run.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 3 << 20, PIECE = 4096 };

static char *path;
static unsigned char buf[1 << 20];
static unsigned long sum;

static void add(long n)
{
	for (long i = 0; i < n; i++)
		sum = sum * 31 + buf[i];
}

static void say(const char *what)
{
	printf("%s %016lx\n", what, sum);
	fflush(stdout);
	sum = 0;
}

static int opened(int flags)
{
	int fd = open(path, flags, 0600);
	if (fd < 0)
		perror("open"), exit(1);
	return fd;
}

static void make(unsigned seed, long size)
{
	int fd = opened(O_WRONLY | O_CREAT | O_TRUNC);
	for (long at = 0; at < size; at += sizeof buf) {
		for (unsigned i = 0; i < sizeof buf; i++)
			buf[i] = (seed = seed * 1103515245 + 12345) >> 16;
		write(fd, buf, sizeof buf);
	}
	close(fd);
}

static void some(int fd, long bytes)
{
	for (long n = 1; bytes > 0 && n > 0; bytes -= n) {
		n = read(fd, buf, PIECE);
		add(n);
	}
}

// A child that changes the file, or reads, when it is told to. It is there before the file is opened.
static int to_child[2], from_child[2], gives[2];

static void child(void)
{
	char c;
	close(to_child[1]);
	while (read(to_child[0], &c, 1) == 1) {
		int fd;
		switch (c) {
		case 'w': // a few bytes in the middle
			fd = opened(O_WRONLY);
			pwrite(fd, "changed", 7, SIZE / 2);
			close(fd);
			break;
		case 't':
			truncate(path, SIZE / 4);
			break;
		case 'r': // where the parent reads
			{
				char control[CMSG_SPACE(sizeof fd)], byte;
				struct iovec iov = { &byte, 1 };
				struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
				recvmsg(gives[1], &m, 0);
				memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
				read(fd, buf, 12345);
				close(fd);
			}
		}
		write(from_child[1], &c, 1);
	}
	_exit(0);
}

static void tell(char c)
{
	write(to_child[1], &c, 1);
	read(from_child[0], &c, 1);
}

static void give(int fd)
{
	char control[CMSG_SPACE(sizeof fd)] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(h), &fd, sizeof fd);
	sendmsg(gives[0], &m, 0);
}

static int shared;
static unsigned long parts[2];

static void *reader(void *arg)
{
	unsigned long part = 0;
	unsigned char own[PIECE];
	for (long n; (n = read(shared, own, sizeof own)) > 0;)
		for (long i = 0; i < n; i++)
			part += own[i] * 2654435761u;
	parts[(long)arg] = part;
	return 0;
}

int main(int argc, char **argv)
{
	path = argv[1];
	pipe(to_child);
	pipe(from_child);
	socketpair(AF_UNIX, SOCK_STREAM, 0, gives);
	pid_t pid = fork();
	if (pid == 0)
		child();

	make(1, SIZE);
	int fd = opened(O_RDONLY);
	some(fd, SIZE);
	say("all");
	lseek(fd, 0, SEEK_SET);
	some(fd, SIZE / 2);
	for (int i = 0; i < 300; i++)
		add(pread(fd, buf, 2000 + 7 * i, 10000 * i));
	int twin = dup(fd);
	for (int i = 0; i < 50; i++) { // the same place in the file, by two descriptors
		add(read(fd, buf, PIECE));
		add(read(twin, buf, 1500));
		add(read(i % 2 ? fd : twin, buf, 100));
	}
	say("mixed");

	give(fd);
	tell('r');
	some(fd, 100000);
	say("given away");

	close(fd);
	fd = opened(O_RDONLY);
	some(fd, SIZE);
	lseek(fd, 0, SEEK_SET);
	some(fd, SIZE / 4);
	tell('w');
	some(fd, SIZE);
	lseek(fd, SIZE / 2 - PIECE, SEEK_SET);
	some(fd, 3 * PIECE);
	say("changed by another");

	make(2, SIZE); // by itself
	lseek(fd, 0, SEEK_SET);
	some(fd, SIZE);
	close(fd);
	char other[4096];
	snprintf(other, sizeof other, "%s.other", path);
	path = other; // one that nobody has changed yet
	make(3, SIZE);
	fd = opened(O_RDONLY);
	some(fd, SIZE);
	int w = open(path, O_WRONLY | O_NONBLOCK);
	printf("opened %d, %s\n", w >= 0, strerror(w < 0 ? errno : 0));
	pwrite(w, "by myself", 9, 5000);
	close(w);
	lseek(fd, 0, SEEK_SET);
	some(fd, SIZE);
	close(fd);
	say("changed by itself");

	path[strlen(path) - 1] = '2';
	make(4, SIZE);
	fd = opened(O_RDONLY);
	some(fd, SIZE);
	lseek(fd, 0, SEEK_SET);
	pid_t second = fork(); // it reads where this one does
	if (second == 0) {
		some(fd, 12 * PIECE);
		_exit(0);
	}
	waitpid(second, 0, 0);
	some(fd, SIZE);
	say("with a child");
	close(fd);

	shared = opened(O_RDONLY);
	some(shared, SIZE);
	lseek(shared, 0, SEEK_SET);
	pthread_t threads[2];
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], 0, reader, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], 0);
	sum = parts[0] + parts[1];
	say("by threads");

	fd = opened(O_RDONLY);
	some(fd, SIZE);
	truncate(path, SIZE / 3);
	lseek(fd, 0, SEEK_SET);
	some(fd, SIZE);
	say("cut");
	close(to_child[1]);
	waitpid(pid, 0, 0);
	if (argc > 2)
		abort();
	return 0;
}
