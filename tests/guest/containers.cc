// A value of each class of the C++ library that is shown as what it holds, and some
// that are broken, at a crash. It compiles as C++98 and all that came later.
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <queue>
#include <set>
#include <stack>
#include <string>
#include <vector>
#if __cplusplus >= 201103L
#include <atomic>
#include <forward_list>
#include <initializer_list>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#endif
#if __cplusplus >= 201703L
#include <optional>
#include <string_view>
#include <variant>
#endif
#if __cplusplus >= 202002L
#include <span>
#endif

struct Part {
	int number;
	std::string name;
};

struct Empty {};

// Wide has a larger alignment than what stands before it in a node.
struct Wide {
	char c;
	long double number;
};

struct Named : std::vector<int> {
	std::string name;
};

struct Held {
	std::string beyond_ascii; // gdb writes it as the locale has it
	std::string inside, outside, none, runs, odd;
	std::wstring wide;
	std::vector<int> numbers, nothing, many;
	std::vector<bool> bits;
	std::vector<Part> parts;
	std::vector<std::string> names;
	std::vector<std::vector<int> > rows;
	std::deque<int> queue, lone;
	std::deque<Part> deep;
	std::list<int> chain, broken_off;
	std::list<Wide> wides;
	std::map<std::string, int> sorted;
	std::map<int, std::string> reverse, no_entries;
	std::map<char, Wide> padded;
	std::map<int, std::vector<std::string> > nested;
	std::multimap<int, char> multi;
	std::set<std::string> words;
	std::multiset<short> shorts;
	std::pair<int, std::string> couple;
	std::stack<int> pile;
	std::queue<int> line;
	std::priority_queue<int> heap;
	std::vector<int>::iterator iterator;
	std::map<std::string, int>::iterator entry;
	std::list<int>::iterator link;
	Named derived;
#if __cplusplus >= 201103L
	std::forward_list<int> forward, no_forward;
	std::unordered_map<int, std::string> hashed;
	std::unordered_map<std::string, Wide> hashed_text;
	std::unordered_set<int> hashes;
	std::unordered_multiset<std::string> bag;
	std::unique_ptr<Part> unique, gone;
	std::unique_ptr<int[]> array;
	std::shared_ptr<Part> shared, other, lost;
	std::weak_ptr<Part> weak, expired;
	std::tuple<> no_values;
	std::tuple<int, std::string, Empty, double> values;
	std::atomic<int> counter;
	std::atomic<bool> flag;
	std::atomic<char *> address;
	std::u16string sixteen;
	std::u32string thirtytwo;
#endif
#if __cplusplus >= 201703L
	std::optional<int> some, no_int;
	std::optional<std::string> some_text;
	std::optional<std::vector<int> > some_numbers;
	std::string_view view;
	std::variant<int, std::string> first, second;
	std::variant<std::monostate, double> empty;
#endif
#if __cplusplus >= 202002L
	std::span<int> window;
#endif
};

Held all;

#if __cplusplus >= 201703L && !defined(_GLIBCXX_DEBUG)
#define BROKEN 1
struct Broken {
	std::vector<int> backwards, endless;
	std::string nowhere, endless_text;
	std::list<int> ring;
	std::forward_list<int> forever;
	std::map<int, int> loop, cut;
	std::unordered_map<int, int> knot;
	std::deque<int> hole;
	std::optional<int> neither;
	std::variant<int, char> strange;
	std::shared_ptr<int> uncounted;
};

char room[sizeof(Broken)] __attribute__((aligned(16)));
Broken *broken = new (room) Broken;

// put overwrites a word of an object.
template <class T>
void put(T &t, int word, void *v) { ((void **)&t)[word] = v; }

