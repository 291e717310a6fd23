// Options as NAME=VALUE, of which some may stand without a value.
#include "chores.h"

enum kind { FLAG, NUMBER, TEXT };

struct option {
	const char *name;
	enum kind kind;
	int number;
	char text[32];
};

static struct option options[] = {
	{"verbose", FLAG}, {"width", NUMBER, 80}, {"title", TEXT}, {"height", NUMBER, 25}, {"border", FLAG}, {"depth", NUMBER, 8},
};

static struct option *find_option(const char *name) {
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (!strcmp(options[i].name, name))
			return &options[i];
	return NULL;
}

static int number_of(const char *p) {
	int n = 0;
	while (*p >= '0' && *p <= '9')
		n = n * 10 + *p++ - '0';
	return n;
}

static void parse_option(char *p) {
	char *value = strchr(p, '=');
	if (value)
		*value++ = 0;
	struct option *o = find_option(p);
	if (!o) {
		printf("unknown option %s\n", p);
		return;
	}
	switch (o->kind) {
	case FLAG:
		o->number = value ? number_of(value) : 1;
		break;
	case NUMBER:
		o->number = number_of(value); // fault: parse_option
		break;
	case TEXT:
		snprintf(o->text, sizeof o->text, "%s", value ? value : "");
		break;
	}
}

int main(int argc, char **argv) {
	char *rest = load(argc, argv), *p;
	while ((p = line(&rest)))
		if (*p)
			parse_option(p);
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		printf("%s: %d %s\n", options[i].name, options[i].number, options[i].text);
	return 0;
}
