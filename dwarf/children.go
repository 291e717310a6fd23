package dwarf

import (
	"fmt"
	"math"

	"github.com/go-delve/delve/pkg/dwarf/godwarf"
)

// Children are what a value can be unfolded into: the members of a struct, the
// elements of an array, what a pointer points to.

// NumChildren returns how many children a value has, by name and by index.
func (v Value) NumChildren() (named, indexed int) {
	defer v.lock()()
	return v.count()
}

func (v Value) count() (named, indexed int) {
	if v.err != nil {
		return 0, 0
	}
	if v.golang != nil {
		return v.goCount()
	}
	t := v.typ.strip()
	if t == nil {
		return 0, 0
	}
	switch t.Kind {
	case KindStruct, KindUnion:
		t.load()
		for i := range t.fields {
			if !t.fields[i].isStatic {
				named++
			}
		}
		return named, 0
	case KindArray:
		if t.element().byteSize(v.env) < 0 {
			return 0, 0
		}
		return 0, int(min(max(t.length(v.env), 0), math.MaxInt32))
	case KindPointer, KindReference:
		e := t.element().strip()
		if e == nil || e.Kind == KindFunction || e.Kind == KindUnknown {
			return 0, 0
		}
		if addr, err := v.bitsOf(); err == nil && addr == 0 {
			return 0, 0
		}
		if e.Kind == KindStruct || e.Kind == KindUnion || t.Kind == KindReference {
			return v.target().count()
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
	t := v.typ.strip()
	if v.err != nil || t == nil && v.golang == nil || start < 0 {
		return nil
	}
	named, indexed := v.count()
	end := named + indexed
	if count > 0 && count < end-start {
		end = start + count
	}
	end = min(end, start+maxChildren)
	if v.golang != nil {
		return v.goChildren(start, end)
	}
	switch t.Kind {
	case KindStruct, KindUnion:
		n := 0
		for i := range t.fields {
			if t.fields[i].isStatic {
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
	case KindPointer, KindReference:
		p := v.target()
		if e := p.typ.strip(); e != nil && (e.Kind == KindStruct || e.Kind == KindUnion || t.Kind == KindReference) {
			return p.children(start, count)
		}
		if start == 0 && end > 0 {
			out = append(out, p)
		}
	default:
	}
	return out
}

// IsBase reports whether the value is the part of an object that is its base
// class; its Name is the class's then.
func (v Value) IsBase() bool { return v.base }

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
