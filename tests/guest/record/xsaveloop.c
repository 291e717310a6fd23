// A program that saves its registers itself, while all vector registers are zero:
// which components XSAVE then counts as in use is up to the CPU. The areas lie one
// over the other on the stack, with other frames between, and side by side; all are
// loaded again with XRSTOR, and nothing else reads them.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PLAIN __attribute__((noinline, target("general-regs-only")))

static uint8_t zeros[32] __attribute__((aligned(32)));
static uint8_t areas[64][1088] __attribute__((aligned(64)));
static volatile long sum;

// clear makes all vector registers zero, in one of three ways: some CPUs count them
// as in use by how they became so.
PLAIN static void clear(int how) {
	switch (how % 3) {
	case 0: __asm__ volatile("vzeroall"); break;
	case 1: __asm__ volatile("vzeroall; movdqu %0, %%xmm3" ::"m"(zeros)); break;
	case 2: __asm__ volatile("vzeroall; vmovdqu %0, %%ymm3" ::"m"(zeros)); break;
	}
	__asm__ volatile("fninit");
	if (how % 5 == 0) __asm__ volatile("fldz; fstp %st(0)");
}

PLAIN static void save(uint8_t *p, int how) {
	for (int i = 512; i < 576; i++) ((volatile uint8_t *)p)[i] = 0;
	switch (how % 3) {
	case 0: __asm__ volatile("xsavec64 (%0)" ::"r"(p), "a"(7), "d"(0) : "memory"); break;
	case 1: __asm__ volatile("xsaveopt64 (%0)" ::"r"(p), "a"(7), "d"(0) : "memory"); break;
	case 2: __asm__ volatile("xsave64 (%0)" ::"r"(p), "a"(7), "d"(0) : "memory"); break;
	}
}

PLAIN static void load(uint8_t *p) {
	__asm__ volatile("xrstor64 (%0)" ::"r"(p), "a"(7), "d"(0) : "memory");
}

// frame leaves garbage where an area will lie, or lay.
PLAIN static void frame(int depth, int i) {
	volatile uint8_t b[200];
	for (int k = 0; k < 200; k++) b[k] = (uint8_t)(i + k) | 1;
	if (depth > 0) frame(depth - 1, i);
	sum += b[i % 200];
}

// resolve is what the dynamic linker does at a first call.
PLAIN static void resolve(int i) {
	uint8_t raw[1088 + 64];
	uint8_t *p = (uint8_t *)(((uintptr_t)raw + 63) & ~63ul);
	clear(i);
	save(p, i / 3 % 7 ? 0 : i);
	frame(2, i);
	load(p);
}

PLAIN static void deeper(int i) {
	volatile char room[64 * 5];
	room[i % 320] = (char)i;
	resolve(i);
}

int main(void) {
	memset(areas, 0xff, sizeof areas);
	for (int i = 0; i < 1500; i++) {
		if (i % 7 < 3) frame(5, i);
		if (i % 4 == 0) deeper(i);
		else resolve(i);
		if (i % 500 == 0) syscall(SYS_getppid);
	}
	for (int i = 0; i < 64; i++) {
		clear(i);
		save(areas[i], i / 2);
		if (i % 8 == 0) load(areas[i]);
	}
	printf("%ld\n", sum);
	return 0;
}
