package dwarf

import (
	"debug/dwarf"
	"encoding/binary"
	"errors"

	"github.com/go-delve/delve/pkg/dwarf/op"
)

// Env is a frame in which variables have values: its code, its registers, its
// callers. The functions in it are called with the module locked and must not
// call the module's methods, except Symbol of it.
type Env struct {
	Frame
	Mem    Memory
	Caller *Env // nil when there is none, or it is not known

	// Vector reads a register that is not general by its DWARF number: from
	// regnum.AMD64_XMM0 on xmm0 to xmm15 (16 bytes), from regnum.AMD64_ST0 on st0 to
	// st7 (10). It may be nil.
	Vector func(reg uint64, b []byte) bool
	// TLS returns the address of a variable of the thread, from its offset in
	// the module's block. It may be nil.
	TLS func(m *Module, offset uint64) (uint64, bool)
	// Symbolize names an address, as "name+offset"; "" where nothing is. It may be nil.
	Symbolize func(addr uint64) string
	// Run, when it is not nil, runs the functions that expressions call. Extern returns the
	// address of a function of another module; it may be nil.
	Run    Runner
	Extern func(name string) (addr uint64, ok bool)
	// Why says why the byte at addr cannot be read. It may be nil.
	Why func(addr uint64) error
}

// Envs returns one for each frame of a backtrace.
func Envs(frames []Frame, mem Memory) []*Env {
	out := make([]*Env, len(frames))
	for i := len(frames) - 1; i >= 0; i-- {
		out[i] = &Env{Frame: frames[i], Mem: mem}
		if i+1 < len(frames) {
			out[i].Caller = out[i+1]
		}
	}
	return out
}

// pc is the frame's in the addresses of the file.
func (e *Env) pc() uint64 { return e.PC - e.Bias }

// place says where a piece of a value is.
type place uint8

const (
	inMemory place = iota
	inRegister
	isBytes   // the value itself
	isPointer // a pointer to a variable that is not in memory
	isLost    // optimized out
)

// piece is part of a value.
type piece struct {
	place place
	addr  uint64 // or register number
	bytes []byte
	skip  uint64 // bits before it in its register or its bytes
	bits  uint64 // 0: all
	to    dwarf.Offset
	toOff int64
}

// errLost says that a value is not anywhere.
var errLost = errors.New("optimized out")

// maxPieces bounds the pieces of a location.
const maxPieces = 256

// locator executes an expression that says where a value is, or what it is
// (DWARF 5, 2.5 and 2.6).
type locator struct {
	evaluator
	env    *Env
	m      *Module
	h      *header
	fn     *dwarf.Entry // the function, for its frame base
	object *uint64      // DW_OP_push_object_address

	last   *piece // what the operations so far describe, other than memory
	pieces []piece
	depth  int
	float  bool // the top of the stack is a floating-point number
	err    error
}

// maxNested bounds expressions that evaluate others.
const maxNested = 16

// locate evaluates a location expression of an entry.
func (e *Env) locate(m *Module, of *dwarf.Entry, fn *dwarf.Entry, expr []byte, depth int) ([]piece, error) {
	l := &locator{env: e, m: m, h: m.headerOf(of.Offset), fn: fn, depth: depth}
	return l.run(expr, nil)
}

func (l *locator) run(expr []byte, initial []uint64) ([]piece, error) {
	if l.depth > maxNested {
		return nil, errExpr
	}
	if len(expr) == 0 {
		return nil, errLost
	}
	l.evaluator = evaluator{c: cursor{b: expr}, stack: initial, regs: &l.env.Regs, mem: l.env.Mem}
	for n := 0; l.c.left() > 0; n++ {
		code := op.Opcode(l.c.u8())
		if n == maxOps || len(l.stack) > maxStack || len(l.pieces) > maxPieces {
			return nil, errExpr
		}
		if !l.operation(code) && !l.step(code) {
			l.bad = true
		}
		if l.err != nil {
			return nil, l.err
		}
		if l.bad || l.c.bad {
			return nil, errExpr
		}
	}
	if len(l.pieces) > 0 {
		return l.pieces, nil
	}
	p, err := l.whole()
	return []piece{p}, err
}

// whole is the piece that the operations since the last one describe.
func (l *locator) whole() (piece, error) {
	if l.last != nil {
		p := *l.last
		l.last = nil
		return p, nil
	}
	if len(l.stack) == 0 {
		return piece{place: isLost}, nil
	}
	return piece{place: inMemory, addr: l.pop()}, nil
}

