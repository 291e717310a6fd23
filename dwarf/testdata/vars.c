// Variables of every kind of type, in several frames above a crash. The test
// compares what gdb and this package say of each.
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct point { int x, y; };
struct node { struct node *next; const char *name; double weight; };
union number { int i; float f; unsigned char bytes[4]; };
enum colour { RED, GREEN = 5, BLUE };
enum flags { F_READ = 1, F_WRITE = 2, F_EXEC = 4 };
typedef struct point *point_ptr;
typedef int (*op_t)(int, int);
struct bits { unsigned a : 3; int b : 5; unsigned long long c : 40; bool d : 1; };
struct nested { struct point corner[2]; union number n; struct { int in, out; }; enum colour c; op_t op; };
struct flexible { int n; int rest[]; };

int global_int = 42;
static const char *global_text = "global";
struct point global_point = {7, 8};
struct node first = {0, "first", 0.5};
__thread int per_thread = 3;
volatile int sink;
int *null_pointer;

static int add(int a, int b) { return a + b; }

__attribute__((noinline)) int crash(int depth, struct node *n, struct bits b, op_t op) {
	static int counter = 9;
	volatile int local = depth * 2;
	char text[16] = "hello\nworld";
	sink = local + op(1, 2) + counter + b.a;
	*null_pointer = sink;
	return local + text[1] + (n != 0);
}

__attribute__((noinline)) int scalars(signed char sc, unsigned char uc, short s, unsigned u, long l, unsigned long long ull, float f, double d, bool yes) {
	long double ld = 1.25L;
#ifndef __OPTIMIZE__ // gdb 13 gives up on one that is not in memory
	__int128 wide = (__int128)l << 64 | 5;
#else
	long wide = l;
#endif
	float small = 1e-20f;
	double big = 1e300, third = 1.0 / 3;
	char quote = '\'', zero = 0;
	_Complex double z = 1 + 2i;
	struct bits b = {5, -7, 0x123456789, true};
	struct node second = {&first, "second", third};
	sink = crash(u, &second, b, add);
	return sink + ld + wide + small + big + quote + zero + __real__ z + sc + uc + s + ull + f + d + yes;
}

__attribute__((noinline)) int arrays(int n, struct point p, point_ptr pp) {
	int plain[5] = {1, 2, 3, 4, 5};
	int equal[40] = {0};
	int matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
	const char *names[3] = {"one", 0, "three"};
	struct point points[2] = {{1, 2}, {3, 4}};
	int vla[n];
	for (int i = 0; i < n; i++) vla[i] = i * i;
	unsigned char raw[4] = {0, 255, 'a', 10};
	int (*row)[3] = matrix;
	volatile void *anything = &plain;
	equal[39] = 1;
	sink = plain[n] + matrix[1][1] + points[1].y + vla[1] + equal[n];
	sink = scalars(-5, 200, -300, 7, -5000000000L, ~0ULL, 2.5f, -0.1, true);
	return sink + raw[1] + (names[0] != 0) + p.x + pp->y + (*row)[1] + (anything != 0);
}

static inline int twice(int v) {
	int doubled = v * 2;
	sink = doubled;
	return arrays(doubled, global_point, &global_point) + doubled;
}

__attribute__((noinline)) int shapes(int argc, char **argv) {
	struct nested all = {{{1, 2}, {3, 4}}, {.i = 0x3f800000}, {5, 6}, BLUE, add};
	enum colour strange = (enum colour)77;
	enum flags both = F_READ | F_EXEC, none = 0, more = (enum flags)12;
	struct flexible *flex = calloc(1, sizeof *flex + 8);
	op_t operation = add;
	struct node *list = &first;
	{
		int argc = 99; // hides the parameter
		struct { int anonymous; } inner = {argc};
		sink = inner.anonymous;
		sink = twice(argc - 97);
	}
	return sink + all.n.i + strange + both + none + more + flex->n + operation(1, 2) + (list != 0) + (argv != 0) + argc;
}

int main(int argc, char **argv) {
	per_thread += argc;
	const char *message = global_text;
	int result = shapes(argc + 10, argv);
	return result + (message != 0) + per_thread;
}
