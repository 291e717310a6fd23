// A program that does the same wherever it runs, to the last register: it has no
// C library, its own stack, and asks the kernel for nothing that differs.
// Compile it with -static -nostdlib -fno-stack-protector -fcf-protection=none -O0.

typedef unsigned long ulong;

struct node {
	struct node *left, *right;
	int key, depth;
};

struct node pool[64];
int used;
double mean;
ulong hash;
char text[64], copy[64];
char stack[65536] __attribute__((aligned(16)));

long call3(long nr, long a, long b, long c) {
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return r;
}

struct node *insert(struct node *n, int key, int depth) {
	if (!n) {
		n = &pool[used++];
		n->left = n->right = 0;
		n->key = key;
		n->depth = depth;
		return n;
	}
	if (key < n->key)
		n->left = insert(n->left, key, depth + 1);
	else if (key > n->key)
		n->right = insert(n->right, key, depth + 1);
	return n;
}

int sum(struct node *n) {
	if (!n) return 0;
	int below = sum(n->left) + sum(n->right);
	return below + n->key;
}

void mix(const char *s) {
	for (; *s; s++) {
		hash ^= (unsigned char)*s;
		hash *= 1099511628211ul;
	}
}

void move(char *to, const char *from, ulong n) {
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

double average(const int *v, int n) {
	double s = 0;
	for (int i = 0; i < n; i++) s += v[i] / 2.0;
	return s / n;
}

int digits(char *to, long v) {
	int n = 0;
	if (v >= 10) n = digits(to, v / 10);
	to[n] = '0' + v % 10;
	return n + 1;
}

void round(int x) {
	int values[16];
	struct node *root = 0;
	used = 0;
	for (int i = 0; i < 16; i++) {
		x = (x * 37 + 11) % 101;
		values[i] = x;
		root = insert(root, x, 0);
	}
	int total = sum(root);
	mean = average(values, 16);
	hash = 14695981039346656037ul;
	int n = digits(text, total);
	text[n++] = '\n';
	mix(text);
	move(copy, text, 32);
	call3(1, 1, (long)copy, n);
	for (int i = 0; i < 3; i++) hash += call3(3, 99 + i, 0, 0); // close what is not open
	hash += total;
}

void run(void) {
	for (int i = 0; i < 8; i++) round(7 * i + 3);
	call3(60, hash & 63, 0, 0);
}

__asm__(".globl _start\n_start: lea stack+65520(%rip), %rsp\nxor %eax, %eax\nxor %ebx, %ebx\nxor %ecx, %ecx\nxor %edx, %edx\nxor %esi, %esi\nxor %edi, %edi\n"
	"xor %ebp, %ebp\nxor %r8d, %r8d\nxor %r9d, %r9d\nxor %r10d, %r10d\nxor %r11d, %r11d\nxor %r12d, %r12d\nxor %r13d, %r13d\nxor %r14d, %r14d\nxor %r15d, %r15d\ncall run\nhlt\n");
