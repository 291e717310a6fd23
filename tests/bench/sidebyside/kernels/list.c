// A list in random order, walked and changed: each load waits for the last.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1 << 10 };
static struct node {
	struct node *next;
	uint64_t v;
} nodes[N];

int main(int argc, char **argv) {
	long n = argc > 1 ? atol(argv[1]) : 1;
	for (unsigned i = 0; i < N; i++) nodes[i].next = &nodes[(i * 389 + 7) % N], nodes[i].v = i;
	struct node *p = nodes;
	uint64_t s = 0;
	for (long i = 0; i < n * N; i++) {
		s += p->v;
		p->v = s;
		p = p->next;
	}
	printf("%lu\n", s);
}
