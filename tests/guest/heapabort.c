// Damage of the heap that the C library finds in free, by the number of arguments.
#include <stdlib.h>
#include <string.h>

void spoil(char *at, const char *text) {
	strcpy(at, text); // CULPRIT
}

void release(char *p) {
	free(p); // FREE
}

int main(int argc, char **argv) {
	(void)argv;
	char *small = malloc(24), *next = malloc(24), *big = malloc(2000), *last = malloc(2000);
	if (argc == 2) {
		spoil(small, "a text that is longer than twenty-four bytes");
		release(next); // HEADER
	}
	if (argc == 3) {
		spoil(big + 2000, "behind its end");
		release(big); // NEXT
	}
	if (argc == 4) {
		release(next); // FIRST
		release(next); // SECOND
	}
	free(last + 16); // WRONG
	return 0;
}
