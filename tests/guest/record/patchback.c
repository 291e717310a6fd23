// A page of the program's code that it writes over, and then back as it was: what an interval begins with may be either.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

long calls(void);
asm(".text; .p2align 12; calls: mov $110, %eax; syscall; ret; .p2align 12"); // getppid(2)

static const unsigned char other[] = {0xb8, 42, 0, 0, 0, 0xc3, 0x90, 0x90}; // mov $42, %eax; ret

int main(void) {
	unsigned char *code = (unsigned char *)calls, own[sizeof other];
	long parent = getppid(), wrong = 0;
	memcpy(own, code, sizeof own); // before calls lead anywhere else
	for (int k = 0; k < 200; k++) wrong += calls() != parent; // they lead to the agent, and the page is the file's but for that
	for (int i = 0; i < 300; i++) {
		mprotect(code, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
		memcpy(code, other, sizeof other);
		mprotect(code, 4096, PROT_READ | PROT_EXEC);
		for (int k = 0; k < 20; k++) wrong += calls() != 42 || getppid() != parent;
		mprotect(code, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
		memcpy(code, own, sizeof own);
		mprotect(code, 4096, PROT_READ | PROT_EXEC);
		for (int k = 0; k < 200; k++) wrong += calls() != parent;
	}
	printf("%ld wrong\n", wrong);
	return 0;
}
