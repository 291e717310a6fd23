// RDRAND and RDSEED of all sizes, to low and high registers, in the program and in a child, and what follows from their numbers.
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long sum;
static int given, wrong; // RDSEED may have nothing to give; RDRAND, two thirds of them, has

#define TAKE(insn, type, reg) \
	do { \
		unsigned long v = 0x1122334455667788; \
		unsigned char ok, sign, other = 0; \
		asm volatile("mov %3, %%" reg "\n\tcmp $1, %b4\n\t" insn "\n\tsetc %1\n\tsets %2\n\tmov %%" reg ", %0" \
			: "=&r"(v), "=&r"(ok), "=&r"(sign) : "r"(v), "r"(other) : reg, "cc"); \
		given += ok; \
		wrong += sign; /* which CMP has set */ \
		wrong += sizeof(type) == 4 && v >> 32; \
		wrong += sizeof(type) == 2 && v >> 16 != 0x112233445566; \
		sum = sum * 31 + (type)v; \
	} while (0)

static void take(void) {
	TAKE("rdrand %%rax", unsigned long, "rax");
	TAKE("rdrand %%ecx", unsigned, "rcx");
	TAKE("rdrand %%r9w", unsigned short, "r9");
	TAKE("rdrand %%r12", unsigned long, "r12");
	TAKE("rdseed %%rdx", unsigned long, "rdx");
	TAKE("rdseed %%r15d", unsigned, "r15");
	TAKE("rdseed %%si", unsigned short, "rsi");
}

int main(void) {
	int status, n = 0;
	for (int i = 0; i < 50; i++) {
		take();
		for (volatile unsigned long k = sum % 500; k > 0; k--) n++;
		(void)!getppid();
	}
	printf("%s, %d wrong, %d\n", given >= 200 ? "given" : "not given", wrong, n > 0);
	fflush(stdout);
	if (fork() == 0) {
		take();
		_exit(wrong);
	}
	wait(&status);
	printf("child: %d wrong\n", WEXITSTATUS(status));
	return 0;
}
