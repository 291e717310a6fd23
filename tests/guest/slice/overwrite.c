// A name that is too long goes over the pointer behind it.
#include <stddef.h>

struct account {
	char name[8];
	struct account *next;
	long balance;
} accounts[3];
volatile long busy;

int main(void) {
	for (int i = 0; i < 2; i++)
		accounts[i].next = &accounts[i + 1];
	for (int i = 0; i < 100; i++)
		busy += i; // unrelated
	const char *from = "much too long";
	for (int i = 0; from[i]; i++)
		accounts[1].name[i] = from[i]; // cause
	long total = 0;
	for (struct account *a = accounts; a; a = a->next)
		total += a->balance;
	return (int)total;
}
