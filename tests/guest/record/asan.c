// "overflow" writes behind a block, "leak" loses one; else nothing is wrong.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *volatile block;

int main(int argc, char **argv) {
	block = malloc(10);
	if (!strcmp(argv[1], "overflow"))
		block[10] = 1;
	if (strcmp(argv[1], "leak"))
		free(block);
	block = 0;
	printf("%s ends\n", argv[1]);
	return 5;
}
