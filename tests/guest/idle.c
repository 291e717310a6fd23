// Jumps to where it is until a timer kills it: no state tells one moment from another.
#include <sys/time.h>

int main(void) {
	struct itimerval it = {.it_value = {0, 200000}};
	setitimer(ITIMER_VIRTUAL, &it, 0);
	for (;;)
		;
}
