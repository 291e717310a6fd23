// Accounts and orders. An order that is refused gives the account back, which stays in the list.
#include "chores.h"

struct account {
	char name[16];
	long balance;
	struct account *next;
};

static struct account *accounts;

static struct account *find_account(const char *name) {
	for (struct account *a = accounts; a; a = a->next)
		if (!strcmp(a->name, name))
			return a;
	struct account *a = calloc(1, sizeof *a);
	snprintf(a->name, sizeof a->name, "%s", name);
	a->next = accounts;
	accounts = a;
	return a;
}

static int apply_order(struct account *a, const char *verb, long sum) {
	if (!strcmp(verb, "pay")) {
		a->balance += sum;
		return 1;
	}
	if (!strcmp(verb, "take")) {
		if (sum > a->balance + 1000) {
			printf("%s cannot take %ld\n", a->name, sum);
			free(a); // fault: apply_order
			return 0;
		}
		a->balance -= sum;
		return 1;
	}
	printf("unknown verb %s\n", verb);
	return 0;
}

static char *label(const char *name, int n) {
	char *s = malloc(32);
	snprintf(s, 32, "%s-%.8s-xxxxxxxxxxxxxxxxxxx", n % 2 ? "odd" : "even", name);
	return s;
}

static void print_accounts(void) {
	long all = 0;
	for (struct account *a = accounts; a; a = a->next) {
		printf("%s has %ld\n", a->name, a->balance);
		all += a->balance;
	}
	printf("all: %ld\n", all);
}

int main(int argc, char **argv) {
	char *rest = load(argc, argv), *p;
	int done = 0, refused = 0;
	while ((p = line(&rest))) {
		char name[16], verb[8];
		long sum = 0;
		if (sscanf(p, "%15s %7s %ld", name, verb, &sum) < 2)
			continue;
		if (apply_order(find_account(name), verb, sum))
			done++;
		else
			refused++;
		printf("%s\n", label(name, done));
	}
	printf("%d done, %d refused\n", done, refused);
	print_accounts();
	return 0;
}
