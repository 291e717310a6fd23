// A mean of nothing: the count is never counted up.
#include <stdio.h>

static int values[] = {3, 0, 8, 0, 5};
volatile long busy;

static int used(int v) {
	return v < 0; // cause
}

int main(void) {
	int sum = 0, count = 0;
	for (int i = 0; i < 5; i++) {
		sum += values[i];
		count += used(values[i]);
		busy += sum; // unrelated
	}
	printf("%d\n", sum / count);
	return 0;
}
