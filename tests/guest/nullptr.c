// NULL dereference far from where the pointer became NULL.
#include <stddef.h>

struct list {
	struct list *next;
	int value;
};

struct list c = {NULL, 3}, b = {&c, 2}, a = {&b, 1};
struct list *volatile current = &a;

void advance(void) {
	current = current->next; // CULPRIT
}

int work(int n) {
	int s = 1;
	for (int i = 1; i < n; i++) s = s * 3 + i;
	return s;
}

int main(void) {
	for (int i = 0; i < 3; i++) advance();
	work(5000);
	return current->value; // CRASH
}
