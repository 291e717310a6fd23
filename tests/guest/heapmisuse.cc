// Misuses the heap in the way that its argument names, once, at the line marked BUG, or not at all.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/uio.h>
#include <unistd.h>
#include <wchar.h>

static volatile long sink;

static char *make(size_t n) {
	char *p = (char *)malloc(n); // MADE
	memset(p, 'x', n);
	return p;
}

static char *gone(size_t n) {
	char *p = make(n);
	free(p); // FREED
	return p;
}

// Reads whole vectors behind the ends of strings, as it may, in the C library.
static void innocent(void) {
	for (size_t n = 1; n < 200; n++) {
		char *p = make(n), *q = make(n);
		char *hole = make(64), *other = make(n);
		p[n - 1] = q[n - 1] = 0;
		free(hole);
		sink += strlen(p) + strcmp(p, q) + memcmp(p, q, n) + (strchr(p, 'y') == NULL) + (strrchr(p, 'x') == NULL);
		sink += (memchr(other, 'y', n) == NULL) + strnlen(other, n) + strcasecmp(p, q) + strspn(p, "x") + strcspn(p, "yz");
		sink += (strstr(p, "xxy") == NULL) + (memrchr(other, 'y', n) == NULL) + strncmp(other, other + 0, n);
		strcpy(q, p);
		memcpy(q, p, n);
		memmove(other, p, n);
		char *copy = strdup(p);
		char *grown = (char *)realloc(copy, n * 3);
		memset(grown, 'z', n * 3);
		free(realloc(grown, 1));
		free(p);
		free(q);
		free(other);
		if (n % 4 == 0) {
			wchar_t *w = (wchar_t *)malloc(n);
			wmemset(w, L'w', n / 4 - 1);
			w[n / 4 - 1] = 0;
			sink += wcslen(w) + (wcschr(w, L'v') == NULL);
			free(w);
		}
	}
}

// Reads words that have a byte of a block, as compilers' own strlen does.
static void words(void) {
	for (size_t n = 1; n < 50; n++) {
		char *p = make(n);
		for (size_t i = 0; i < n; i += 4)
			sink += *(volatile int *)(p + i);
		free(p);
	}
}

__attribute__((noinline)) static void misuse(const char *how) {
	char text[64] = {0};
	void *aligned = NULL;
	if (!strcmp(how, "after-read")) {
		char *p = gone(40);
		sink = p[33]; // BUG after-read
	} else if (!strcmp(how, "after-write")) {
		char *p = gone(40);
		*(volatile int *)(p + 20) = 7; // BUG after-write
	} else if (!strcmp(how, "after-call")) {
		char *p = gone(40);
		sink = write(1, p, 10); // BUG after-call
	} else if (!strcmp(how, "after-vector")) {
		char *p = gone(40);
		struct iovec v = {p, 10};
		sink = writev(1, &v, 1); // BUG after-vector
	} else if (!strcmp(how, "call-over")) {
		char *p = make(10);
		int fd[2];
		sink = pipe(fd) + write(fd[1], text, 11);
		sink = read(fd[0], p, 11); // BUG call-over
	} else if (!strcmp(how, "after-copy")) {
		char *p = gone(40);
		memcpy(text, p, atoi("24")); // BUG after-copy
	} else if (!strcmp(how, "after-strlen")) {
		char *p = make(40);
		p[39] = 0;
		free(p); // GONE
		sink = strlen(p + 16); // BUG after-strlen
	} else if (!strcmp(how, "over-read")) {
		char *p = make(17);
		sink = ((volatile char *)p)[17]; // BUG over-read
	} else if (!strcmp(how, "over-write")) {
		char *p = make(24);
		((volatile char *)p)[24] = 0x41; // BUG over-write
	} else if (!strcmp(how, "over-strlen")) {
		char *p = make(20);
		sink = strlen(p); // BUG over-strlen
	} else if (!strcmp(how, "over-copy")) {
		char *p = make(20);
		memcpy(p, text, atoi("21")); // BUG over-copy
	} else if (!strcmp(how, "under-read")) {
		char *p = make(24);
		sink = ((volatile char *)p)[-1]; // BUG under-read
	} else if (!strcmp(how, "under-apart")) { // no register has the block's address, and the block in front ends far away
		make(1002);
		char *p = make(1500) - 1;
		__asm__ volatile("xor %%eax, %%eax\n\txor %%ecx, %%ecx\n\txor %%edx, %%edx\n\txor %%esi, %%esi\n\txor %%edi, %%edi"
				 : "+b"(p) : : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");
		sink = *(volatile char *)p; // BUG under-apart
	} else if (!strcmp(how, "not")) {
		words();
	} else if (!strcmp(how, "new-over")) {
		long *p = new long[3]; // NEW
		((volatile long *)p)[3] = 0x21; // BUG new-over
		delete[] p;
	} else if (!strcmp(how, "calloc-over")) {
		char *p = (char *)calloc(3, 7); // CALLOC
		sink = ((volatile char *)p)[21]; // BUG calloc-over
	} else if (!strcmp(how, "aligned-over") && !posix_memalign(&aligned, 64, 100)) { // ALIGNED
		sink = ((volatile char *)aligned)[100]; // BUG aligned-over
	} else if (!strcmp(how, "strdup-over")) {
		char *p = strdup("hello");
		sink = ((volatile char *)p)[6]; // BUG strdup-over
	} else if (!strcmp(how, "realloc-moved")) {
		char *p = make(40), *q = make(40), *r = (char *)realloc(p, 4000); // MOVED
		sink = ((volatile char *)p)[3]; // BUG realloc-moved
		sink = (long)q + (long)r;
	} else if (!strcmp(how, "realloc-shrunk")) {
		char *p = make(400);
		p = (char *)realloc(p, 100); // SHRUNK
		sink = ((volatile char *)p)[100]; // BUG realloc-shrunk
	} else if (!strcmp(how, "rep-over")) {
		char *p = make(48), *to = p;
		size_t n = 49;
		__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(0) : "memory"); // BUG rep-over
	} else if (!strcmp(how, "loop")) {
		char *p = gone(40);
		for (int i = 0; i < 100000; i++) sink += ((volatile char *)p)[i % 40]; // BUG loop
	} else if (!strcmp(how, "unmapped")) {
		char *p = gone(4 << 20);
		sink = p[5]; // BUG unmapped
	} else if (!strcmp(how, "twice")) {
		char *p = gone(40);
		free(p); // BUG twice
	}
	free(aligned);
}

int main(int argc, char **argv) {
	setvbuf(stdout, NULL, _IONBF, 0);
	innocent();
	misuse(argc > 1 ? argv[1] : "");
	innocent();
	return 0;
}
