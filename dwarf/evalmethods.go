package dwarf

// Methods of standard containers in an expression: v.size(), v.front(). No code of the
// program runs: the pretty printer's view of the container (container.go) is asked.

// held is what a container holds at an index.
func (x *evalState) held(c *container, i int) Value {
	if i < 0 || i >= c.n {
		x.fail("%d is no index: there are %s", i, numElements(c.n))
	}
	list := c.children(i, 1)
	if len(list) == 0 {
		x.check(errSize)
	}
	x.check(list[0].err)
	return list[0]
}

// methods are those of containers that are understood, for they only look.
var methods = map[string]func(x *evalState, c *container) Value{
	"size":      func(x *evalState, c *container) Value { return x.integer(c.size(), typeULong) },
	"length":    func(x *evalState, c *container) Value { return x.integer(c.size(), typeULong) },
	"empty":     func(x *evalState, c *container) Value { return x.boolean(c.size() == 0) },
	"front":     func(x *evalState, c *container) Value { return x.held(c, 0) },
	"back":      func(x *evalState, c *container) Value { return x.held(c, c.n-1) },
	"get":       func(x *evalState, c *container) Value { return x.held(c, 0) },
	"value":     func(x *evalState, c *container) Value { return x.held(c, 0) },
	"has_value": func(x *evalState, c *container) Value { return x.boolean(c.n > 0) },
}

// size is how many values or characters a container holds.
func (c *container) size() uint64 {
	if c.text != nil {
		return c.length
	}
	return uint64(c.n)
}

// method is v.name(), or v->name(), from behind the parenthesis on.
func (x *evalState) method(v Value, name string) Value {
	v = v.referent()
	if t := v.typ.strip(); t != nil && t.Kind == KindPointer {
		v = v.target()
	}
	x.check(v.err)
	c := v.holder(0)
	f, ok := methods[name]
	if c == nil || !ok {
		return x.callMethod(v, name)
	}
	x.need(")")
	return f(x, c)
}
