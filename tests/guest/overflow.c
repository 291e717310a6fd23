// Writes behind a heap block by a function of the C library, which one HOW says. glibc notices long after.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *blocks[8];
static const char *text = "a text that is longer than the block that it is copied into, by far";

static void fill(char *to, size_t n) {
#if HOW == 1
	strcpy(to, text); // STRCPY
#elif HOW == 2
	memcpy(to, text, n); // MEMCPY
#elif HOW == 3
	memset(to, 'Q', n); // MEMSET
#else
	sprintf(to, "%s and %d", text, 42); // SPRINTF
#endif
}

int main(void) {
	for (int i = 0; i < 8; i++)
		blocks[i] = malloc(40);
	for (int round = 0; round < 3; round++) { // blocks come back from the free list, too
		free(blocks[6]);
		blocks[6] = malloc(40);
		memset(blocks[6], round, 40);
		blocks[6] = realloc(blocks[6], 40);
	}
	fill(blocks[3], 64);
	char *own = calloc(1, 40);
	for (int i = 0; i < 8; i++)
		free(blocks[i]);
	free(own);
	return 0;
}
