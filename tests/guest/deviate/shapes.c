// A list of shapes. One kind does not get a label.
#include "chores.h"

enum kind { LINE, BOX, CIRCLE };

struct shape {
	enum kind kind;
	int a, b;
	char *label;
	struct shape *next;
};

static struct shape *shapes;

static enum kind kind_of(const char *word) {
	static const char *names[] = {"line", "box", "circle"};
	for (int i = 0; i < 3; i++)
		if (!strcmp(word, names[i]))
			return i;
	return LINE;
}

static char *note(const char *text) {
	char *s = malloc(sizeof(struct shape));
	snprintf(s, sizeof(struct shape), "%s", text);
	return s;
}

static void parse_shape(char *p) {
	char word[16] = "", label[24] = "";
	int a = 1, b = 1;
	char *seen = note(p);
	int n = sscanf(p, "%15s %d %d %23s", word, &a, &b, label);
	printf("%d words in %s\n", n, seen);
	free(seen);
	struct shape *s = malloc(sizeof *s);
	s->kind = kind_of(word);
	s->a = a;
	switch (s->kind) {
	case LINE:
		s->b = b;
		s->label = strdup(label);
		break;
	case BOX:
		s->b = b ? b : a;
		s->label = strdup(*label ? label : "box");
		break;
	case CIRCLE: // fault: parse_shape
		s->b = a;
		break;
	}
	s->next = shapes;
	shapes = s;
}

static int width_of(const struct shape *s) {
	int n = 0;
	for (const char *p = s->label; *p; p++)
		n += *p == 'i' || *p == 'l' ? 1 : 2;
	return n;
}

static void print_shapes(void) {
	int widest = 0;
	for (struct shape *s = shapes; s; s = s->next) {
		int n = width_of(s);
		if (n > widest)
			widest = n;
		printf("%d by %d, label %d\n", s->a, s->b, n);
	}
	printf("widest label %d\n", widest);
}

int main(int argc, char **argv) {
	char *rest = load(argc, argv), *p;
	while ((p = line(&rest)))
		if (*p && *p != '#')
			parse_shape(p);
	print_shapes();
	return 0;
}
