// The heap shrinks and grows again: the pages read zero then.
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void) {
	unsigned long sum = 0;
	char line[128];
	for (int i = 0; i < 30; i++) {
		unsigned char *p = sbrk(200000 + i * 1111);
		for (int k = 0; k < 200000; k += 100) sum += p[k];
		memset(p, i + 1, 200000);
		for (int k = 0; k < 200000; k++) sum = sum * 31 + p[k];
		sbrk(-150000 - i * 1111);
		unsigned char *q = sbrk(100000);
		for (int k = 0; k < 100000; k += 50) sum = sum * 31 + q[k];
		sbrk(-150000);
	}
	int n = snprintf(line, sizeof line, "%lx\n", sum);
	write(1, line, n);
	return 0;
}
