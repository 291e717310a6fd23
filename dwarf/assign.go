package dwarf

import (
	"errors"
	"fmt"
)

// What must be stored to give a variable, or part of one, another value. Who stores it is not
// known here.

// Patch is bytes to be stored: in memory, or in a register.
type Patch struct {
	InRegister bool
	Register   int    // its DWARF number
	Addr       uint64 // in memory; in a register the first byte
	Bytes      []byte
}

var errElsewhere = errors.New("it is not in one place that could be written to")

// Assign returns what gives to the value of an expression in the frame; scope is as for
// Eval.
func (e *Env) Assign(to Value, expr string, scope int) (p Patch, err error) {
	if s, ok := isString(expr); ok && to.isCharacters() {
		return to.store(e, func(n int64) ([]byte, error) {
			if int64(len(s)) > n {
				return nil, fmt.Errorf("there is room for %d bytes", n)
			}
			b := make([]byte, n)
			copy(b, s)
			return b, nil
		})
	}
	from, err := e.Eval(expr, scope)
	if err != nil {
		return p, err
	}
	return to.store(e, func(int64) (b []byte, err error) {
		defer caught(&err)
		x := &evalState{env: e}
		return x.encode(to.referent().typ, from), nil
	})
}

// isCharacters reports whether the value is an array of characters.
func (v Value) isCharacters() bool {
	defer v.lock()()
	t := v.typ.strip()
	return t != nil && t.Kind == KindArray && t.element().strip().isChar()
}

// store makes a patch of the value's new bytes.
func (v Value) store(e *Env, encode func(n int64) ([]byte, error)) (p Patch, err error) {
	if m := e.Module; m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
	}
	v = v.referent()
	if s := v.typ.strip(); v.golang != nil && (s == nil || s.Kind != KindBase && s.Kind != KindPointer) {
		return p, errors.New("only numbers and pointers of Go programs are set")
	}
	n := v.typ.byteSize(e)
	switch {
	case v.err != nil:
		return p, v.err
	case n <= 0 || n > maxValue:
		return p, errSize
	case len(v.pieces) != 1 || v.pieces[0].bits != 0 && v.pieces[0].bits < uint64(n)*8 || v.pieces[0].skip%8 != 0:
		return p, errElsewhere
	}
	b, err := encode(n)
	if err != nil {
		return p, err
	}
	off := v.off
	if v.bits != 0 {
		if b, off, err = v.bitField(b); err != nil {
			return p, err
		}
	}
	at := &v.pieces[0]
	switch at.place {
	case inMemory:
		return Patch{Addr: at.addr + uint64(off), Bytes: b}, nil
	case inRegister:
		return Patch{InRegister: true, Register: int(at.addr), Addr: uint64(off) + at.skip/8, Bytes: b}, nil
	default:
		return p, errElsewhere
	}
}

// bitField puts the low bits of b in their place among the bytes around them, which are at
// off.
func (v Value) bitField(b []byte) (out []byte, off int64, err error) {
	first := v.bitOff / 8
	whole := v
	whole.off += first
	out, err = whole.whole((v.bitOff+v.bits+7)/8 - first)
	if err != nil {
		return nil, 0, err
	}
	for i := range v.bits {
		at := v.bitOff%8 + i
		out[at/8] &^= 1 << (at % 8)
		out[at/8] |= b[i/8] >> (i % 8) & 1 << (at % 8)
	}
	return out, whole.off, nil
}
