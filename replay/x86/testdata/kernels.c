// The integer kernels of the interpreter's benchmarks and tests. kernels.txt
// holds the machine code of every function, made with
//   gcc -O2 -fno-tree-vectorize -ffreestanding -fno-stack-protector -fcf-protection=none -mno-red-zone -fno-pic
// and objcopy, one line each: name, bytes in hex, rax it returns for a zeroed
// memory block and n as in kernels_test.go.
typedef unsigned long u64;
typedef unsigned u32;
typedef unsigned char u8;

u64 nest(u8 *m, u64 n) {
	u64 s = 1;
	for (u64 i = 0; i < n; i++)
		for (u64 j = 0; j < 16; j++) {
			s = s * 6364136223846793005ul + j;
			s ^= s >> 7;
			if (s & 8) s += i;
		}
	return s;
}

u64 crc(u8 *m, u64 n) {
	u32 *t = (u32 *)m;
	for (u32 i = 0; i < 256; i++) {
		u32 c = i;
		for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
		t[i] = c;
	}
	u8 *d = m + 4096;
	for (u64 i = 0; i < 4096; i++) d[i] = i * 7;
	u32 c = ~0u;
	for (u64 r = 0; r < n; r++)
		for (u64 i = 0; i < 4096; i++) c = t[(c ^ d[i]) & 255] ^ c >> 8;
	return c;
}

u64 sieve(u8 *m, u64 n) {
	u64 count = 0;
	for (u64 i = 0; i < n; i++) m[i] = 1;
	for (u64 i = 2; i < n; i++)
		if (m[i]) {
			count++;
			for (u64 j = i + i; j < n; j += i) m[j] = 0;
		}
	return count;
}

u64 matmul(u8 *m, u64 n) {
	u64 *a = (u64 *)m, *b = a + n * n, *c = b + n * n;
	for (u64 i = 0; i < n * n; i++) a[i] = i, b[i] = i * 3 + 1;
	u64 s = 0;
	for (u64 i = 0; i < n; i++)
		for (u64 j = 0; j < n; j++) {
			u64 x = 0;
			for (u64 k = 0; k < n; k++) x += a[i * n + k] * b[k * n + j];
			c[i * n + j] = x;
			s ^= x;
		}
	return s;
}

u64 sort(u8 *m, u64 n) {
	u32 *a = (u32 *)m;
	u32 x = 12345;
	for (u64 i = 0; i < n; i++) {
		x = x * 1664525 + 1013904223;
		a[i] = x;
	}
	for (u64 g = n / 2; g > 0; g /= 2)
		for (u64 i = g; i < n; i++) {
			u32 v = a[i];
			u64 j = i;
			for (; j >= g && a[j - g] > v; j -= g) a[j] = a[j - g];
			a[j] = v;
		}
	return a[n / 3];
}

__attribute__((noinline)) u64 fib(u8 *m, u64 n) {
	return n < 2 ? n : fib(m, n - 1) + fib(m, n - 2);
}

u64 list(u8 *m, u64 n) {
	struct node { struct node *next; u64 v; } *p = (void *)m;
	for (u64 i = 0; i < 1024; i++) {
		p[i].next = p + (i * 389 + 7) % 1024;
		p[i].v = i;
	}
	u64 s = 0;
	struct node *q = p;
	for (u64 i = 0; i < n; i++) {
		s += q->v;
		q->v = s;
		q = q->next;
	}
	return s;
}

u64 rnd(u8 *m, u64 n) {
	u64 x = 88172645463325252ul;
	u64 *a = (u64 *)m;
	for (u64 i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		a[x & 0xfffff] += x;
	}
	return a[5] + x;
}
