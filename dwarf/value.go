package dwarf

import (
	"errors"
	"fmt"

	"github.com/go-delve/delve/pkg/dwarf/godwarf"
)

// Values: where their bytes are, in memory, in registers, in pieces of both or nowhere, and how
// they are read. Which value a variable has in a frame is in variable.go.

// Value is a variable, or part of one, in a frame. It is read when it is looked
// at. A Value is good for as long as the frame's registers and memory are.
type Value struct {
	Name string // variable, member or index; as the program has it

	typ    *Type
	env    *Env
	pieces []piece
	off    int64 // from the start of the pieces, in bytes
	bits   int64 // width of a bit field, 0 for others
	bitOff int64 // its first bit, from off
	err    error // why there is no value
	base   bool  // a base class, not a member
	keyed  bool  // Name is what a container has it by, which is no index of it

	golang godwarf.Type // of a Go program's, nil for others
}

// Type returns the value's type; nil is void.
func (v Value) Type() *Type { return v.typ }

// Err returns why there is no value at all, nil when there is one, or part of one.
func (v Value) Err() error { return v.err }

// Address returns where the value is in memory; ok is false for what is in
// registers or nowhere, and for bit fields.
func (v Value) Address() (addr uint64, ok bool) {
	if v.err != nil || v.bits != 0 || len(v.pieces) != 1 || v.pieces[0].place != inMemory {
		return 0, false
	}
	return v.pieces[0].addr + uint64(v.off), true
}

// Size returns how many bytes the value has, -1 when it is not known.
func (v Value) Size() int64 {
	defer v.lock()()
	return v.typ.byteSize(v.env)
}

// lock locks the module, and returns what unlocks it and survives a panic over a
// damaged file.
func (v Value) lock() func() {
	if v.env == nil || v.env.Module == nil {
		return func() {}
	}
	mu := &v.env.Module.mu
	mu.Lock()
	return func() {
		mu.Unlock()
		_ = recover() // here, not in a function: else it recovers nothing
	}
}

// what is known of a byte.
const (
	byteKnown uint8 = iota
	byteLost
	byteUnreadable
	byteSynthetic // part of a pointer to what is not in memory
)

// maxValue bounds the bytes read of one value.
const maxValue = 1 << 20

// read returns n bytes from offset off of the value and what is known of each.
func (v Value) read(off, n int64) (b []byte, state []uint8) {
	if n < 0 || n > maxValue {
		n = 0
	}
	b, state = make([]byte, n), make([]uint8, n)
	if v.err != nil {
		fill(state, byteLost)
		return b, state
	}
	off += v.off
	if len(v.pieces) == 1 && v.pieces[0].bits == 0 {
		v.piece(&v.pieces[0], off, b, state)
		return b, state
	}
	fill(state, byteLost)
	at := int64(0) // bits
	for i := range v.pieces {
		p := &v.pieces[i]
		v.copyBits(p, at-off*8, b, state)
		at += int64(p.bits)
	}
	return b, state
}

func fill(s []uint8, v uint8) {
	for i := range s {
		s[i] = v
	}
}

// copyBits puts a piece whose first bit is bit at of b into b.
func (v Value) copyBits(p *piece, at int64, b []byte, state []uint8) {
	end := at + int64(p.bits)
	if end <= 0 || at >= int64(len(b))*8 {
		return
	}
	first := max(0, -at) / 8 // bytes of the piece that are before b
	last := (min(end, int64(len(b))*8) - at + 7) / 8
	got, st := make([]byte, last-first), make([]uint8, last-first)
	v.piece(p, first, got, st)
	if at%8 == 0 && p.bits%8 == 0 {
		copy(b[at/8+first:], got)
		copy(state[at/8+first:], st)
		return
	}
	for i := range got {
		for j := range int64(8) {
			bit := at + (first+int64(i))*8 + j
			if bit < 0 || bit >= end || bit >= int64(len(b))*8 {
				continue
			}
			b[bit/8] |= got[i] >> j & 1 << (bit % 8)
			state[bit/8] = st[i]
		}
	}
}

// piece reads from one piece, off bytes behind its start.
func (v Value) piece(p *piece, off int64, b []byte, state []uint8) {
	switch p.place {
	case inMemory:
		n := 0
		if len(b) > 0 {
			n = v.env.Mem.ReadMemory(p.addr+uint64(off), b)
		}
		fill(state[max(0, min(n, len(state))):], byteUnreadable)
	case inRegister:
		full := make([]byte, max(int64(len(b))+off, 0)+int64(p.skip/8)+1)
		if len(full) > 32 {
			full = full[:32]
		}
		if !v.env.register(p.addr, full) {
			fill(state, byteLost)
			return
		}
		copyShifted(b, state, full, off, p.skip)
	case isBytes:
		copyShifted(b, state, p.bytes, off, p.skip)
	case isPointer:
		fill(state, byteSynthetic)
	default:
		fill(state, byteLost)
	}
}

// copyShifted copies src, from off bytes and skip bits on, to b.
func copyShifted(b []byte, state []uint8, src []byte, off int64, skip uint64) {
	off += int64(skip / 8)
	skip %= 8
	for i := range b {
		at := off + int64(i)
		if at < 0 || at >= int64(len(src)) {
			state[i] = byteLost
			continue
		}
		b[i] = src[at] >> skip
		if skip > 0 && at+1 < int64(len(src)) {
			b[i] |= src[at+1] << (8 - skip)
		}
	}
}

// errs for parts of values.
var (
	errSynthetic = errors.New("synthetic pointer")
	errSize      = errors.New("size not known")
)

// memoryError says that the byte at an address cannot be read.
type memoryError struct {
	addr uint64
	why  error
}