// operation executes what a register holds or the stack is given, or another
// operation that only locations have; false when it is none of these.
func (l *locator) operation(code op.Opcode) bool {
	c := &l.c
	switch {
	case code >= op.DW_OP_reg0 && code <= op.DW_OP_reg31:
		l.last = &piece{place: inRegister, addr: uint64(code - op.DW_OP_reg0)}
		return true
	case code >= op.DW_OP_breg0 && code <= op.DW_OP_breg31, code == op.DW_OP_bregx:
		l.needRegister(code)
		return false
	}
	switch code {
	case op.DW_OP_addr:
		l.push(c.uint(8) + l.env.Bias)
	case op.DW_OP_regx:
		l.last = &piece{place: inRegister, addr: c.uleb()}
	case op.DW_OP_fbreg:
		l.push(l.frameBase() + uint64(c.sleb()))
	case op.DW_OP_piece:
		l.piece(c.uleb()*8, 0)
	case op.DW_OP_bit_piece:
		n := c.uleb()
		l.piece(n, c.uleb())
	case op.DW_OP_push_object_address:
		if l.object == nil {
			return false
		}
		l.push(*l.object)
	case op.DW_OP_call_frame_cfa:
		l.push(l.cfa())
	case op.DW_OP_implicit_value:
		l.last = &piece{place: isBytes, bytes: c.bytes(c.uleb())}
	case op.DW_OP_stack_value:
		l.last = &piece{place: isBytes, bytes: binary.LittleEndian.AppendUint64(nil, l.pop())}
	case opImplicitPointer, opGNUImplicitPointer:
		off := dwarf.Offset(l.offset())
		l.last = &piece{place: isPointer, to: off, toOff: c.sleb()}
	default:
		return l.further(code)
	}
	return true
}

// further executes operations that refer to other entries, or have types.
func (l *locator) further(code op.Opcode) bool {
	c := &l.c
	switch code {
	case opAddrx, opConstx, opGNUAddrIndex, opGNUConstIndex:
		v, ok := uint64(0), false
		if l.h != nil {
			v, ok = l.m.indexed(l.h, c.uleb())
		}
		if code == opAddrx || code == opGNUAddrIndex {
			v += l.env.Bias
		}
		l.push(v)
		return ok
	case op.DW_OP_form_tls_address, opGNUPushTLSAddress:
		if l.env.TLS == nil {
			l.err = errTLS
			return true
		}
		addr, ok := l.env.TLS(l.m, l.pop())
		if !ok {
			l.err = errTLS
		}
		l.push(addr)
	case opEntryValue, opGNUEntryValue:
		l.entryValue(c.bytes(c.uleb()))
	case op.DW_OP_call2, op.DW_OP_call4, op.DW_OP_call_ref:
		var off uint64
		if code == op.DW_OP_call_ref {
			off = l.offset()
		} else {
			off = c.uint(uint64(code-op.DW_OP_call2)*2+2) + l.unitStart()
		}
		return l.call(dwarf.Offset(off))
	case opGNUParameterRef: // as an entry value
		off := c.uint(4) + l.unitStart()
		l.parameterRef(dwarf.Offset(off))
	case opGNUVariableValue:
		v, ok := l.env.integerOf(l.m, dwarf.Offset(l.offset()), l.depth+1)
		l.push(v)
		return ok
	default:
		return l.typed(code)
	}
	return true
}

// errTLS says that the address of a thread's variable is not known.
var errTLS = errors.New("thread-local storage is not known here")

// offset reads a reference to an entry of any unit.
func (l *locator) offset() uint64 {
	if l.h != nil && l.h.dwarf64 {
		return l.c.uint(8)
	}
	return l.c.uint(4)
}

func (l *locator) unitStart() uint64 {
	if l.h == nil {
		return 0
	}
	return uint64(l.h.start)
}

