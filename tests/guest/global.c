// Global overflow: a table's neighbour, a pointer, is overwritten; much later it
// is used.
#include <stdio.h>

struct {
	int table[8];
	const char *title;
} g = {{0}, "title"};

void set(int i, int v) {
	g.table[i] = v; // CULPRIT
}

int work(int n) {
	int s = 0;
	for (int i = 0; i < n; i++) s += i ^ (s << 1);
	return s;
}

int main(void) {
	for (int i = 0; i <= 8; i++) set(i, 64 + i);
	int r = work(20000);
	printf("%c %d\n", g.title[0], r);
	return 0;
}
