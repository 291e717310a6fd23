// An atomic variable in a block of the heap whose accesses are plain instructions, what it hands over, and beside that
// something that nothing hands over. Lines that tests look for are marked.
#include <atomic>
#include <cstdio>
#include <sched.h>
#include <thread>

struct box {
	std::atomic<int> filled;
	int content, other;
};

int main() {
	box *b = new box{};
	int sum = 0;
	std::thread sender([&] {
		for (int i = 1; i <= 5; i++) {
			while (b->filled.load(std::memory_order_acquire))
				sched_yield();
			b->content = i;
			b->filled.store(1, std::memory_order_release);
		}
		b->other = 1; // RACE store
	});
	for (int i = 1; i <= 5; i++) {
		while (!b->filled.load(std::memory_order_acquire))
			sched_yield();
		sum += b->content;
		b->filled.store(0, std::memory_order_release);
	}
	sum += b->other; // RACE load
	sender.join();
	printf("%d\n", sum);
}
