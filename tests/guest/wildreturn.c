// Stack smash without a protector: the function returns into nowhere.
#include <string.h>

int depth;

void fill(int n) {
	long slots[4];
	memset(slots, 'A', (unsigned)n * 8); // CULPRIT
	depth += (int)slots[0];
}

int main(int argc, char **argv) {
	(void)argv;
	fill(7 + argc);
	return depth;
}
