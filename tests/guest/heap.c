// Heap overflow: the size of the top chunk is overwritten; the next malloc that
// needs it aborts.
#include <stdlib.h>
#include <string.h>

char *keep;

void copy(char *to, int n) {
	for (int i = 0; i < n; i++) to[i] = 'x'; // CULPRIT
}

int main(int argc, char **argv) {
	(void)argv;
	char *p = malloc(24);
	copy(p, 31 + argc);
	keep = malloc(4000);
	strcpy(keep, "never");
	return 0;
}
