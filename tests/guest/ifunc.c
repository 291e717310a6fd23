// Calls of functions that the C library chooses by the CPU (IFUNC), and one of the
// program's own.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long plain(long x) {
	return x + 1; // PLAIN
}
static long (*choose(void))(long) { return plain; }
long chosen(long) __attribute__((ifunc("choose")));

char text[64];
int main(int argc, char **argv) {
	strcpy(text, argv[0]); // FIRST
	strcat(text, "!");
	strcpy(text + 40, "second"); // SECOND
	printf("%s %zu %ld\n", text, strlen(text), chosen(argc)); // CHOSEN
	abort();
}
