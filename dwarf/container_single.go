package dwarf

import (
	"fmt"
	"strings"
)

// Shapes of C++ library classes that hold one value, or a number of them that their type tells:
// optional, variant, tuple and the like. The table of classes is in container_shapes.go.

// adapterShape: another container.
func adapterShape(v Value, l *layout, c *container) bool {
	inner, ok := v.path(l.at)
	if !ok {
		return false
	}
	in := inner.container(c.depth + 1)
	if in == nil || in.text != nil || in.same != nil {
		return false
	}
	in.label = c.label + " wrapping: " + in.label
	*c = *in
	return true
}

// pairShape: its members, without its empty base class.
func pairShape(v Value, _ *layout, c *container) bool {
	first, ok := v.find("first")
	second, ok2 := v.find("second")
	if !ok || !ok2 {
		return false
	}
	c.label = ""
	c.byIndex(2, func(i int) Value { return [2]Value{first, second}[i] })
	return true
}

// maxTuple bounds the values of a tuple.
const maxTuple = 256

// tupleShape: base classes, each with one value and the rest as its base class. An
// empty value may be a base class itself.
func tupleShape(v Value, _ *layout, c *container) bool {
	var list []Value
	for rest, ok := v.baseNamed("_Tuple_impl<"); ok && len(list) < maxTuple; rest, ok = rest.baseNamed("_Tuple_impl<") {
		head, ok := rest.baseNamed("_Head_base<")
		if !ok {
			break
		}
		if m, ok := head.find("_M_head_impl"); ok {
			head = m
		}
		head.Name, head.base = bracketed(len(list)+1), false
		list = append(list, head)
	}
	if len(list) == 0 {
		c.label = "empty " + c.label
	} else {
		c.label += " containing"
	}
	c.byIndex(len(list), func(i int) Value { return list[i] })
	return true
}

// one makes v the only value.
func (c *container) one(name string, v Value) bool {
	v.Name, v.base = name, false
	c.byIndex(1, func(int) Value { return v })
	return true
}

// templateText writes a class with the given type argument.
func (v Value) templateText(name string, arguments int) string {
	var list []string
	for i := range arguments {
		if t, ok := v.typ.strip().argument(i); ok {
			list = append(list, plainTemplates(t.declare("", 0)))
		}
	}
	return name + "<" + strings.Join(list, ", ") + ">"
}

// optionalShape: whether there is a value, and the value.
func optionalShape(v Value, l *layout, c *container) bool {
	engaged, ok := v.word(l.end)
	x, ok2 := v.path(l.at)
	if !ok || !ok2 || engaged > 1 {
		return false
	}
	c.label = v.templateText(c.label, 1)
	if engaged == 0 {
		c.label += " [no contained value]"
		return true
	}
	if in := x.container(c.depth + 1); in != nil && in.each != nil && in.label != "" {
		in.label = c.label + " containing " + in.label
		*c = *in
		c.object = &x
		return true
	}
	c.object = &x
	return c.one(ContainedValue, x)
}

// variantShape: a union of unions that all begin where it does, and which it is.
func variantShape(v Value, l *layout, c *container) bool {
	m, ok := v.path(l.at)
	i, ok2 := v.word(l.end)
	index, _ := v.path(l.end)
	if !ok || !ok2 {
		return false
	}
	v.typ.strip().load()
	c.label = v.templateText(c.label, len(v.typ.strip().args))
	if i == 1<<(8*index.typ.byteSize(nil))-1 {
		c.label += " [no contained value]"
		return true
	}
	t, ok := v.typ.strip().argument(int(min(i, maxFields)))
	if !ok {
		return false
	}
	c.label += fmt.Sprintf(" [index %d]", i)
	c.array = true
	x := m.at("", t, 0)
	c.object = &x
	return c.one(ContainedValue, x)
}

// uniqueShape: the first value of a tuple.
func uniqueShape(v Value, l *layout, c *container) bool {
	m, ok := v.path(l.at)
	if !ok {
		return false
	}
	t := m.container(c.depth + 1)
	if t == nil || t.n == 0 {
		return false
	}
	p := t.children(0, 1)[0]
	c.label = v.templateText(c.label, 1)
	return c.owner(p)
}

// Names of what is held by classes that hold one thing.
const (
	OwnedPointer   = "get()"
	ContainedValue = "[contained value]"
)

// owner makes the class one that owns what p points to.
func (c *container) owner(p Value) bool {
	x := p.target()
	c.object = &x
	return c.one(OwnedPointer, p)
}

// sharedShape: the pointer, and one to the counts. Weak references count one more as
// long as there are others.
func sharedShape(v Value, l *layout, c *container) bool {
	p, ok := v.path(l.at)
	counts, ok2 := v.path(l.end)
	if !ok || !ok2 {
		return false
	}
	c.label = v.templateText(c.label, 1)
	addr, err := counts.bitsOf()
	if err != nil {
		return false
	}
	if addr == 0 {
		c.label += " (empty)"
	} else {
		uses, ok := counts.target().word("_M_use_count")
		weak, ok2 := counts.target().word("_M_weak_count")
		switch {
		case !ok || !ok2:
			return false
		case uses == 0:
			c.label += fmt.Sprintf(" (expired, weak count %d)", int64(weak))
		default:
			c.label += fmt.Sprintf(" (use count %d, weak count %d)", int64(uses), int64(weak)-1)
		}
	}
	return c.owner(p)
}

// atomicShape: a value, which the label has.
func atomicShape(v Value, l *layout, c *container) bool {
	m, ok := v.path(l.at)
	if !ok {
		return false
	}
	in := &printer{left: maxElements}
	in.value(m, c.depth+1)
	c.label = v.templateText(c.label, 1) + " = { " + in.b.String() + " }"
	return true
}

// nodeIteratorShape: a pointer to a node. What is there is shown; at a container's end
// that is no value.
func nodeIteratorShape(v Value, l *layout, c *container) bool {
	node, ok := v.word(l.at)
	h, ok2 := newHeld(v, l, c)
	if !ok || !ok2 || node == 0 {
		return false
	}
	x := h.at(0, node)
	c.same, c.object = &x, &x
	return true
}

// pointerIteratorShape: a pointer to the value.
func pointerIteratorShape(v Value, l *layout, c *container) bool {
	p, ok := v.path(l.at)
	if !ok {
		return false
	}
	if addr, err := p.bitsOf(); err != nil || addr == 0 {
		return false
	}
	x := p.target()
	c.same, c.object = &x, &x
	return true
}

// safeIteratorShape: an iterator of debug mode has the plain one as its base class.
func safeIteratorShape(v Value, _ *layout, c *container) bool {
	t := v.typ.strip()
	for i := range t.fields {
		if f := &t.fields[i]; f.base {
			b := v.member(f)
			if in := b.container(c.depth + 1); in != nil && in.same != nil {
				c.same, c.object = in.same, in.object
				return true
			}
		}
	}
	return false
}
