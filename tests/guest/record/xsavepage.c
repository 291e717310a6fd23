// A program that works for long on a page of which some bytes depend on what the CPU
// alone knows: which components XSAVEC counted as in use. Some of these bytes are never
// stored to again. With an argument it looks at one of them behind all that work, and
// tells by the argument of a system call what it was.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PLAIN __attribute__((noinline, target("general-regs-only")))

static uint8_t zeros[32] __attribute__((aligned(32)));
static struct {
	uint8_t area[1088];
	volatile uint64_t work[64];
} page __attribute__((aligned(4096)));

PLAIN static void save(int how) {
	__asm__ volatile("vzeroall; fninit");
	if (how) __asm__ volatile("movdqu %0, %%xmm3" ::"m"(zeros));
	memset(page.area, 0xff, 512);
	memset(page.area + 512, 0, 64);
	__asm__ volatile("xsavec64 (%0)" ::"r"(page.area), "a"(7), "d"(0) : "memory");
}

PLAIN static void work(uint64_t n) {
	for (uint64_t i = 0; i < n; i++) {
		page.work[i & 63] += i;
		page.area[16 + (i & 7)] = (uint8_t)i;
	}
}

PLAIN static void tell(uint64_t v) {
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "0"((long)SYS_close), "D"(-100 - (long)v) : "rcx", "r11", "memory");
}

int main(int argc, char **argv) {
	(void)argv;
	for (int i = 0; i < 4; i++) {
		save(i % 2);
		work(900000);
		if (argc > 1) tell(*(volatile uint64_t *)(page.area + 512));
	}
	puts("done");
	return 0;
}
