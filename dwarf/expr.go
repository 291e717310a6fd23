package dwarf

import (
	"encoding/binary"
	"errors"
)

// Expressions of call frame information (DWARF 5, 2.5): a stack machine of
// which signal trampolines and PLT entries use a few dozen operations.

var errExpr = errors.New("dwarf: bad expression in call frame information")

// maxOps bounds the operations executed, maxStack the values at a time.
const (
	maxOps   = 4096
	maxStack = 256
)

// evaluator executes one expression.
type evaluator struct {
	c     cursor
	stack []uint64
	regs  *Regs
	mem   Memory
	bad   bool
}

// evaluate executes an expression with initial on the stack.
func evaluate(expr []byte, initial []uint64, regs *Regs, mem Memory) (uint64, error) {
	e := &evaluator{c: cursor{b: expr}, stack: append(make([]uint64, 0, 8), initial...), regs: regs, mem: mem}
	for n := 0; e.c.left() > 0; n++ {
		op := e.c.u8()
		if n == maxOps || len(e.stack) > maxStack || !e.step(op) || e.bad || e.c.bad {
			return 0, errExpr
		}
	}
	v := e.pop()
	if e.bad {
		return 0, errExpr
	}
	return v, nil
}

func (e *evaluator) push(v uint64) { e.stack = append(e.stack, v) }

func (e *evaluator) pop() uint64 {
	if len(e.stack) == 0 {
		e.bad = true
		return 0
	}
	v := e.stack[len(e.stack)-1]
	e.stack = e.stack[:len(e.stack)-1]
	return v
}

// pick pushes a copy of the n-th value from the top.
func (e *evaluator) pick(n int) {
	if n >= len(e.stack) {
		e.bad = true
		return
	}
	e.push(e.stack[len(e.stack)-1-n])
}

// step executes one operation; false when it is not known.
func (e *evaluator) step(op byte) bool {
	c := &e.c
	switch {
	case op >= 0x30 && op <= 0x4f: // DW_OP_lit0 to DW_OP_lit31
		e.push(uint64(op - 0x30))
	case op >= 0x70 && op <= 0x8f: // DW_OP_breg0 to DW_OP_breg31
		e.register(uint64(op-0x70), c.sleb())
	case op >= 0x08 && op <= 0x11:
		e.constant(op)
	case op >= 0x19 && op <= 0x2e && op != 0x23 && op != 0x28:
		return e.arithmetic(op)
	default:
		return e.other(op)
	}
	return true
}

func (e *evaluator) register(n uint64, off int64) {
	v, ok := e.regs.get(n)
	if !ok {
		e.bad = true
	}
	e.push(v + uint64(off))
}

// constant executes DW_OP_const1u to DW_OP_consts.
func (e *evaluator) constant(op byte) {
	c := &e.c
	switch op {
	case 0x10:
		e.push(c.uleb())
	case 0x11:
		e.push(uint64(c.sleb()))
	default:
		n := uint64(1) << ((op - 0x08) / 2)
		if op&1 == 0 {
			e.push(c.uint(n))
		} else {
			e.push(uint64(c.int(n)))
		}
	}
}

// other executes what is neither a constant nor arithmetic.
func (e *evaluator) other(op byte) bool {
	c := &e.c
	switch op {
	case 0x03: // DW_OP_addr
		e.push(c.uint(8))
	case 0x06: // DW_OP_deref
		e.load(8)
	case 0x94: // DW_OP_deref_size
		e.load(uint64(c.u8()))
	case 0x12: // DW_OP_dup
		e.pick(0)
	case 0x13: // DW_OP_drop
		e.pop()
	case 0x14: // DW_OP_over
		e.pick(1)
	case 0x15: // DW_OP_pick
		e.pick(int(c.u8()))
	case 0x16: // DW_OP_swap
		a, b := e.pop(), e.pop()
		e.push(a)
		e.push(b)
	case 0x17: // DW_OP_rot
		a, b, d := e.pop(), e.pop(), e.pop()
		e.push(a)
		e.push(d)
		e.push(b)
	case 0x23: // DW_OP_plus_uconst
		e.push(e.pop() + c.uleb())
	case 0x28: // DW_OP_bra
		if to := c.int(2); e.pop() != 0 {
			e.jump(to)
		}
	case 0x2f: // DW_OP_skip
		e.jump(c.int(2))
	case 0x92: // DW_OP_bregx
		n := c.uleb()
		e.register(n, c.sleb())
	case 0x96: // DW_OP_nop
	default:
		return false
	}
	return true
}

func (e *evaluator) jump(by int64) {
	to := int64(e.c.at) + by
	if to < 0 || to > int64(len(e.c.b)) {
		e.bad = true
		return
	}
	e.c.at = int(to)
}

func (e *evaluator) load(n uint64) {
	addr := e.pop()
	var w [8]byte
	if n == 0 || n > 8 || uint64(e.mem.ReadMemory(addr, w[:n])) != n {
		e.bad = true
		return
	}
	e.push(binary.LittleEndian.Uint64(w[:]))
}

// arithmetic executes DW_OP_abs to DW_OP_ne.
func (e *evaluator) arithmetic(op byte) bool {
	a := e.pop()
	switch op {
	case 0x19: // DW_OP_abs
		if int64(a) < 0 {
			a = -a
		}
		e.push(a)
		return true
	case 0x1f: // DW_OP_neg
		e.push(-a)
		return true
	case 0x20: // DW_OP_not
		e.push(^a)
		return true
	}
	v, ok := binary2(op, e.pop(), a)
	e.push(v)
	return ok
}

// binary2 computes an operation on the second and the first value of the stack.
func binary2(op byte, x, y uint64) (uint64, bool) {
	truth := func(b bool) (uint64, bool) {
		if b {
			return 1, true
		}
		return 0, true
	}
	sx, sy := int64(x), int64(y)
	switch op {
	case 0x1a:
		return x & y, true
	case 0x1b, 0x1d: // DW_OP_div, DW_OP_mod
		if y == 0 || sy == -1 && op == 0x1b && sx == -1<<63 {
			return 0, false
		}
		if op == 0x1b {
			return uint64(sx / sy), true
		}
		return x % y, true
	case 0x1c:
		return x - y, true
	case 0x1e:
		return x * y, true
	case 0x21:
		return x | y, true
	case 0x22:
		return x + y, true
	case 0x24:
		return x << y, true
	case 0x25:
		return x >> y, true
	case 0x26:
		return uint64(sx >> y), true
	case 0x27:
		return x ^ y, true
	case 0x29:
		return truth(sx == sy)
	case 0x2a:
		return truth(sx >= sy)
	case 0x2b:
		return truth(sx > sy)
	case 0x2c:
		return truth(sx <= sy)
	case 0x2d:
		return truth(sx < sy)
	case 0x2e:
		return truth(sx != sy)
	}
	return 0, false
}