func (e memoryError) Error() string {
	if e.why != nil {
		return e.why.Error()
	}
	return fmt.Sprintf("Cannot access memory at address %#x", e.addr)
}

// whole reads a scalar's bytes; the error says why one is missing.
func (v Value) whole(n int64) ([]byte, error) {
	if v.err != nil {
		return nil, v.err
	}
	if n < 0 || n > maxValue {
		return nil, errSize
	}
	b, state := v.read(0, n)
	for i, s := range state {
		if s != byteKnown {
			return b, v.byteError(s, int64(i))
		}
	}
	return b, nil
}

// byteError says why the byte at off is missing.
func (v Value) byteError(s uint8, off int64) error {
	switch s {
	case byteUnreadable:
		var addr uint64
		if len(v.pieces) == 1 {
			addr = v.pieces[0].addr + uint64(v.off+off)
		}
		e := memoryError{addr: addr}
		if v.env.Why != nil {
			e.why = v.env.Why(addr)
		}
		return e
	case byteSynthetic:
		return errSynthetic
	}
	return errLost
}

// bitsOf reads an integer, enumeration, pointer or bit field, extended to 64
// bits as its type is.
func (v Value) bitsOf() (uint64, error) {
	t := v.typ.strip()
	n := t.byteSize(v.env)
	if v.bits != 0 {
		first := v.bitOff / 8
		n = (v.bitOff+v.bits+7)/8 - first
		whole := v
		whole.off += first
		b, err := whole.whole(n)
		if err != nil {
			return 0, err
		}
		var x uint64
		for i := range v.bits {
			at := v.bitOff%8 + i
			x |= uint64(b[at/8]>>(at%8)&1) << i
		}
		return extend(x, uint64(v.bits), t.isSigned()), nil
	}
	if n < 1 || n > 8 {
		return 0, errSize
	}
	b, err := v.whole(n)
	if err != nil {
		return 0, err
	}
	var x uint64
	for i, c := range b {
		x |= uint64(c) << (8 * i)
	}
	return extend(x, uint64(n)*8, t.isSigned()), nil
}

// isSigned reports whether a type's integers are signed.
func (t *Type) isSigned() bool {
	switch {
	case t == nil:
		return false
	case t.Kind == KindBase:
		return t.enc == encSigned || t.enc == encSignedChar
	case t.Kind == KindEnum:
		if e := t.element().strip(); e != nil {
			return e.isSigned()
		}
		t.load()
		for _, e := range t.enums {
			if e.value < 0 {
				return true
			}
		}
	default:
	}
	return false
}

// at returns part of the value.
func (v Value) at(name string, t *Type, off int64) Value {
	v.Name, v.typ, v.base, v.keyed, v.bits, v.bitOff, v.golang = name, t, false, false, 0, 0, nil
	v.off += off
	return v
}

// has reports whether a field of the value's type is part of the value: it is not
// static, and the variant that is there has it.
func (v Value) has(f *field) bool {
	t := v.typ.strip()
	if f.isStatic || !f.variant || t.discr == nil {
		return !f.isStatic
	}
	by := v.member(t.discr)
	n, err := by.bitsOf()
	if err != nil {
		return false
	}
	bits := uint64(max(by.typ.byteSize(nil), 0)) * 8
	same := func(f *field) bool { return extend(uint64(f.selects), bits, false) == extend(n, bits, false) }
	if !f.other {
		return same(f)
	}
	for i := range t.fields {
		if o := &t.fields[i]; o.variant && !o.other && same(o) {
			return false
		}
	}
	return true
}

// member returns a member of a struct or union value.
func (v Value) member(f *field) Value {
	t := v.typ.strip()
	out := v.at(f.name, t.m.typeAt(f.typ), f.off)
	out.base = f.base
	if f.base {
		out.Name = out.typ.strip().plainName()
	}
	if f.bits != 0 {
		out.off, out.bits, out.bitOff = v.off, f.bits, f.bitOff
	}
	if f.expr != nil { // a virtual base class: the vtable says where
		addr, ok := v.Address()
		n, err := evaluate(f.expr, []uint64{addr}, &v.env.Regs, v.env.Mem)
		if !ok || err != nil {
			out.err = errLost
		}
		out.pieces, out.off = []piece{{place: inMemory, addr: n}}, 0
	}
	return out
}

func (t *Type) plainName() string {
	if t == nil {
		return ""
	}
	return t.fullName()
}

// target returns what a pointer or reference value points to.
func (v Value) target() Value {
	t := v.typ.strip()
	out := v.at("*"+v.Name, t.element(), 0)
	out.off = 0
	if v.err == nil && len(v.pieces) == 1 && v.pieces[0].place == isPointer {
		return v.synthetic(out)
	}
	p, err := v.bitsOf()
	out.pieces, out.err = []piece{{place: inMemory, addr: p}}, err
	return out
}

// synthetic follows a pointer to a variable that is not in memory
// (DW_OP_implicit_pointer).
func (v Value) synthetic(out Value) Value {
	p := v.pieces[0]
	m := v.env.Module
	e := m.entryAt(p.to)
	if e == nil {
		out.err = errLost
		return out
	}
	x := v.env.variable(e, m.functionEntry(v.env.pc()), 1)
	out.pieces, out.err = x.pieces, x.err
	out.off = p.toOff
	return out
}

// Register returns the register that holds the whole value, by its number in DWARF (System
// V ABI, AMD64 supplement, figure 3.36); ok is false for what is elsewhere.
func (v Value) Register() (n uint64, ok bool) {
	if v.err != nil || v.bits != 0 || v.off != 0 || len(v.pieces) != 1 || v.pieces[0].place != inRegister || v.pieces[0].skip != 0 {
		return 0, false
	}
	return v.pieces[0].addr, true
}
