// A fault that the program handles and leaves by siglongjmp.
#include <setjmp.h>
#include <signal.h>

static sigjmp_buf back;

void on_fault(int s) {
	siglongjmp(back, s); // LEAVE
}

int main(void) {
	signal(SIGSEGV, on_fault);
	if (sigsetjmp(back, 1))
		return 5; // AFTER
	return *(volatile int *)0x40; // FAULT
}
