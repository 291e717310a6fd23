// Executes 400 million NOPs and nothing else: as many instructions in as little CPU time as a CPU can. Zen 4 takes two NOPs as one, and
// retires 44 of them in a nanosecond.
#include <stdio.h>

int main(void) {
	for (int i = 0; i < 40000; i++) asm volatile(".rept 10000\nnop\n.endr");
	puts("done");
	return 0;
}
