// A place in a ring is rounded from a float, which may be the ring itself and more.
#include <stdint.h>

static double ring[8];
static double *slots[9];
volatile long busy;

static long slot(double share) {
	return (long)(share * 8.0 + 0.5); // cause
}

int main(void) {
	for (int i = 0; i < 8; i++)
		slots[i] = &ring[i];
	double share = 0.0;
	for (int i = 0; i < 97; i++)
		share += 0.01;
	for (int i = 0; i < 50; i++)
		busy += i; // unrelated
	*slots[slot(share)] = 1.0;
	return 0;
}
