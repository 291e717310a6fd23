// A name that is too long overwrites the pointer behind it; much later the program
// follows that pointer.
#include <stdio.h>
#include <string.h>

struct account {
	char name[8];
	struct account *next;
	long balance;
};

struct account accounts[4];
int deposits;
__thread int handled;

static long twice(long amount) {
	long doubled = amount * 2; // TWICE
	return doubled; // END-OF-TWICE
}

void rename_account(struct account *a, const char *name) {
	char *to = (char *)a;
	int length = strlen(name);
	for (int i = 0; i < length; i++)
		to[i] = name[i]; // CULPRIT
}

void deposit(struct account *a, long amount) {
	long before = a->balance; // DEPOSIT
	a->balance = before + twice(amount); // BALANCE
	deposits++; // COUNT
	handled += 2;
} // END-OF-DEPOSIT

long sum(struct account *a) {
	long total = 0; // SUM
	for (; a; a = a->next)
		total += a->balance; // CRASH
	return total;
}

int main(void) {
	for (int i = 0; i < 4; i++) { // LOOP
		accounts[i].next = i < 3 ? &accounts[i + 1] : 0; // LINK
		strcpy(accounts[i].name, "plain");
	}
	for (int round = 0; round < 50; round++) {
		deposit(&accounts[round % 4], round); // CALL
		if (round == 20)
			rename_account(&accounts[2], "overlong name"); // RENAME
	}
	printf("%d deposits\n", deposits); // PRINT
	long result = sum(accounts); // ASKS-SUM
	printf("%ld\n", result);
	return 0;
}
