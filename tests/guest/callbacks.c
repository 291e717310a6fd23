// Dies in a signal handler, in a callback of the C library: a stack that leads
// through code without symbols and through a signal trampoline.
#include <signal.h>
#include <stdlib.h>

struct order {
	int number;
	const char *item;
};

int compared;

static void on_usr1(int sig)
{
	compared += sig;
	abort(); // CULPRIT
}

static int by_number(const void *a, const void *b)
{
	const struct order *x = a, *y = b;
	if (++compared == 3)
		raise(SIGUSR1); // RAISE
	return x->number - y->number;
}

static int smallest(struct order *orders, int n)
{
	qsort(orders, n, sizeof *orders, by_number); // SORT
	return orders[0].number;
}

int main(void)
{
	struct order orders[] = {{3, "nails"}, {1, "glue"}, {2, "paint"}, {5, "wood"}};
	signal(SIGUSR1, on_usr1);
	return smallest(orders, 4); // MAIN
}
