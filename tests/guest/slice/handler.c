// A signal handler sets a variable that the program has in use.
#include <signal.h>
#include <stddef.h>

static int number = 5;
static int *volatile current = &number;
volatile long busy;

static void forget(int sig) {
	current = (int *)(long)sig; // cause
}

int main(void) {
	signal(SIGUSR1, forget);
	for (int i = 0; i < 50; i++)
		busy += i; // unrelated
	raise(SIGUSR1);
	return *current;
}
