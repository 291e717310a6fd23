// Packed doubles, as the compiler makes them of plain loops at -O3: products,
// sums, quotients and roots.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 64 };
static double a[N][N], b[N][N], c[N][N];

int main(int argc, char **argv) {
	long n = argc > 1 ? atol(argv[1]) : 1;
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) a[i][j] = 1.0 / (i + j + 1), b[i][j] = 0.5 * i - j;
	for (long r = 0; r < n; r++) {
		for (int i = 0; i < N; i++) {
			for (int j = 0; j < N; j++) c[i][j] = 0;
			for (int k = 0; k < N; k++)
				for (int j = 0; j < N; j++) c[i][j] += a[i][k] * b[k][j];
		}
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++) b[i][j] = sqrt(c[i][j] * c[i][j] + 2) / (1 + c[i][j] * c[i][j]);
	}
	double s = 0;
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) s += b[i][j];
	printf("%.17g\n", s);
}
