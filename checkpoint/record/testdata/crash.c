// Ends of all kinds, by argument.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int deep(int n) {
	volatile char a[4096];
	a[n & 4095] = n;
	return deep(n + 1) + a[1];
}
int main(int c, char **v) {
	char *p = malloc(1 << 20);
	for (int i = 0; i < 256; i++) memset(p + 4096 * i, i, 4096);
	volatile unsigned long x = 1;
	for (int i = 0; i < 30000000; i++) {
		x = x * 3 + 1;
		p[x >> 44 & 0xfffff]++;
		if (i % 1000000 == 0) getppid();
	}
	puts("about to end");
	fflush(stdout);
	const char *how = c > 1 ? v[1] : "";
	if (!strcmp(how, "null")) *(volatile int *)8 = 1;
	if (!strcmp(how, "jump")) ((void (*)(void))0x1234567)();
	if (!strcmp(how, "div")) return c / (int)(x & 0);
	if (!strcmp(how, "ill")) __builtin_trap();
	if (!strcmp(how, "abort")) abort();
	if (!strcmp(how, "stack")) return deep(1);
	if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
	if (!strcmp(how, "term")) raise(SIGTERM);
	if (!strcmp(how, "spin")) for (;;) x++;
	if (!strcmp(how, "sleep")) pause();
	if (!strcmp(how, "int3")) __asm__ volatile("int3");
	return 4;
}
