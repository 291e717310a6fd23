// Asks for the time and the CPU through the vsyscall page, as glibc did before
// 2.14, also while a timer's signals come, and once with an address that the
// kernel cannot write to.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long (*const page_gettimeofday)(struct timeval *, struct timezone *) = (void *)0xffffffffff600000;
static long (*const page_time)(time_t *) = (void *)0xffffffffff600400;
static long (*const page_getcpu)(unsigned *, unsigned *, void *) = (void *)0xffffffffff600800;

static sigjmp_buf back;
static volatile sig_atomic_t alarms;

static void on_segv(int sig, siginfo_t *si, void *c) { siglongjmp(back, si->si_code); }
static void on_alarm(int sig) { alarms++; }

static const char *check(int ok) { return ok ? "ok" : "wrong"; }

int main(void) {
  time_t before = time(NULL), stored = 0;
  long now = page_time(&stored);
  printf("time: %s\n", check(now >= before && now <= time(NULL) && stored == now));

  struct timeval tv = {0, -1};
  struct timezone tz = {-1, -1};
  long r = page_gettimeofday(&tv, &tz);
  printf("gettimeofday: %ld %s\n", r, check(tv.tv_sec >= before && tv.tv_usec >= 0 && tz.tz_minuteswest != -1));
  printf("gettimeofday of nothing: %ld\n", page_gettimeofday(NULL, NULL));

  unsigned cpu = -1, node = -1;
  r = page_getcpu(&cpu, &node, NULL);
  printf("getcpu: %ld %s\n", r, check(cpu != -1 && node != -1));

  struct itimerval every = {{0, 2000}, {0, 2000}};
  struct sigaction sa = {.sa_handler = on_alarm};
  sigaction(SIGALRM, &sa, NULL);
  setitimer(ITIMER_REAL, &every, NULL);
  unsigned sum = 0;
  for (long n = 0; alarms < 20; n++) {
    page_gettimeofday(&tv, NULL);
    sum = sum * 31 + tv.tv_usec;
  }
  setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
  fprintf(fopen("/dev/null", "w"), "%u\n", sum);

  struct sigaction sv = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &sv, NULL);
  int code = sigsetjmp(back, 1);
  if (code == 0)
    page_time((void *)1);
  else
    printf("an address that is none: %d\n", code);
  return 0;
}
