// An inventory: lines "add NAME N", "drop NAME", "total". A name that is too long damages malloc's lists, and malloc aborts.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct item { char name[16]; int count; struct item *next; };
static struct item *head;

static void add(const char *name, int count) {
	struct item *i = malloc(sizeof *i);
	strcpy(i->name, name); // fault: add
	i->count = count;
	i->next = head;
	head = i;
}

static void drop(const char *name) {
	for (struct item **p = &head; *p; p = &(*p)->next)
		if (!strcmp((*p)->name, name)) {
			struct item *i = *p;
			*p = i->next;
			free(i);
			return;
		}
}

int main(int argc, char **argv) {
	char line[200], name[100];
	int n;
	long sum = 0;
	FILE *f = fopen(argv[1], "r");
	if (!f) return 1;
	while (fgets(line, sizeof line, f)) {
		if (sscanf(line, "add %99s %d", name, &n) == 2) add(name, n);
		else if (sscanf(line, "drop %99s", name) == 1) drop(name);
		else for (struct item *i = head; i; i = i->next) sum += i->count;
	}
	printf("%ld\n", sum);
	return 0;
}
