// Runs for a second without a system call, and writes a variable once, early on.
#include <stdlib.h>

volatile int beats;
char apart[8192];
int early;
char behind[8192];

void beat(int i) {
	beats += i & 1;
}

int main(void) {
	early = 5; // EARLY
	for (int i = 0; i < 50000000; i++) beat(i);
	abort();
}
