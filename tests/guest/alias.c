// A program for asking about the past: memory with two addresses, written by one
// and read by the other, by instructions, REP, system calls and a signal handler;
// the same addresses mapped privately, then shared, then gone; stores that change
// nothing; a short function called often; a long run without system calls.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SIZE = 3 * 4096 };

volatile char *one, *two;
volatile long counter, same;
char text[64];

__attribute__((noinline)) long often(long v) {
	counter += v & 1;
	same = 7; // changes nothing
	return v * 3 + 1;
}

static void on_signal(int s) {
	two[100 + s] = (char)counter;
}

static void through(int i) {
	one[i & 4095] = (char)i;
	counter += two[i & 4095];
	*(volatile long *)(one + 4092) = i; // both pages
	void *d = (void *)(two + 5000), *s = text;
	size_t n = sizeof text;
	__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
	counter += one[5000 + (i & 63)];
}

int main(void) {
	struct sigaction a = {.sa_handler = on_signal};
	sigaction(SIGUSR1, &a, 0);
	int fd = memfd_create("alias", 0), p[2];
	if (fd < 0 || ftruncate(fd, SIZE) || pipe(p)) return 2;
	one = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	two = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char *three = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long v = 1;
	for (int i = 0; i < 30; i++) {
		memset(text, i / 2, sizeof text);
		through(i * 37);
		for (int k = 0; k < 40; k++) v = often(v);
		raise(SIGUSR1);
		if (write(p[1], text, 16) != 16 || read(p[0], (void *)(one + 200 + i), 16) != 16) return 3;
		three[i] = (char)v;
		three[4096] = 0;
#ifdef REMAP
		if (i == 10) { // from private to the same shared object
			if (mmap(three, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != three) return 4;
		}
		if (i == 20) { // and back, elsewhere
			three = mremap(three, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, (char *)one + (16 << 20));
			if (three == MAP_FAILED) return 5;
		}
#endif
	}
	for (int k = 0; k < 3000; k++) v = often(v); // nothing but this
	printf("%ld %ld\n", counter, v);
	return 0;
}
