package dwarf

import (
	"fmt"
	"math"
	"strings"

	"github.com/go-delve/delve/pkg/dwarf/godwarf"
)

// Children are what a value can be unfolded into: the members of a struct, the
// elements of an array, what a container holds, what a pointer points to.

// NumChildren returns how many children a value has, by name and by index.
func (v Value) NumChildren() (named, indexed int) {
	defer v.lock()()
	return v.count()
}

// unfold returns the value whose parts are the children of v: what references and
// iterators lead to, and pointers to structs. c is what it holds, if it is a container.
func (v Value) unfold() (out Value, c *container) {
	for range maxChain {
		t := v.typ.strip()
		if v.err != nil || t == nil || v.golang != nil {
			break
		}
		switch t.Kind {
		case KindStruct, KindUnion:
			if c = v.container(0); c == nil || c.same == nil {
				return v, c
			}
			v = *c.same
		case KindPointer, KindReference:
			e := t.element().strip()
			if e == nil || t.Kind == KindPointer && e.Kind != KindStruct && e.Kind != KindUnion {
				return v, nil
			}
			if addr, err := v.bitsOf(); err == nil && addr == 0 {
				return v, nil
			}
			v = v.target()
		default:
			return v, nil
		}
	}
	return v, nil
}

func (v Value) count() (named, indexed int) {
	if v.golang != nil {
		return v.goCount()
	}
	v, c := v.unfold()
	t := v.typ.strip()
	switch {
	case v.err != nil || t == nil:
		return 0, 0
	case c != nil:
		return 0, min(c.n, math.MaxInt32)
	}
	switch t.Kind {
	case KindStruct, KindUnion:
		t.load()
		for i := range t.fields {
			if v.has(&t.fields[i]) {
				named++
			}
		}
		return named, 0
	case KindArray:
		if t.element().byteSize(v.env) < 0 {
			return 0, 0
		}
		return 0, int(min(max(t.length(v.env), 0), math.MaxInt32))
	case KindPointer:
		e := t.element().strip()
		if addr, err := v.bitsOf(); e == nil || e.Kind == KindFunction || e.Kind == KindUnknown || err == nil && addr == 0 {
			return 0, 0
		}
		return 1, 0
	default:
		return 0, 0
	}
}

// Children returns count children from start on, all that follow when count is 0.
// Those of a pointer to a struct are the struct's members.
func (v Value) Children(start, count int) (out []Value) {
	defer v.lock()()
	return v.children(start, count)
}

// maxChildren bounds the children returned at once.
const maxChildren = 1 << 14

func (v Value) children(start, count int) (out []Value) {
	named, indexed := v.count()
	v, c := v.unfold()
	t := v.typ.strip()
	if v.err != nil || t == nil && v.golang == nil || start < 0 {
		return nil
	}
	end := named + indexed
	if count > 0 && count < end-start {
		end = start + count
	}
	end = min(end, start+maxChildren)
	if v.golang != nil {
		return v.goChildren(start, end)
	}
	if c != nil {
		out = c.children(start, end-start)
		for i := range out {
			out[i].keyed = !c.array && strings.HasPrefix(out[i].Name, "[")
		}
		return out
	}
	switch t.Kind {
	case KindStruct, KindUnion:
		n := 0
		for i := range t.fields {
			if !v.has(&t.fields[i]) {
				continue
			}
			if n >= start && n < end {
				out = append(out, v.member(&t.fields[i]))
			}
			n++
		}
	case KindArray:
		for i := start; i < end; i++ {
			out = append(out, v.index(int64(i)))
		}
	case KindPointer:
		if start == 0 && end > 0 {
			out = append(out, v.target())
		}
	default:
	}
	return out
}

// IsBase reports whether the value is the part of an object that is its base
// class; its Name is the class's then.
func (v Value) IsBase() bool { return v.base }

// IsKeyed reports whether the value is held by a container by what its Name says, which
// is no index: a key, or a number of something that cannot be indexed.
func (v Value) IsKeyed() bool { return v.keyed }

// IsPointer reports whether children are behind an arrow.
func (v Value) IsPointer() bool {
	defer v.lock()()
	if v.golang != nil {
		_, ok := underlying(v.golang).(*godwarf.PtrType)
		return ok
	}
	t := v.typ.strip()
	return t != nil && t.Kind == KindPointer
}

// Uint returns an integer, enumeration or pointer as 64 bits; for a reference,
// the address.
func (v Value) Uint() (n uint64, err error) {
	defer v.lock()()
	if v.golang != nil {
		return v.goNumber()
	}
	return v.bitsOf()
}

// Truth returns whether a floating-point number is not zero, as C has it; ok is
// false for what is no number.
func (v Value) Truth() (bits uint64, ok bool) {
	defer v.lock()()
	t := v.typ.strip()
	if t == nil || t.Kind != KindBase || t.enc != encFloat {
		return 0, false
	}
	b, err := v.whole(min(t.size, 10))
	if err != nil {
		return 0, false
	}
	b[len(b)-1] &= 0x7f // minus zero is zero
	for _, c := range b {
		if c != 0 {
			return 1, true
		}
	}
	return 0, true
}

// index returns element i of an array.
func (v Value) index(i int64) Value {
	e := v.typ.strip().element()
	n := e.byteSize(v.env)
	out := v.at(fmt.Sprintf("[%d]", i), e, 0)
	if n < 0 || mulSize(max(i, -i), n) < 0 {
		out.err = errSize
		return out
	}
	out.off += i * n
	return out
}
