// A length is taken from a header in which it is less than the header itself.
#include <stddef.h>
#include <stdint.h>

static unsigned char packet[16] = {0, 3, 1, 2, 3};
static char out[64];
volatile long busy;

__attribute__((noinline)) static unsigned behind_header(int length) {
	return (unsigned)length - 4u; // cause
}

int main(void) {
	int length = packet[0] << 8 | packet[1];
	for (int i = 0; i < 50; i++)
		busy += i; // unrelated
	unsigned rest = behind_header(length);
	char *end = out + rest;
	*end = 0;
	return 0;
}
