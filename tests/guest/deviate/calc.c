// A calculator with a stack. An operation falls through to the next one.
#include "chores.h"

struct machine {
	int depth;
	long stack[16];
	const char *names[4];
};

static const char *words[] = {"none", "one", "two", "three"};

static void push(struct machine *m, long v) {
	if (m->depth < 16)
		m->stack[m->depth++] = v;
}

static long pop(struct machine *m) { return m->depth > 0 ? m->stack[--m->depth] : 0; }

static void execute(struct machine *m, const char *op) {
	long v;
	switch (*op) {
	case '+':
		push(m, pop(m) + pop(m));
		break;
	case '*':
		push(m, pop(m) * pop(m));
		break;
	case '-':
		v = pop(m);
		push(m, pop(m) - v);
		break;
	case 'd':
		v = pop(m);
		push(m, v);
		push(m, v); // fault: execute
	case 'n':
		push(m, -pop(m));
		break;
	case 'p':
		printf("top %ld\n", m->depth ? m->stack[m->depth - 1] : 0);
		break;
	default:
		push(m, strtol(op, NULL, 10));
	}
}

static void report(const struct machine *m, const char *title) {
	long top = m->depth ? m->stack[m->depth - 1] : 0;
	printf("%s: %ld, %d left\n", title, top, m->depth);
	const char *word = top < 4 ? m->names[top] : "many";
	int length = 0;
	while (word[length])
		length++;
	printf("that is %s, %d letters\n", word, length);
}

int main(int argc, char **argv) {
	char *rest = load(argc, argv), *p;
	struct machine *m = calloc(1, sizeof *m);
	for (int i = 0; i < 4; i++)
		m->names[i] = words[i];
	while ((p = line(&rest))) {
		m->depth = 0;
		for (char *w = strtok(p, " "); w; w = strtok(NULL, " "))
			execute(m, w);
		report(m, p);
	}
	return 0;
}
