// A small interpreter of a stack machine, for tests of debug code: a loop over instructions, a list as
// stack, a function that prints numbers, a variable of its thread.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum op { OP_PUSH, OP_ADD, OP_MUL, OP_DUP, OP_PRINT, OP_JUMP_IF, OP_DEC, OP_HALT };

struct instruction {
	enum op op;
	int arg;
};

typedef struct value {
	struct value *next;
	union {
		long number;
		struct {
			unsigned low : 5, middle : 12;
			signed high : 15;
		};
	};
	char kind;
	short tags[3];
} value_t;

struct machine {
	const struct instruction *code;
	value_t *top;
	unsigned char depth;
	void (*print)(const value_t *v);
	int count[OP_HALT + 1];
};

static int executed;
__thread int errors = 7;
long total = 1;

static void print_value(const value_t *v) {
	printf("<%ld>", v->number);
}

__attribute__((noinline)) long push(struct machine *m, long n) {
	value_t *v = calloc(1, sizeof *v);
	v->next = m->top;
	v->number = n;
	v->kind = 'n';
	m->top = v;
	m->depth++;
	total += n;
	return n; // pushed
}

__attribute__((noinline)) long pop(struct machine *m) {
	value_t *v = m->top;
	long n = v->number;
	m->top = v->next;
	m->depth--;
	free(v);
	return n;
}

__attribute__((noinline)) void run(struct machine *m) {
	int pc = 0;
	for (;;) {
		const struct instruction *in = &m->code[pc++];
		int lost = rand();
		executed++; // next instruction
		m->count[in->op]++;
		switch (in->op) {
		case OP_PUSH:
			push(m, in->arg);
			break;
		case OP_ADD:
			push(m, pop(m) + pop(m));
			break;
		case OP_MUL:
			push(m, pop(m) * pop(m));
			break;
		case OP_DUP:
			push(m, m->top->number);
			break;
		case OP_DEC:
			push(m, pop(m) - 1);
			break;
		case OP_PRINT:
			m->print(m->top);
			break;
		case OP_JUMP_IF:
			if (m->top->number > 0)
				pc = in->arg;
			break;
		case OP_HALT:
			return;
		}
	}
}

int main(void) {
	static const struct instruction code[] = {
		{OP_PUSH, 2}, {OP_PUSH, 3}, {OP_MUL, 0}, {OP_DUP, 0}, {OP_PRINT, 0}, {OP_PUSH, 3}, {OP_DEC, 0}, {OP_JUMP_IF, 6}, {OP_ADD, 0}, {OP_PRINT, 0}, {OP_HALT, 0},
	};
	struct machine m = {.code = code, .print = print_value};
	run(&m);
	const char text[] = "\nthe end\n";
	fflush(stdout);
	if (write(1, text, strlen(text)) < 0)
		return 1;
	return 0;
}
