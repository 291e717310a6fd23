// A program that looks at what depends on the CPU alone: which components XSAVEC and
// XGETBV count as in use while all vector registers are zero. It tells each time by
// the argument of a system call and, with an argument, only once for many times.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PLAIN __attribute__((noinline, target("general-regs-only")))

static uint8_t zeros[32] __attribute__((aligned(32)));
static uint8_t area[1088] __attribute__((aligned(64))), copy[832];

PLAIN static void clear(int how) {
	__asm__ volatile("vzeroall; fninit");
	if (how) __asm__ volatile("movdqu %0, %%xmm3" ::"m"(zeros));
}

PLAIN static uint64_t saved(void) {
	memset(area, 0xff, 512);
	memset(area + 512, 0, 64);
	__asm__ volatile("xsavec64 (%0)" ::"r"(area), "a"(7), "d"(0) : "memory");
	return *(volatile uint64_t *)(area + 512);
}

PLAIN static uint64_t shown(void) {
	uint32_t a, d;
	__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1));
	return a;
}

// tell makes a call that fails, with an argument.
PLAIN static void tell(uint64_t v) {
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "0"((long)SYS_close), "D"(-100 - (long)v) : "rcx", "r11", "memory");
}

PLAIN static void copied(void) {
	const void *s = area;
	void *d = copy;
	long n = sizeof copy;
	__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n)::"memory");
}

int main(int argc, char **argv) {
	if (argc > 1) {
		uint64_t all = 0;
		for (int i = 0; i < 60; i++) {
			clear(i % 3 == 1);
			all = all << 1 | (saved() >> 1 & 1);
		}
		tell(all & 0xffffff);
	}
	for (int i = 0; i < 40; i++) {
		clear(i % 3 == 1);
		tell(saved());
		clear(i % 2);
		tell(shown());
	}
	clear(1);
	saved();
	copied();
	puts("done");
	return 0;
}
