// Containers and smart pointers of the C++ library, at a crash.
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

struct Part {
	int number;
	std::string name;
};

std::string text = "a string that is too long to be kept inside", small = "inside", empty;
std::vector<int> numbers{1, 2, 3}, nothing;
std::vector<Part> parts{{7, "seven"}, {8, "eight"}};
std::map<std::string, int> sorted{{"one", 1}, {"three", 3}, {"two", 2}};
std::unordered_map<int, std::string> hashed{{1, "eins"}};
std::optional<int> some = 5, none;
std::unique_ptr<Part> unique(new Part{9, "nine"}), gone;
std::shared_ptr<Part> shared = std::make_shared<Part>(Part{10, "ten"});

int main() {
	std::string &local = text;
	if (local.size() > 3)
		abort(); // CRASH
	return 0;
}