// typed executes the operations that carry a type (DWARF 5, 2.5.1.6). Integers
// of a type are kept extended to 64 bits; floating-point numbers are carried but
// not computed with.
func (l *locator) typed(code op.Opcode) bool {
	c := &l.c
	base := func() *Type {
		off := c.uleb()
		if off == 0 {
			return nil // the generic type
		}
		return l.m.typeAt(dwarf.Offset(off + l.unitStart()))
	}
	switch code {
	case opConstType, opGNUConstType:
		t := base()
		b := c.bytes(uint64(c.u8()))
		if len(b) > 8 {
			return false
		}
		l.pushTyped(t, b)
	case opRegvalType, opGNURegvalType:
		reg := c.uleb()
		t := base()
		b := make([]byte, 8)
		if n := t.byteSize(nil); n < 1 || n > 8 || !l.env.register(reg, b) {
			l.err = errLost
			return true
		}
		l.pushTyped(t, b)
	case opDerefType, opGNUDerefType:
		n := uint64(c.u8())
		t := base()
		if l.load(n); l.bad {
			return true
		}
		l.pushTyped(t, binary.LittleEndian.AppendUint64(nil, l.pop()))
	case opConvert, opGNUConvert, opReinterpret, opGNUReinterpret:
		t := base()
		if isFloat := t != nil && t.enc == encFloat; isFloat != l.float {
			l.err = errLost // a conversion between integers and others
			return true
		}
		if !l.float {
			l.pushTyped(t, binary.LittleEndian.AppendUint64(nil, l.pop()))
		}
	default:
		return false
	}
	return true
}

// pushTyped pushes a number of type t, nil being the generic type.
func (l *locator) pushTyped(t *Type, b []byte) {
	var w [8]byte
	copy(w[:], b)
	v := binary.LittleEndian.Uint64(w[:])
	l.float = t != nil && t.enc == encFloat
	if n := t.byteSize(nil); t != nil && n >= 1 && n < 8 && !l.float {
		v = extend(v, uint64(n)*8, t.enc == encSigned || t.enc == encSignedChar)
	}
	l.push(v)
}

// extend keeps the low bits of v and extends them by zeros, or by their sign.
func extend(v, bits uint64, signed bool) uint64 {
	if bits == 0 || bits >= 64 {
		return v
	}
	v <<= 64 - bits
	if signed {
		return uint64(int64(v) >> (64 - bits))
	}
	return v >> (64 - bits)
}

// needRegister makes a register that is lost in this frame say so.
func (l *locator) needRegister(code op.Opcode) {
	n := uint64(code - op.DW_OP_breg0)
	if code == op.DW_OP_bregx {
		c := l.c
		n = c.uleb()
	}
	if _, ok := l.env.Regs.get(n); !ok {
		l.err = errLost
	}
}

// piece ends a piece of the location.
func (l *locator) piece(bits, skip uint64) {
	p, err := l.whole()
	if err != nil || bits > 1<<40 {
		l.bad = true
		return
	}
	p.bits, p.skip = bits, skip
	l.pieces = append(l.pieces, p)
}

// call executes the location of another entry in place.
func (l *locator) call(off dwarf.Offset) bool {
	e := l.m.entryAt(off)
	if e == nil {
		return false
	}
	expr, ok := e.Val(dwarf.AttrLocation).([]byte)
	if !ok {
		return true // it has no effect
	}
	in := &locator{env: l.env, m: l.m, h: l.m.headerOf(off), fn: l.fn, depth: l.depth + 1}
	ps, err := in.run(expr, append([]uint64(nil), l.stack...))
	if err != nil || len(ps) != 1 || ps[0].place != inMemory {
		return false
	}
	l.push(ps[0].addr)
	return true
}

// frameBase evaluates the function's DW_AT_frame_base.
func (l *locator) frameBase() uint64 {
	if l.fn == nil {
		l.bad = true
		return 0
	}
	expr, ok := l.m.location(l.fn, dwarf.AttrFrameBase, l.env.pc())
	if !ok {
		l.bad = true
		return 0
	}
	ps, err := l.env.locate(l.m, l.fn, nil, expr, l.depth+1)
	if err != nil || len(ps) != 1 {
		l.bad = true
		return 0
	}
	switch ps[0].place {
	case inMemory:
		return ps[0].addr
	case inRegister: // the base is what the register holds
		v, ok := l.env.Regs.get(ps[0].addr)
		if !ok {
			l.err = errLost
		}
		return v
	default:
		l.bad = true
		return 0
	}
}

// cfa computes the canonical frame address.
func (l *locator) cfa() uint64 {
	e := l.env
	v, err := e.Module.cfa(&e.Regs, e.Mem, e.pc())
	if err != nil {
		l.err = errLost
	}
	return v
}

// register reads a register of the frame, as many bytes as b has; false when it
// is lost.
func (e *Env) register(n uint64, b []byte) bool {
	if v, ok := e.Regs.get(n); ok {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], v)
		copy(b, w[:])
		return true
	}
	return n >= numRegs && e.Vector != nil && e.Vector(n, b)
}
