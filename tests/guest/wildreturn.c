// Stack smash without a protector: the function returns into nowhere.
#include <string.h>

#ifndef FILL
#define FILL 'A' // with 0 it is an address that exists
#endif

int depth;

void fill(int n) {
	long slots[4];
	memset(slots, FILL, (unsigned)n * 8); // CULPRIT
	depth += (int)slots[0];
}

int main(int argc, char **argv) {
	(void)argv;
	fill(7 + argc);
	return depth;
}
