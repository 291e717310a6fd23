// A million numbers and a map, at a crash: what an editor shows of much.
#include <cstdlib>
#include <map>
#include <string>

int numbers[1000000];
std::map<std::string, int> ages{{"Ada", 36}, {"Alan", 41}, {"Grace", 85}};

int main() {
	for (int i = 0; i < 1000000; i++)
		numbers[i] = 2 * i;
	if (ages["Ada"] == numbers[18])
		*(volatile int *)8 = numbers[999999]; // CRASH
	return 0;
}
