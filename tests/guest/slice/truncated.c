// A pointer is kept in an int.
#include <stdint.h>
#include <stdlib.h>

struct node {
	int64_t link;
	int value;
};
volatile long busy;

__attribute__((noinline)) static int64_t keep(void *p) {
	return (int32_t)(intptr_t)p; // cause
}

int main(void) {
	struct node *a = malloc(sizeof *a), *b = malloc(sizeof *b);
	b->value = 7;
	for (int i = 0; i < 50; i++)
		busy += i; // unrelated
	a->link = keep(b);
	struct node *next = (struct node *)a->link;
	return next->value;
}
