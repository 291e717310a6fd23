// Writers beside the program's own stores: process_vm_writev and /proc/self/mem
// on itself, and a child that writes shared anonymous memory.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
	static char a[5000], b[5000];
	memset(a, 'a', sizeof a);
	struct iovec l = {a, 3000}, r = {b, 3000};
	long n = process_vm_writev(getpid(), &l, 1, &r, 1, 0);
	printf("writev %ld %c %d\n", n, b[2999], b[3000]);
	n = process_vm_readv(getpid(), &l, 1, &r, 1, 0);
	printf("readv %ld\n", n);
	int fd = open("/proc/self/mem", O_RDWR);
	const char *text = "through the file";
	n = pwrite(fd, text, strlen(text), (off_t)(unsigned long)b);
	printf("mem %ld %.20s\n", n, b);
	const char *const ro = "read only text";
	n = pwrite(fd, "R", 1, (off_t)(unsigned long)ro); // COW of a read-only page
	printf("ro %ld %c\n", n, *(const volatile char *)ro);
	volatile int *s = mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 5; i++) {
		pid_t p = fork();
		if (p == 0) {
			s[1] = s[0] * 2 + i;
			_exit(0);
		}
		s[0] = 100 * i; // both write, different words
		int st;
		waitpid(p, &st, 0);
		printf("%d\n", s[1] >= i);
	}
	return 0;
}
