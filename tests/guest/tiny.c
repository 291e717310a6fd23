// A program without a C library, whose recording is a few kilobytes: it writes
// a line, sorts numbers, and stores through a null pointer.

static long call(long nr, long a, long b, long c)
{
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return r;
}

static unsigned numbers[64];

void _start(void)
{
	unsigned x = 1;
	for (int i = 0; i < 64; i++) {
		x = x * 1664525 + 1013904223;
		numbers[i] = x;
	}
	for (int i = 0; i < 64; i++)
		for (int j = 0; j + 1 < 64; j++)
			if (numbers[j] > numbers[j + 1]) {
				unsigned t = numbers[j];
				numbers[j] = numbers[j + 1];
				numbers[j + 1] = t;
			}
	char buf[8];
	call(0, 0, (long)buf, 4); // read: the end of /dev/null
	call(1, 1, (long)"tiny\n", 5);
	*(volatile unsigned *)0 = numbers[0];
	call(231, 0, 0, 0);
}
