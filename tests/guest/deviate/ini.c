// A reader of settings. The name of a section may be as long as its place, and then its end is
// written behind it.
#include "chores.h"

struct entry {
	char key[24], value[40];
	struct entry *next;
};

struct section {
	char name[16];
	struct entry *first;
	struct section *next;
};

static struct section *sections;

static struct section *parse_section(const char *p) {
	struct section *s = calloc(1, sizeof *s);
	size_t n = 0;
	for (p++; *p && *p != ']'; p++)
		if (n <= sizeof s->name) // fault: parse_section
			s->name[n++] = *p;
	s->name[n] = 0;
	s->next = sections;
	sections = s;
	return s;
}

static void parse_entry(struct section *s, const char *p) {
	struct entry *e = calloc(1, sizeof *e);
	const char *eq = strchr(p, '=');
	if (!eq) {
		snprintf(e->key, sizeof e->key, "%s", p);
		strcpy(e->value, "yes");
	} else {
		snprintf(e->key, sizeof e->key, "%.*s", (int)(eq - p), p);
		snprintf(e->value, sizeof e->value, "%s", eq + 1);
	}
	e->next = s->first;
	s->first = e;
}

static void print_section(const struct section *s) {
	printf("section %.16s\n", s->name);
	for (const struct entry *e = s->first; e; e = e->next)
		printf("  %s is %s\n", e->key, e->value);
}

int main(int argc, char **argv) {
	char *rest = load(argc, argv), *p;
	struct section *now = NULL;
	while ((p = line(&rest))) {
		if (*p == '#' || *p == 0)
			continue;
		if (*p == '[')
			now = parse_section(p);
		else if (now)
			parse_entry(now, p);
	}
	for (struct section *s = sections; s; s = s->next)
		print_section(s);
	return 0;
}
