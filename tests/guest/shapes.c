// Types of all kinds, for tests of debug code: the program prints what shapes.h prints, and debug code that includes
// the same lines must print the same.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

typedef struct {
	char tag;
	struct {
		long a;
		union {
			int i;
			float f;
			unsigned char bytes[4];
		};
	};
	unsigned one : 1, : 3, five : 5;
	signed long long wide : 40;
	_Bool is : 1;
	enum { SMALL = -3, MIDDLE, BIG = 1 << 20 } level;
} mixed_t;

struct __attribute__((packed)) packed {
	char c;
	int i;
	short s;
	double d;
};

struct aligned {
	char c;
	int x __attribute__((aligned(16)));
	long double ld;
	__int128 huge;
};

enum __attribute__((packed)) tiny { TINY_A, TINY_B = 200 };

typedef int matrix_t[2][3];
typedef int (*operation)(int, const char *);
struct node;
typedef struct node *link_t;
struct node {
	link_t next, *others;
	operation table[2];
	const volatile char *const name;
	matrix_t m;
	enum tiny t;
	struct tm when;
	size_t size;
	FILE *file;
	struct flexible *tail;
};
struct flexible {
	int n;
	short data[];
};

static int twice(int n, const char *s) { return 2 * n + (int)strlen(s); }
static int thrice(int n, const char *s) { return 3 * n + s[0]; }

static struct {
	int n;
	short data[3];
} flexible = {3, {7, 8, 9}};
struct node second = {.name = "second", .m = {{1, 2, 3}, {4, 5, 6}}, .t = TINY_B};
struct node first = {.next = &second, .others = &first.next, .table = {twice, thrice}, .name = "first", .when = {.tm_year = 126}, .size = sizeof(struct node), .tail = (struct flexible *)&flexible};
mixed_t mixed = {'m', {1L << 40, {.f = 1.5f}}, 1, 21, -123456789012LL, 1, MIDDLE};
struct packed packed[2] = {{'p', -5, 6, 0.25}, {'q', 7, -8, 1e100}};
struct aligned aligned = {'a', 17, 1.25L, (__int128)1 << 100};
uint8_t bytes[] = {1, 2, 255};
double _Complex z = 1.0 + 2.0i;
struct stat status = {.st_size = 1234};
const char *const words[] = {"one", "two", "three"};

int main(void) {
	int x = 5, next = 6;
	char local[] = "local";
	struct packed *p = &packed[1];
	const struct node *n = &first;
#include "shapes.h"
	puts("end"); // behind it
	return x + next > 0 && local[0] ? 0 : 1;
}
