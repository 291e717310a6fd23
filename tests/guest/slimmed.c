/* Writes memory that it does not use again before it crashes: in the heap, in a
   block that realloc moves without touching it, in shared memory that moves, and
   in a block that goes away. After each step come a vfork, which ends an interval,
   and CPU time, for ends at other places. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct config {
  int port;
  char name[24];
  struct config *next;
};

struct config *config;
char *moved, *shared, *in_the_way;
volatile int sum;

#ifndef SPIN /* milliseconds of CPU time: replaying them takes a few times as long */
#define SPIN 25
#endif

static void spin(void) {
  if (vfork() == 0) _exit(0);
  clock_t end = clock() + CLOCKS_PER_SEC * SPIN / 1000;
  while (clock() < end)
    for (volatile int i = 0; i < 10000; i++)
      ;
}

int main(void) {
  char *gone = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  shared = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  moved = malloc(1 << 20);
  memset(gone, 5, 1 << 20);
  memset(shared, 6, 1 << 16);
  memset(moved, 7, 1 << 20);
  config = calloc(1, 200000);
  config->port = 8080;
  strcpy(config->name, "weather");
  spin();
  in_the_way = malloc(1 << 20);
  moved = realloc(moved, 4 << 20);
  shared = mremap(shared, 1 << 16, 1 << 17, MREMAP_MAYMOVE);
  munmap(gone, 1 << 20);
  spin();
  sum = moved[5000] + shared[5000];
  spin();
  *(volatile int *)0 = 0; // here
}
