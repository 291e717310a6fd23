// The sieve of Eratosthenes over bytes: strided stores.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char composite[1 << 20];

int main(int argc, char **argv) {
	long n = argc > 1 ? atol(argv[1]) : 1, count = 0;
	for (long r = 0; r < n; r++) {
		memset(composite, 0, sizeof composite);
		for (unsigned i = 2; i < sizeof composite; i++) {
			if (composite[i]) continue;
			count++;
			for (unsigned j = 2 * i; j < sizeof composite; j += i) composite[j] = 1;
		}
	}
	printf("%ld\n", count);
}
