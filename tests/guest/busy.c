// Runs for half a second without a system call: a search that asks at each beat takes much longer.
#include <stdlib.h>

volatile int beats;

void beat(int i) {
	beats += i & 1; // BEAT
}

int main(void) {
	for (int i = 0; i < 100000000; i++) beat(i);
	abort();
}
