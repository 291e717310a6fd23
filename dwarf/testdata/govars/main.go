// The program whose variables TestAgainstDelve compares with what dlv prints.
// Each function holds variables of one topic and calls the next; the debugger
// stops at the entry of stop, so that all of them are alive in its callers.
package main

import (
	"errors"
	"time"
	"unsafe"
)

//go:noinline
func stop() { stopped++ }

//go:noinline
func use(...any) {}

// Variables of the package.
var (
	stopped  int
	aString  = "a package's string"
	aMap     = map[string]int{"one": 1, "two": 2}
	aSlice   = []point{{1, 2}, {3, 4}}
	anError  = errors.New("a package's error")
	aFunc    = double
	aPointer = &aSlice[1]
)

type (
	celsius  float64
	color    uint8
	name     string
	bytes    []byte
	table    map[name][]int
	callback func(int) int
	matrix   [2][3]int
	link     *node
)

const (
	red color = iota
	green
	blue
)

func (c color) String() string { return [...]string{"red", "green", "blue"}[c] }

type point struct{ X, Y int }

func (p point) Sum() int       { return p.X + p.Y }
func (p *point) Move(x, y int) { p.X += x; p.Y += y }

type summer interface{ Sum() int }

type node struct {
	Value       int
	Left, Right *node
}

type base struct {
	ID   int
	Name string
}

type derived struct {
	base
	*point
	color
	Tags  []string
	Next  *derived
	inner struct{ A, B int8 }
}

type wide struct {
	A bool
	B int8
	C int16
	D int32
	E int64
	F float32
	G float64
	H complex64
	I string
	J []int
	K map[string]int
	L any
	M error
	N func()
	O chan int
	P *int
	Q unsafe.Pointer
	R uintptr
}

type empty struct{}

type pair[A, B any] struct {
	First  A
	Second B
}

type list[T any] struct {
	head *element[T]
	n    int
}

type element[T any] struct {
	value T
	next  *element[T]
}

type failure struct {
	Code int
	Why  string
}

func (f *failure) Error() string { return f.Why }

type code int

func (c code) Error() string { return "code" }

//go:noinline
func double(n int) int { return 2 * n }

func push[T any](l *list[T], v T) {
	l.head = &element[T]{v, l.head}
	l.n++
}

func numbers(i int, f float64, b bool) (sum int) {
	var (
		i8       int8       = -8
		i16      int16      = -1600
		i32      int32      = -320000
		i64      int64      = -1 << 63
		u8       uint8      = 200
		u16      uint16     = 60000
		u32      uint32     = 1 << 31
		u64      uint64     = 1<<64 - 1
		ptr      uintptr    = 0xdeadbeef
		f32      float32    = 1.5
		f32b     float32    = 0.1
		f64      float64    = -2.25e100
		f64b     float64    = 1e6
		zero     float64    = 0
		nan                 = zero / zero
		inf                 = 1 / zero
		minusInf            = -1 / zero
		c64      complex64  = complex(1, -2)
		c128     complex128 = complex(0.5, 1e30)
		yes                 = true
		no                  = false
		letter              = 'x'
		unicode             = '世'
		newline  byte       = '\n'
		temp     celsius    = 36.6
		hue                 = blue
		unknown             = color(17)
		month               = time.March
		span                = 1500 * time.Millisecond
	)
	sum = strings(aString, i, "an argument")
	use(i8, i16, i32, i64, u8, u16, u32, u64, ptr, f32, f32b, f64, f64b, zero, nan, inf, minusInf, c64, c128, yes, no, letter, unicode,
		newline, temp, hue, unknown, month, span, f, b)
	return sum
}

func strings(s string, n int, more ...string) int {
	none := ""
	short := "short"
	quoted := "tab\t, quote\", backslash\\, newline\n, bell\a, nul\x00"
	foreign := "héllo, 世界"
	invalid := "\xff\xfe bad"
	long := "a string that is longer than the sixty-four bytes that delve reads of one, so it is cut"
	part := long[2:8]
	named := name("a name")
	pointer := &short
	array := [3]string{"a", "", "c"}
	list := []string{"first", "second which is a longer one", ""}
	raw := []byte("raw bytes")
	own := bytes("own bytes")
	runes := []rune("rüñes")
	r := slices(list, raw)
	use(none, short, quoted, foreign, invalid, long, part, named, pointer, array, list, raw, own, runes, s, n, more)
	return r
}

