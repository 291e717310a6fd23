// C++: references, base classes, virtual functions, namespaces, this.
#include <cstdint>
#include <utility>

namespace geo {
struct Point {
	int x, y;
};
class Shape {
public:
	explicit Shape(int id) : id_(id) {}
	virtual ~Shape() {}
	virtual int area(int scale) = 0;
	static int count;

protected:
	int id_;
};
int Shape::count = 3;
enum class Mode : uint8_t { Off, On };
} // namespace geo

struct Tag {
	char label[8];
};

volatile int sink;
int *null_pointer;

class Square : public geo::Shape, public Tag {
public:
	Square(int id, int side) : Shape(id), Tag{"square"}, side_(side) {}
	int area(int scale) override;

private:
	int side_;
	geo::Point corner_{1, 2};
};

template <typename T> struct Box {
	T value;
	bool full;
};

__attribute__((noinline)) static int boom(const geo::Point &p, int &&moved, Box<double> box, geo::Mode mode) {
	const auto &alias = p;
	bool wrong = box.full;
	sink = alias.x + moved + wrong + int(mode);
	*null_pointer = 1;
	return p.y + sink;
}

int Square::area(int scale) {
	int result = side_ * side_ * scale;
	int *inside = &side_;
	Tag &tag = *this;
	sink = *inside;
	result += boom(corner_, 5 + scale, Box<double>{2.5, true}, geo::Mode::On);
	return result + tag.label[0];
}

int main() {
	Square s(11, 4);
	geo::Shape *shape = &s;
	int Square::*nothing = nullptr;
	int total = shape->area(3);
	return total + (nothing != nullptr) + geo::Shape::count;
}
