// What XSAVEC stores depends on which state components are in use, and a signal
// handler begins with none. On Intel the bit of the XMM registers may become set
// at any time under a hypervisor; here nothing in the handler writes them.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AREAS 512
#define PLAIN __attribute__((noinline, target("general-regs-only")))

static uint8_t area[AREAS][1088] __attribute__((aligned(64)));
static int used;

// save stores x87, SSE and AVX into an area full of ones.
PLAIN static void save(void) {
	uint8_t *p = area[used++ % AREAS];
	for (int i = 0; i < 1088; i++) ((volatile uint8_t *)p)[i] = i < 528 && i >= 512 ? 0 : 0xff;
	__asm__ volatile("xsavec64 (%0)" ::"r"(p), "a"(7), "d"(0) : "memory");
}

PLAIN static void call(void) {
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "0"(SYS_getppid) : "rcx", "r11", "memory");
}

PLAIN static void ask(void) {
	uint32_t a = 0, c = 0;
	__asm__ volatile("cpuid" : "+a"(a), "+c"(c)::"rbx", "rdx");
}

PLAIN static void handler(int s) {
	save();
	call();
	save();
	ask();
	save();
	for (volatile int i = 0; i < 3000; i++) {}
	save();
	__asm__ volatile("vpxor %xmm0, %xmm0, %xmm0; vpxor %ymm1, %ymm1, %ymm1");
	save();
	__asm__ volatile("vzeroupper; fninit");
	save();
}

int main(void) {
	signal(SIGUSR1, handler);
	for (int i = 0; i < 60; i++) {
		save();
		raise(SIGUSR1);
		save();
	}
	printf("%d areas\n", used);
	return 0;
}
