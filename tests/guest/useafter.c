// Use after free that ends in abort: the list's node is freed, still in use, and
// freed again.
#include <stdlib.h>

struct node {
	struct node *next;
	long count;
};

struct node *shared;

void drop(struct node *n) {
	free(n); // CULPRIT
}

int main(void) {
	shared = malloc(sizeof *shared);
	shared->next = 0;
	drop(shared);
	long sum = 0;
	for (int i = 0; i < 1000; i++) sum += i;
	free(shared);
	return (int)sum;
}
