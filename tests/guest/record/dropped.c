// Gives private pages of a file up and stores to them again, with no call meanwhile: many pages, so that a thread that is
// stopped is in the page fault of such a store nearly always (dropped faults), or one, in a loop
// that has the same registers in each turn and tells its turns by one more word of memory only (dropped marks).
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 256, WORDS = PAGE / 8 };

unsigned long marks[WORDS] __attribute__((aligned(4096))); // the words of the turns that were
static unsigned char *view;

static void give(long pages) {
	if (madvise(view, pages * PAGE, MADV_DONTNEED)) abort();
}

static void faults(void) {
	for (int round = 0; round < 400; round++) {
		give(PAGES);
		for (long k = 0; k < PAGES; k++) view[k * PAGE + round] += k;
	}
}

// Sets the marks one after the other, with a pause behind each. Behind the hundredth it stores what is there to the page,
// which no word tells then.
static void mark(unsigned char *page) {
	asm volatile("1: lea marks(%%rip), %%rdi\n"
		     "lea 4096(%%rdi), %%rcx\n"
		     "lea 800(%%rdi), %%rdx\n"
		     "2: cmp %%rcx, %%rdi\n"
		     "je 4f\n"
		     "add $8, %%rdi\n"
		     "cmpq $0, -8(%%rdi)\n"
		     "jne 2b\n"
		     "movq $1, -8(%%rdi)\n"
		     "cmp %%rdx, %%rdi\n"
		     "jne 3f\n"
		     "movb $'x', (%0)\n"
		     "3: xor %%edi, %%edi\n"
		     ".rept 10000\nnop\n.endr\n"
		     "jmp 1b\n"
		     "4:" ::"r"(page) : "rdi", "rcx", "rdx", "memory", "cc");
}

int main(int argc, char **argv) {
	unsigned char page[PAGE];
	long sum = 0;
	int fd = open("dropped.data", O_RDWR | O_CREAT | O_TRUNC, 0600);
	memset(page, 'x', PAGE);
	for (int i = 0; i < PAGES; i++) if (write(fd, page, PAGE) != PAGE) abort();
	view = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (view == MAP_FAILED || argc < 2) abort();
	if (!strcmp(argv[1], "faults")) faults();
	else for (int round = 0; round < 120; round++) {
		give(1);
		memset(marks, 0, sizeof marks);
		mark(view);
	}
	for (long k = 0; k < PAGES * PAGE; k++) sum = sum * 31 + view[k];
	printf("%lx\n", sum);
	return 0;
}
