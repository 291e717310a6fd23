// Dies of a null pointer inside a callback of the C library, three calls deep, with locals of several types.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct order {
	int number;
	double price;
	const char *item;
	struct order *next;
};

static struct order orders[4] = {{3, 2.5, "pear", 0}, {1, 0.25, "plum", 0}, {4, 8, "fig", 0}, {2, 1.5, "apple", 0}};
int compared;

static int by_next(const void *a, const void *b)
{
	const struct order *x = a, *y = b;
	double root = sqrt(x->price + y->price);
	compared++;
	if (compared == 4)
		return x->next->number; // CRASH
	return (root > 1) + (x->number > y->number) - (x->number < y->number);
}

static void sort(struct order *list, size_t n)
{
	char label[32];
	snprintf(label, sizeof label, "%zu orders", n);
	qsort(list, n, sizeof *list, by_next); // SORT
	puts(label);
}

int main(int argc, char **argv)
{
	sort(orders, sizeof orders / sizeof *orders);
	return argc + !argv;
}
