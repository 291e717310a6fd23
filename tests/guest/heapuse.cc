// The heap in all forms that programs use it in, by two threads, with one fault where FAULT
// is defined: 1 a list that is lost, 2 a block that is freed twice by way of delete, 3 a pointer into a block that is
// freed. Without it nothing is wrong, and all is freed or pointed to at the end.
#include <malloc.h>
#include <map>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <string.h>
#include <vector>

#ifndef FAULT
#define FAULT 0
#endif

struct node {
	node *next;
	char text[100];
};

static node *list;
static void *kept[10];

__attribute__((noinline)) node *make(node *next) {
	node *n = (node *)calloc(1, sizeof *n);
	n->next = next;
	return n; // MADE
}

static void *work(void *) {
	std::vector<std::string> v;
	for (int i = 0; i < 300; i++) v.push_back("a text that is too long for a short string " + std::to_string(i));
	std::map<int, std::string> m;
	for (int i = 0; i < 100; i++) m[i] = v[i];
	char *p = (char *)malloc(10);
	for (int i = 1; i < 60; i++) p = (char *)realloc(p, i * 100);
	free(p);
	return 0;
}

int main() {
	pthread_t a, b;
	pthread_create(&a, 0, work, 0);
	pthread_create(&b, 0, work, 0);
	for (int i = 0; i < 5; i++) list = make(list);
	for (int i = 0; i < 5; i++) kept[i] = (char *)malloc(1000 * i + 20) + 8; // pointed into
	if (posix_memalign(&kept[5], 64, 640)) return 2;
	kept[6] = aligned_alloc(32, 320);
	kept[7] = memalign(128, 128);
	free(kept[7]);
	kept[7] = 0;
	free(strdup("text"));
	char *line = 0;
	if (asprintf(&line, "%d", 12345) < 0) return 2;
	free(line);
	int *array = new int[100];
	delete[] array;
	std::string *s = new std::string("another text that is too long for a short string");
	delete s;
	pthread_join(a, 0);
	pthread_join(b, 0);
#if FAULT == 1
	list = 0; // LOST
#elif FAULT == 2
	long *one = new long(1);
	delete one;
	delete one; // AGAIN
#elif FAULT == 3
	free((char *)list + 16); // INSIDE
#endif
	printf("%p\n", (void *)list);
	return 0;
}
