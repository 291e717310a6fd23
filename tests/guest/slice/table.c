// A request names an operation that the table does not have: what is called is no function, and nobody wrote
// the entry. Which entry it is came with the request.
#include <unistd.h>

static int one(void) { return 1; }
static int two(void) { return 2; }
static int (*table[8])(void) = {one, two};
volatile long busy;

__attribute__((noinline)) static unsigned entry_of(unsigned char request) {
	return request & 7; // cause
}

int main(void) {
	int p[2];
	unsigned char request = 5;
	if (pipe(p) || write(p[1], &request, 1) != 1)
		return 1;
	for (int i = 0; i < 50; i++)
		busy += i; // unrelated
	if (read(p[0], &request, 1) != 1)
		return 1;
	unsigned n = entry_of(request);
	return table[n](); // crash
}
