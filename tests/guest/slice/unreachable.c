// A value that no case of a switch is for: __builtin_trap has no operand that could be wrong.
static unsigned char program[] = {0, 1, 2, 7};
volatile long busy;

__attribute__((noinline)) static int dispatch(int op) {
	switch (op) { // decision
	case 0:
		return 1;
	case 1:
		return 2;
	case 2:
		return 3;
	}
	__builtin_trap();
}

int main(void) {
	int sum = 0;
	for (int i = 0; i < 4; i++)
		sum += dispatch(program[i]); // cause
	return sum;
}
