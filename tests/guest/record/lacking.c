// Executes an instruction that not every CPU has, whatever CPUID says, with an operand in memory that is there.
#include <stdio.h>
#include <string.h>

static char area[64] __attribute__((aligned(64)));

int main(int argc, char **argv) {
	const char *name = argc > 1 ? argv[1] : "";
	if (!strcmp(name, "sse4a")) __asm__ volatile("extrq $1, $2, %%xmm0" ::: "xmm0");
	if (!strcmp(name, "sha")) __asm__ volatile("sha256msg1 %0, %%xmm0" ::"m"(area) : "xmm0");
	if (!strcmp(name, "vaes")) __asm__ volatile("vaesenc %0, %%ymm0, %%ymm0" ::"m"(area) : "xmm0");
	if (!strcmp(name, "avx512f")) __asm__ volatile("vpaddd %%zmm1, %%zmm2, %%zmm3" ::: "xmm3");
	if (!strcmp(name, "serialize")) __asm__ volatile(".byte 0x0f, 0x01, 0xe8");
	if (!strcmp(name, "movdiri")) __asm__ volatile("movdiri %%rax, %0" : "=m"(area)::"memory");
	if (!strcmp(name, "popcnt")) __asm__ volatile("popcnt %%rsp, %%rax" ::: "rax");
	puts("executed");
	return 0;
}
