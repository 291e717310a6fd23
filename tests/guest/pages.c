// Touches so many MiB once, and crashes. The second argument says what is written to
// each page: "one" byte that is the same in all, or "eight" that differ from page to page.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
	size_t n = (size_t)atol(argv[1]) << 20;
	int eight = argc > 2 && !strcmp(argv[2], "eight");
	char *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < n; i += 4096) {
		p[i] = 1;
		if (eight)
			for (size_t k = 0, v = i; k < 8; k++, v /= 7)
				p[i + 512 * k + 8] = v;
	}
	return *(volatile int *)0;
}