func slices(list []string, raw []byte) int {
	var none []int
	void := []int{}
	some := []int{1, 2, 3}
	room := make([]int, 2, 10)
	many := make([]int, 100)
	for i := range many {
		many[i] = i * i
	}
	middle := many[10:20]
	points := []point{{1, 2}, {3, 4}}
	pointers := []*point{{5, 6}, nil}
	nested := [][]int{{1}, nil, {2, 3}}
	anything := []any{1, "two", 3.0, nil, point{4, 5}, &point{6, 7}, []int{8}}
	empties := []empty{{}, {}, {}}
	bools := []bool{true, false}
	funcs := []func(int) int{double, nil}
	errs := []error{nil, errors.New("second"), &failure{3, "third"}}
	var arr0 [0]int
	arr := [5]int8{1, 2, 3, 4, 5}
	arrays := [2][2]string{{"a", "b"}, {"c", "d"}}
	grid := matrix{{1, 2, 3}, {4, 5, 6}}
	large := [80]uint16{79: 1}
	structs := [2]base{{1, "one"}, {2, "two"}}
	ofArray := arr[1:3]
	toSlice := &some
	toArray := &arr
	r := maps(points)
	use(none, void, some, room, many, middle, points, pointers, nested, anything, empties, bools, funcs, errs, arr0, arr, arrays, grid, large,
		structs, ofArray, toSlice, toArray, list, raw)
	return r
}

func maps(points []point) int {
	var none map[string]int
	void := map[string]int{}
	one := map[string]int{"one": 1}
	few := map[int]string{1: "a", 2: "b", 3: "c"}
	byPoint := map[point]string{{1, 2}: "here"}
	ofSlices := map[string][]int{"x": {1, 2}}
	ofMaps := map[string]map[string]int{"outer": {"inner": 1}}
	ofStructs := map[string]base{"b": {7, "seven"}}
	ofPointers := map[string]*point{"p": {8, 9}, "q": nil}
	ofAny := map[any]any{"k": 1, 2: "v"}
	ofBools := map[bool]bool{true: false}
	set := map[string]empty{"member": {}}
	ofArrays := map[[2]int]int{{1, 2}: 3}
	ofFloats := map[float64]float32{0.5: 0.25}
	ofFuncs := map[string]func(int) int{"double": double}
	ofInterfaces := map[string]summer{"s": point{1, 1}}
	own := table{"t": {1}}
	many := map[int]int{}
	for i := range 40 {
		many[i] = -i
	}
	huge := map[int]string{}
	for i := range 1000 {
		huge[i] = "v"
	}
	deleted := map[int]int{1: 1, 2: 2, 3: 3}
	delete(deleted, 2)
	wideKey := map[[40]int]int{{1}: 2}
	wideValue := map[int][40]int{1: {2}}
	toMap := &one
	r := structures(points[0])
	use(none, void, one, few, byPoint, ofSlices, ofMaps, ofStructs, ofPointers, ofAny, ofBools, set, ofArrays, ofFloats, ofFuncs, ofInterfaces,
		own, many, huge, deleted, wideKey, wideValue, toMap)
	return r
}

func structures(p point) int {
	var (
		zero    wide
		nothing empty
		anon    struct {
			A int
			B string
		}
	)
	n := 5
	full := wide{A: true, B: -1, C: 2, D: 3, E: 4, F: 5, G: 6, H: complex(7, 8), I: "nine", J: []int{10}, K: map[string]int{"l": 11}, L: 12,
		M: errors.New("thirteen"), N: func() {}, O: make(chan int, 3), P: &n, Q: unsafe.Pointer(&n), R: 18}
	full.O <- 1
	anon.A, anon.B = 1, "b"
	b := base{1, "base"}
	d := derived{base: b, point: &point{1, 2}, color: green, Tags: []string{"t"}}
	d.Next = &derived{}
	cycle := &node{Value: 1}
	cycle.Left = cycle
	tree := &node{2, &node{1, nil, nil}, &node{3, nil, &node{4, nil, nil}}}
	var linked link = tree
	ints := pair[int, string]{1, "one"}
	nested := pair[point, pair[int8, *int]]{point{3, 4}, pair[int8, *int]{5, &n}}
	chain := &list[string]{}
	push(chain, "last")
	push(chain, "first")
	numbers := list[float64]{}
	pp := &p
	ppp := &pp
	inside := &d.Tags[0]
	field := &full.E
	r := interfaces(full, pp)
	use(zero, nothing, anon, full, b, d, cycle, tree, linked, ints, nested, chain, numbers, ppp, inside, field)
	return r
}

