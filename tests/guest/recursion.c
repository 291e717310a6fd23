// Stack exhaustion: the condition that ends the recursion is never true.
volatile int limit = 100;

void misconfigure(void) {
	limit = -1; // CULPRIT
}

int descend(int n) {
	volatile char frame[4096];
	frame[0] = (char)n;
	if (n == limit) return 0;
	return descend(n + 1) + frame[0];
}

int main(void) {
	misconfigure();
	return descend(0);
}
