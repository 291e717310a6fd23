package dwarf

import (
	"debug/dwarf"
	"encoding/binary"
	"testing"
)

// variantType builds the debugging information of a Rust enum: a byte that decides, for
// 1 a member some at byte 4, for 2 a member few at byte 2, else a member none.
func variantType(t *testing.T) (m *Module, off dwarf.Offset) {
	t.Helper()
	const str, data1, ref4 = 0x08, 0x0b, 0x13
	abbrev := []byte{
		1, 0x11, 1, 0, 0,
		2, 0x24, 0, 0x03, str, 0x0b, data1, 0x3e, data1, 0, 0, // base type
		3, 0x13, 1, 0x03, str, 0x0b, data1, 0, 0, // struct
		4, 0x33, 1, 0x15, ref4, 0, 0, // variant part
		5, 0x0d, 0, 0x03, str, 0x49, ref4, 0x38, data1, 0, 0, // member
		6, 0x19, 1, 0x16, data1, 0, 0, // variant
		7, 0x19, 1, 0, 0, // default variant
		0,
	}
	b := []byte{0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1}
	ref := func(to int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(to)) }
	add := func(more ...byte) { b = append(b, more...) }
	member := func(name string, typ, at int) {
		add(append(append(append([]byte{5}, name...), 0), append(ref(typ), byte(at))...)...)
	}
	small := len(b)
	add(2, 'u', '8', 0, 1, 7)
	number := len(b)
	add(2, 'i', '3', '2', 0, 4, 5)
	off = dwarf.Offset(len(b))
	add(3, 'E', 0, 8)
	add(append([]byte{4}, ref(len(b)+5)...)...)
	member("", small, 0)
	for _, v := range []struct {
		head []byte
		name string
		typ  int
		at   int
	}{{[]byte{6, 1}, "some", number, 4}, {[]byte{6, 2}, "few", small, 2}, {[]byte{7}, "none", small, 1}} {
		add(v.head...)
		member(v.name, v.typ, v.at)
		add(0)
	}
	add(0, 0, 0)
	binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
	m = &Module{sec: sections{info: b, abbrev: abbrev}}
	m.data = &info{m: m, abbrevs: map[uint64]*abbrevs{}}
	return m, off
}

// TestVariants: of a type with variants only the one that is there is shown.
func TestVariants(t *testing.T) {
	m, off := variantType(t)
	for _, c := range []struct {
		b        []byte
		want     string
		children int
	}{
		{[]byte{1, 9, 8, 7, 42, 0, 0, 0}, "{some = 42}", 1},
		{[]byte{2, 9, 8, 7, 42, 0, 0, 0}, "{few = 8}", 1},
		{[]byte{0, 9, 8, 7, 42, 0, 0, 0}, "{none = 9}", 1},
		{[]byte{255, 9, 8, 7, 42, 0, 0, 0}, "{none = 9}", 1},
		{nil, "<optimized out>", 0},
	} {
		v := Value{typ: m.typeAt(off), env: &Env{Mem: nothing{}}, pieces: []piece{{place: isBytes, bytes: c.b}}}
		if got := v.String(); got != c.want {
			t.Errorf("%v is %s, want %s", c.b, got, c.want)
		}
		if n, _ := v.NumChildren(); n != c.children {
			t.Errorf("%v has %d children, want %d", c.b, n, c.children)
		}
		if list := v.Children(0, 0); len(list) != c.children {
			t.Errorf("%v has the children %v", c.b, list)
		}
	}
}
