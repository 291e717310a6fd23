// A member function that is inlined in two places, once inside of another one.
#include <cstdio>
#include <cstdlib>

namespace money {
struct Bank {
	long total = 0;
	int closed = 0;
	inline __attribute__((always_inline)) long close(long amount) {
		total -= amount; // CLOSE
		closed++;
		return total;
	}
	inline __attribute__((always_inline)) long twice(long amount) {
		return close(amount) + close(2 * amount); // TWICE
	}
	__attribute__((noinline)) void open(long amount) {
		total += amount; // OPEN
	}
};
} // namespace money

volatile long seed = 7;

__attribute__((noinline)) long first(money::Bank &b) {
	return b.close(seed); // FIRST
}

__attribute__((noinline)) long second(money::Bank &b) {
	return b.twice(seed); // SECOND
}

int main() {
	money::Bank b;
	b.open(100);
	for (int i = 0; i < 2; i++)
		first(b); // CALL
	std::printf("%ld %ld\n", second(b), b.total);
	std::abort();
}
