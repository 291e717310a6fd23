// Runs for a while without a system call.
#include <stdlib.h>

volatile int beats;

void beat(int i) {
	beats += i & 1; // BEAT
}

int main(void) {
	for (int i = 0; i < 3000000; i++) beat(i);
	abort();
}
