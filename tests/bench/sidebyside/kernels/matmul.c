// Multiplication of integer matrices: two loads, a product and a sum.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 192 };
static uint64_t a[N][N], b[N][N], c[N][N];

int main(int argc, char **argv) {
	long n = argc > 1 ? atol(argv[1]) : 1;
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) a[i][j] = i * N + j, b[i][j] = 3 * i + j + 1;
	uint64_t s = 0;
	for (long r = 0; r < n; r++)
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++) {
				uint64_t x = r;
				for (int k = 0; k < N; k++) x += a[i][k] * b[k][j];
				c[i][j] = x;
				s += x;
			}
	printf("%lu\n", s);
}
