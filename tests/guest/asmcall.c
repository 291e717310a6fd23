// A function in assembler (asmcall.S), of which debug information has no arguments.
long add_three(long a, long b, long c);

int main(void) {
	return add_three(11, 22, 33) == 66 ? *(volatile char *)8 : 0;
}
