// A function pointer is overwritten by a copy that is too long.
#include <string.h>

struct handler {
	char label[8];
	int (*call)(int);
} handler;
volatile long busy;

static int twice(int n) { return 2 * n; }

static char input[24];

int main(void) {
	handler.call = twice;
	for (int i = 0; i < 20; i++)
		input[i] = (char)('a' + i); // cause
	for (int i = 0; i < 50; i++)
		busy += i; // unrelated
	memcpy(handler.label, input, 16);
	return handler.call(3);
}
