// Timers on a wheel. One unit of time is a million times too long.
#include "chores.h"

#define SLOTS 4096

struct timer {
	char name[16];
	struct timer *next;
};

struct wheel {
	struct timer *slots[SLOTS];
	long used;
};

static long scale(const char *unit) {
	if (!strcmp(unit, "ms"))
		return 1;
	if (!strcmp(unit, "s"))
		return 1000;
	if (!strcmp(unit, "min"))
		return 60L * 1000 * 1000 * 1000; // fault: scale
	printf("no unit %s\n", unit);
	return 1;
}

static void schedule(struct wheel *w, const char *name, long ms) {
	struct timer *t = calloc(1, sizeof *t);
	snprintf(t->name, sizeof t->name, "%s", name);
	long slot = ms / 100;
	t->next = w->slots[slot];
	w->slots[slot] = t;
	w->used++;
}

static void print_wheel(const struct wheel *w) {
	for (int i = 0; i < SLOTS; i++)
		for (const struct timer *t = w->slots[i]; t; t = t->next)
			printf("%d.%d s: %s\n", i / 10, i % 10, t->name);
	printf("%ld timers\n", w->used);
}

int main(int argc, char **argv) {
	char *rest = load(argc, argv), *p;
	struct wheel *w = calloc(1, sizeof *w);
	while ((p = line(&rest))) {
		char name[16], unit[8] = "ms";
		long n;
		if (sscanf(p, "%15s %ld %7s", name, &n, unit) < 2)
			continue;
		if (n < 0)
			n = -n;
		schedule(w, name, n * scale(unit));
	}
	print_wheel(w);
	return 0;
}
