// A million of everything, at a crash: what is shown of it must not take its size.
#include <cstdlib>
#include <map>
#include <unordered_map>
#include <vector>

enum { N = 1000000 };

int numbers[N];
std::vector<int> vector;
std::map<int, int> map;
std::unordered_map<int, int> hashed;

int main() {
	for (int i = 0; i < N; i++) {
		numbers[i] = i;
		vector.push_back(i);
		map[i] = 2 * i;
		hashed[i] = i;
	}
	abort(); // CRASH
}
