// A flag of the configuration is read wrongly, so that a branch goes the wrong way: the pointer that the crash is about is a
// constant there, and nothing of the configuration flows into it.
#include <stddef.h>
#include <stdlib.h>

struct session {
	int flags;
	int *log;
};
volatile long busy;
static int line;

__attribute__((noinline)) static int parse(const char *word) {
	int flags = 0;
	for (; *word; word++)
		if (*word == 'l')
			flags |= 2; // cause
		else if (*word == 'v')
			flags |= 4;
	return flags;
}

__attribute__((noinline)) static int *open_log(int flags) {
	int *log;
	if (flags & 1) // decision
		log = &line;
	else
		log = (int *)16; // value
	return log;
}

__attribute__((noinline)) static int report(struct session *s, int n) {
	if (n > 2) // here
		return *s->log = n;
	return 0;
}

int main(void) {
	const char *word = getenv("CONFIG");
	struct session s = {0, NULL};
	s.flags = parse(word ? word : "verbose,log");
	for (int i = 0; i < 50; i++)
		busy += i; // unrelated
	s.log = open_log(s.flags);
	for (int i = 0; i < 4; i++)
		report(&s, i);
	return 0;
}
