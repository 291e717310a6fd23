// The index into a table is computed wrongly from a number of the input.
#include <stdio.h>
#include <stdlib.h>

static int *table[64];
volatile long busy;

static int where(int n) {
	return n * 4 - 3; // cause
}

int main(void) {
	for (int i = 0; i < 16; i++)
		table[i] = malloc(sizeof(int));
	char *text = getenv("NUMBER");
	int n = text ? atoi(text) : 9;
	for (int i = 0; i < 100; i++)
		busy += i * n; // unrelated
	int *p = table[where(n)];
	*p = n;
	return 0;
}
