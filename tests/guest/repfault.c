// Fills a million bytes by one REP STOSB, then copies beyond a page that nothing follows by one REP MOVSB, and dies of it.
#include <stddef.h>
#include <sys/mman.h>

static char big[1000000], from[8192];

int main(void) {
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(page + 4096, 4096);
	void *to = big, *source = from;
	size_t n = sizeof big;
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(7) : "memory");
	to = page, n = sizeof from;
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(source), "+c"(n) : : "memory");
	return 0;
}
