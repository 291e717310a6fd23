// A block is freed and given out again, and its first owner still goes by it.
#include <stdlib.h>
#include <string.h>

struct item {
	char text[16];
	struct item *next;
};
volatile long busy;

int main(void) {
	struct item *first = malloc(sizeof *first), *second = malloc(sizeof *second);
	second->next = NULL;
	first->next = second;
	free(second);
	char *other = malloc(sizeof *second);
	for (size_t i = 0; i < sizeof *second; i++)
		other[i] = 'x'; // cause
	for (int i = 0; i < 50; i++)
		busy += i; // unrelated
	int n = 0;
	for (struct item *i = first; i; i = i->next)
		n += i->text[0];
	return n;
}
