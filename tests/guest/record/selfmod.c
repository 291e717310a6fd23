// Code that the program writes and runs, rewrites in place, and patches one
// instruction ahead of itself.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int main(void) {
	unsigned char *p = mmap(0, 8192, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned long sum = 0;
	int (*f)(int) = (int (*)(int))p;
	for (int i = 0; i < 2000; i++) {
		// lea eax,[rdi+i]; ret
		unsigned char code[] = {0x8d, 0x87, i & 255, i >> 8, 0, 0, 0xc3};
		memcpy(p, code, sizeof code);
		sum = sum * 31 + f(i);
	}
	// A loop that rewrites the immediate of its own next instruction.
	unsigned char loop[] = {
		0x31, 0xc0,                               // xor eax,eax
		0xb9, 100, 0, 0, 0,                       // mov ecx,100
		0x88, 0x0d, 1, 0, 0, 0,                   // mov [rip+1],cl: the next immediate
		0x05, 0, 0, 0, 0,                         // add eax,imm32
		0xff, 0xc9,                               // dec ecx
		0x75, 0xf1,                               // jnz to the mov
		0xc3,
	};
	memcpy(p + 4090, loop, sizeof loop); // across a page
	sum = sum * 31 + ((int (*)(void))(p + 4090))();
	mprotect(p, 8192, PROT_READ | PROT_EXEC);
	sum = sum * 31 + f(3);
	printf("%lu\n", sum);
	return 0;
}
