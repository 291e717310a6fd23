// As many mappings as argv[1] says: every other page of an array is protected.
#include <stdlib.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
	long n = atol(argv[1]);
	char *p = mmap(0, n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return 1;
	for (long i = 0; i < n; i += 2) {
		if (mprotect(p + i * 4096, 4096, PROT_READ))
			return 2;
		if (i % 64 == 0)
			p[(i + 1) * 4096] = 1;
	}
	return 0;
}