func interfaces(w wide, p *point) int {
	var (
		none    any
		noError error
		noSum   summer
	)
	i := any(42)
	s := any("text")
	f := any(2.5)
	b := any(true)
	pt := any(point{1, 2})
	ptr := any(p)
	nilPtr := any((*point)(nil))
	sl := any([]int{1, 2})
	m := any(map[string]int{"k": 1})
	fn := any(double)
	ch := any(make(chan string, 1))
	ar := any([2]int{1, 2})
	st := any(struct{ A, B int }{1, 2})
	hue := any(green)
	tmp := any(celsius(20))
	pair1 := any(pair[int, string]{1, "one"})
	var sum summer = point{3, 4}
	var sumPtr summer = p
	err := errors.New("plain")
	var own error = &failure{7, "own"}
	var small error = code(9)
	joined := errors.Join(err, own)
	nested := any([]any{1, []any{"two"}})
	toAny := &i
	toErr := &err
	kind := any(w)
	boxed := any(&i)
	raw := any(unsafe.Pointer(p))
	complexNumber := any(complex(1, 2))
	r := closures(3, err)
	use(none, noError, noSum, i, s, f, b, pt, ptr, nilPtr, sl, m, fn, ch, ar, st, hue, tmp, pair1, sum, sumPtr, err, own, small, joined, nested,
		toAny, toErr, kind, boxed, raw, complexNumber)
	return r
}

func closures(n int, err error) int {
	captured := 10
	text := "captured"
	where := point{1, 2}
	var none func()
	plain := double
	add := func(x int) int { return x + n }
	count := func() int { captured++; return captured }
	both := func() (string, int) { return text + err.Error(), where.Y }
	method := where.Sum
	pointerMethod := where.Move
	expression := point.Sum
	var own callback = add
	toFunc := &add
	nested := func() func() int { return func() int { return captured + n } }
	made := nested()
	ch := make(chan int, 4)
	ch <- 1
	ch <- 2
	var noChan chan int
	unbuffered := make(chan string)
	receive := (<-chan int)(ch)
	send := (chan<- int)(ch)
	ofPoints := make(chan point, 2)
	ofPoints <- point{5, 6}
	ofPointers := make(chan *point, 1)
	r := 0
	inner := func(step int) {
		local := step * captured
		shadow := "outer"
		{
			shadow := 2
			deeper := shadow + local
			r = generics(deeper, text, &where)
			use(shadow, deeper)
		}
		after := shadow
		use(local, shadow, after)
	}
	inner(2)
	use(none, plain, add, count, both, method, pointerMethod, expression, own, toFunc, made, noChan, unbuffered, receive, send, ofPoints, ofPointers)
	return r
}

//go:noinline
func generic[K comparable, V any](key K, value V, list []V) (K, pair[K, V]) {
	box := pair[K, V]{key, value}
	index := map[K]V{key: value}
	pointer := &value
	boxed := any(value)
	escaped := key
	use(&escaped)
	stop()
	use(box, index, pointer, boxed, list)
	return key, box
}

// once is an iterator: the body of a loop over it is a function of its own.
func once(n int) func(yield func(int) bool) {
	return func(yield func(int) bool) { yield(n) }
}

func generics(n int, s string, p *point) int {
	for i := range once(1) {
		k, b := generic(s, p, []*point{p, nil})
		use(i, k, b)
	}
	later := "not declared yet at the stop"
	use(later, n)
	return n
}

func main() {
	deadline := time.Duration(90)
	args := []string{"prog"}
	n := numbers(7, 0.5, true)
	use(deadline, args, n, aString, aMap, aSlice, anError, aFunc, aPointer)
}
