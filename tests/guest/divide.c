// Division by zero: the divisor was computed some time before.
volatile int divisor = 3;

void shrink(void) {
	divisor = divisor - 1; // CULPRIT
}

int work(int n) {
	int s = 0;
	for (int i = 0; i < n; i++) s += i;
	return s;
}

int main(void) {
	for (int i = 0; i < 3; i++) shrink();
	return work(3000) / divisor; // CRASH
}
