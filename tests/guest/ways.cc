// Calls that are left in all ways: by return, by an exception, by longjmp; in threads and in the handler of a signal on a stack of its own.
#include <csetjmp>
#include <csignal>
#include <thread>

static jmp_buf back;

__attribute__((noinline)) void deep(int n) {
	if (n == 0) throw 7;
	deep(n - 1);
	asm volatile("");
}

__attribute__((noinline)) void jumper(int n) {
	if (n == 0) longjmp(back, 1);
	jumper(n - 1);
	asm volatile("");
}

__attribute__((noinline)) void after_throw() { asm volatile(""); }
__attribute__((noinline)) void after_jump() { asm volatile(""); }
__attribute__((noinline)) void after_signal() { asm volatile(""); }
__attribute__((noinline)) void in_handler() { asm volatile(""); }

static void handler(int) {
	in_handler();
	asm volatile("");
}

__attribute__((noinline)) void work() {
	for (volatile int i = 0; i < 1000; i++) {
	}
}

int main() {
	static char alternate[1 << 16];
	stack_t s = {};
	s.ss_sp = alternate;
	s.ss_size = sizeof alternate;
	sigaltstack(&s, nullptr);
	struct sigaction a = {};
	a.sa_handler = handler;
	a.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &a, nullptr);
	for (int i = 0; i < 5; i++) {
		try {
			deep(6);
		} catch (int) {
			after_throw();
		}
		if (!setjmp(back))
			jumper(5);
		else
			after_jump();
		raise(SIGUSR1);
		after_signal();
	}
	std::thread one(work), two(work);
	one.join();
	two.join();
}
