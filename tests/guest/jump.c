// Wild jump: a function pointer is overwritten by an index that is out of range.
#include <string.h>

struct {
	long counts[4];
	long (*handler)(long);
} g;

long twice(long x) {
	return 2 * x;
}

void count(long i) {
	g.counts[i] += 3; // CULPRIT
}

int main(void) {
	g.handler = twice;
	long r = g.handler(3);
	for (long i = 0; i <= 4; i++) count(i);
	return (int)(r + g.handler(4)); // CRASH
}
