// A race for memory that operator new has handed out: its place is that of the program's own code.
#include <cstdio>
#include <thread>

struct account {
	long number, balance;
};

static void pay(account *a) {
	for (int i = 0; i < 1000; i++)
		a->balance++;
}

int main() {
	account *a = new account{1, 0}; // NEW
	std::thread one(pay, a), two(pay, a);
	one.join();
	two.join();
	std::printf("%ld\n", a->balance);
	delete a;
}
