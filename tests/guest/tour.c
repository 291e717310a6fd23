// A program whose whole course is known: for walking about in with gdb.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int total;
int squares[10];
char text[32];
int reads;
char cold[1 << 20] = {1, [1 ... (1 << 20) - 1] = 2}; // its later pages are never used, and not zero, which costs nothing to keep

int square(int x) {
	int r = x * x; // SQUARE
	return r; // RETURN
}

int add(int x) {
	total += square(x); // ADD
	return total;
}

void fill(void) {
	for (int i = 0; i < 10; i++) { // LOOP
		squares[i] = add(i); // STORE
	}
	strcpy(text, "done"); // AFTER
}

void on_signal(int s) {
	total += 1000 * s; // HANDLER
}

int look(void) {
	reads += squares[3]; // READ
	return reads;
}

int main(void) {
	signal(SIGUSR1, on_signal);
	fill(); // CALL
	look(); // LOOK
	raise(SIGUSR1); // RAISE
	int n = total;
	printf("%d\n", n); // PRINT
	return 7; // EXIT
}
