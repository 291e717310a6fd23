// Computes under a timer signal, with REP instructions that a forced end may
// fall into, and few system calls. PAUSE makes much time of few instructions.
#include <signal.h>
#include <sys/time.h>

volatile int ticks;
volatile unsigned long sum, rounds;
char a[2048], b[2048];

void on_tick(int s) {
	(void)s;
	ticks++;
}

int main(void) {
	struct sigaction act = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &act, 0);
	struct itimerval it = {{0, 3000}, {0, 3000}};
	setitimer(ITIMER_REAL, &it, 0);
	while (ticks < 5) {
		for (int i = 0; i < 100; i++) {
			sum = sum * 31 + (unsigned long)i;
			__builtin_ia32_pause();
		}
		a[sum % sizeof a]++;
		rounds++;
		void *d = b, *s = a;
		unsigned long n = sizeof a;
		__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
	}
	return 0;
}