void damage() {
	Broken &b = *broken;
	void *bad = (void *)0x123456000;
	b.backwards = {1, 2, 3};
	put(b.backwards, 1, 0);
	b.endless = {1, 2, 3};
	put(b.endless, 1, (char *)b.endless.data() + (1L << 39));
	put(b.endless, 2, (char *)b.endless.data() + (1L << 39));
	put(b.nowhere, 0, bad);
	put(b.nowhere, 1, (void *)5);
	b.endless_text = "text";
	put(b.endless_text, 1, (void *)0xffffffffff);
	b.ring = {1, 2};
	void **node = ((void ***)&b.ring)[0];
	node[0] = node;
	put(b.ring, 2, (void *)1000000);
	b.forever = {7};
	node = ((void ***)&b.forever)[0];
	node[0] = node;
	b.loop = {{1, 2}};
	node = ((void ***)&b.loop)[2];
	node[1] = node[2] = node[3] = node;
	put(b.loop, 5, (void *)500000);
	b.cut = {{1, 2}, {3, 4}};
	node = ((void ***)&b.cut)[2];
	node[3] = bad;
	b.knot = {{1, 2}};
	node = ((void ***)&b.knot)[2];
	node[0] = bad;
	put(b.knot, 3, (void *)3);
	b.hole = {1, 2, 3};
	node = ((void ***)&b.hole)[5];
	node[0] = bad;
	memset((void *)&b.neither, 7, sizeof b.neither);
	memset((void *)&b.strange, 7, sizeof b.strange);
	put(b.uncounted, 1, bad);
}
#else
void damage() {}
#endif

void fill() {
	all.beyond_ascii = "\303\251 \303";
	all.inside = "inside";
	all.outside = "a string that is too long to be kept inside";
	all.runs = "ab" + std::string(30, '-') + "c" + std::string(250, '\'');
	all.odd = std::string("zero \0 quote \" tab \t \001", 21);
	all.wide = L"wide text";
	for (int i = 0; i < 300; i++) {
		all.many.push_back(i);
		all.queue.push_back(i);
		if (i % 2)
			all.queue.pop_front();
		all.reverse[i] = i % 2 ? "odd" : "even";
		if (i < 70)
			all.bits.push_back(i % 3 == 0);
		if (i < 4) {
			all.numbers.push_back(i * i);
			all.chain.push_back(i);
			Wide w = {char('a' + i), i + 0.5L};
			all.wides.push_back(w);
			all.padded[char('p' + i)] = w;
			all.pile.push(i);
			all.line.push(i);
			all.heap.push(i);
			all.multi.insert(std::make_pair(i / 2, char('a' + i)));
			all.shorts.insert(short(-i / 2));
			all.derived.push_back(i);
		}
	}
	all.lone.push_front(5);
	Part p = {7, "seven"}, q = {8, "eight"};
	all.parts.push_back(p);
	all.parts.push_back(q);
	all.deep.push_back(p);
	all.deep.push_front(q);
	all.names.push_back("one");
	all.names.push_back("two");
	all.rows.resize(3);
	all.rows[1].push_back(1);
	all.rows[1].push_back(2);
	all.sorted["one"] = 1;
	all.sorted["three"] = 3;
	all.sorted["two"] = 2;
	all.nested[3].push_back("three");
	all.nested[3].push_back("drei");
	all.nested[4];
	all.words.insert("b");
	all.words.insert("a");
	all.couple = std::make_pair(1, "one");
	all.iterator = all.numbers.begin() + 2;
	all.entry = all.sorted.find("two");
	all.link = ++all.chain.begin();
	all.derived.name = "derived";
#if __cplusplus >= 201103L
	all.forward = {1, 2, 3};
	all.hashed = {{1, "eins"}, {2, "zwei"}};
	all.hashed_text["wide"] = Wide{'w', 2.5};
	all.hashes = {5, 6, 7};
	all.bag = {"x", "x", "y"};
	all.unique.reset(new Part{9, "nine"});
	all.array.reset(new int[3]{1, 2, 3});
	all.shared = std::make_shared<Part>(Part{10, "ten"});
	all.other = all.shared;
	all.weak = all.shared;
	all.expired = std::make_shared<Part>(Part{11, "eleven"});
	all.values = std::make_tuple(1, std::string("two"), Empty(), 3.5);
	all.counter = 42;
	all.flag = true;
	all.sixteen = u"sixteen";
	all.thirtytwo = U"thirty-two";
#endif
#if __cplusplus >= 201703L
	all.some = 5;
	all.some_text = "text";
	all.some_numbers = std::vector<int>{1, 2};
	all.view = std::string_view("a view of it").substr(2, 4);
	all.first = 1;
	all.second = "second";
	all.empty = 2.5;
#endif
#if __cplusplus >= 202002L
	all.window = std::span<int>(all.numbers).subspan(1, 2);
#endif
}

int main() {
	fill();
	damage();
	std::string &local = all.inside;
	if (local.size() > 3)
		abort(); // CRASH
	return 0;
}
