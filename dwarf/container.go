package dwarf

import (
	"fmt"
	"strings"
)

// Values of the classes of GCC's C++ library are shown as what they hold: a vector as
// its elements, a map as its keys and values, an owning pointer as the pointer. The
// classes are rows of a table: a row names the shape in which a class keeps what it
// holds, and the members in which the shape's parts are. The members have had these
// names since GCC 4.8, in both ABIs of the library. A value whose members do not make
// sense, such as one whose constructor has not run yet, is shown as any other class.
//
// What is printed is what gdb prints with the library's own pretty printers; a test
// compares the two.

// container is a value of one of these classes.
type container struct {
	label string // "std::vector of length 3, capacity 4"; may be empty
	n     int    // how many values it holds
	// array says that the values have no names in print.
	array bool
	// pairs says that each value has a key, which counts as an element in print.
	pairs bool
	// each gives the values from the one with index start on, until yield returns
	// false. It gives n of them; one that cannot be reached has an error and is the
	// last.
	each func(start int, yield func(Value) bool)
	// text is the string that a class of strings stands for, or the one value that an
	// iterator stands for; then there is nothing else.
	text, same *Value
	length     uint64 // of text, in characters
	// object is what *v is: what an owning pointer or iterator points to, what an
	// optional has. Nil for others.
	object *Value
	depth  int // how many values v is in
}

// layout is a row of the table. What the members mean is the shape's.
type layout struct {
	shape  func(v Value, l *layout, c *container) bool
	at     string // path of a member; "a|b": of the first that there is
	end    string
	header int64 // bytes before a value in its node
	label  string
	isMap  bool
}

// bareName is the name of a class without its template arguments and the namespace
// of a versioned library.
func (t *Type) bareName() string {
	name, _, _ := strings.Cut(t.fullName(), "<")
	return strings.Replace(name, "::__8::", "::", 1)
}

// layoutOf returns the row of a class by its bare name. Lists and strings of the newer
// ABI are in a namespace of their own, as are the containers of debug mode.
func layoutOf(name string) *layout {
	if !strings.HasPrefix(name, "std::") && !strings.HasPrefix(name, "__gnu_") {
		return nil
	}
	for _, inner := range []string{"__cxx11::", "__debug::", "__cxx1998::"} {
		name = strings.Replace(name, "std::"+inner, "std::", 1)
	}
	return layouts[name]
}

// container returns what a value holds; nil for what is not a container, or is broken.
// depth is how many values v is in: types of a damaged file can contain themselves.
func (v Value) container(depth int) *container {
	t := v.typ.strip()
	if v.err != nil || t == nil || t.Kind != KindStruct || t.isDecl || t.name == "" || depth > maxNesting {
		return nil
	}
	name := t.bareName()
	l := layoutOf(name)
	if l == nil {
		return nil
	}
	t.load()
	c := &container{label: name, depth: depth}
	if !l.shape(v, l, c) || c.n < 0 {
		return nil
	}
	return c
}

// path returns the member that a path names, "a.b|c": b in a, or if there is none, c.
func (v Value) path(path string) (Value, bool) {
	for alternative := range strings.SplitSeq(path, "|") {
		out, ok := v, true
		for name := range strings.SplitSeq(alternative, ".") {
			if out, ok = out.find(name); !ok {
				break
			}
		}
		if ok && out.err == nil {
			return out, true
		}
	}
	return Value{}, false
}

// word returns the integer or pointer that a path names.
func (v Value) word(path string) (uint64, bool) {
	m, ok := v.path(path)
	if !ok {
		return 0, false
	}
	n, err := m.bitsOf()
	return n, err == nil
}

// baseNamed returns the base class whose name begins with prefix.
func (v Value) baseNamed(prefix string) (Value, bool) {
	t := v.typ.strip()
	if t == nil || t.Kind != KindStruct {
		return Value{}, false
	}
	t.load()
	for i := range t.fields {
		if f := &t.fields[i]; f.base {
			if b := v.member(f); strings.HasPrefix(b.typ.strip().simpleName(), prefix) {
				return b, true
			}
		}
	}
	return Value{}, false
}

func (t *Type) simpleName() string {
	if t == nil {
		return ""
	}
	return t.name
}

// argument returns type argument i of a template.
func (t *Type) argument(i int) (*Type, bool) {
	t.load()
	if i < len(t.args) {
		return t.m.typeAt(t.args[i]), true
	}
	// GCC leaves out the argument of list's iterator.
	if p := t.m.typeAt(t.holds).strip(); i == 0 && p != nil && p.Kind == KindPointer {
		return p.element(), true
	}
	return nil, false
}

// inMemory returns the value of type t at an address.
func (v Value) inMemory(name string, t *Type, addr uint64) Value {
	out := v.at(name, t, 0)
	out.off, out.pieces, out.err = 0, []piece{{place: inMemory, addr: addr}}, nil
	return out
}

// pointerAt reads a pointer of the program.
func (v Value) pointerAt(addr uint64) (uint64, error) {
	return v.inMemory("", typeULong, addr).bitsOf()
}

// unreachable is a value in place of one that a broken pointer leads to.
func (v Value) unreachable(name string, err error) Value {
	v.Name, v.err = name, err
	return v
}

func bracketed(i int) string { return fmt.Sprintf("[%d]", i) }

// elements counts as gdb's printers do.
func numElements(n int) string {
	if n == 1 {
		return "1 element"
	}
	return fmt.Sprintf("%d elements", n)
}

// byIndex makes the values of a container those that get returns.
func (c *container) byIndex(n int, get func(i int) Value) {
	c.n = n
	c.each = func(start int, yield func(Value) bool) {
		for i := start; i < n; i++ {
			if x := get(i); !yield(x) || x.err != nil {
				return
			}
		}
	}
}

// children returns values as children of the container.
func (c *container) children(start, count int) (out []Value) {
	if c.each == nil || count <= 0 {
		return nil
	}
	c.each(start, func(x Value) bool {
		out = append(out, x)
		return len(out) < count
	})
	return out
}

// container writes what a container holds; false when v is not one.
func (p *printer) container(v Value, depth int) bool {
	c := v.container(depth)
	switch {
	case c == nil:
		return false
	case c.text != nil:
		p.stdString(c.text, c.length)
		return true
	case c.same != nil:
		p.value(*c.same, depth+1)
		return true
	}
	p.write(c.label)
	if c.n == 0 {
		return true
	}
	if c.label != "" {
		p.write(" = ")
	}
	p.write("{")
	most := maxElements
	if c.pairs {
		most /= 2
	}
	done := 0
	c.each(0, func(x Value) bool {
		if done == most {
			p.write("...")
			return false
		}
		if done > 0 {
			p.write(", ")
		}
		done++
		if !c.array {
			p.write(x.Name + " = ")
		}
		in := p.within(maxElements)
		in.value(x, depth+1)
		p.write(in.b.String())
		return p.b.Len() <= maxText
	})
	p.write("}")
	return true
}

// stdString writes n characters behind a pointer.
func (p *printer) stdString(at *Value, n uint64) {
	addr, err := at.bitsOf()
	if err != nil {
		p.fail(err)
		return
	}
	e := at.typ.strip().element()
	p.units(at.inMemory("", e, addr), e.strip(), n)
}
