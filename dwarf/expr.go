package dwarf

import (
	"encoding/binary"
	"errors"

	"github.com/go-delve/delve/pkg/dwarf/op"
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
		code := op.Opcode(e.c.u8())
		if n == maxOps || len(e.stack) > maxStack || !e.step(code) || e.bad || e.c.bad {
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
func (e *evaluator) step(code op.Opcode) bool {
	c := &e.c
	switch {
	case code >= op.DW_OP_lit0 && code <= op.DW_OP_lit31:
		e.push(uint64(code - op.DW_OP_lit0))
	case code >= op.DW_OP_breg0 && code <= op.DW_OP_breg31:
		e.register(uint64(code-op.DW_OP_breg0), c.sleb())
	case code >= op.DW_OP_const1u && code <= op.DW_OP_consts:
		e.constant(code)
	case code >= op.DW_OP_abs && code <= op.DW_OP_ne && code != op.DW_OP_plus_uconst && code != op.DW_OP_bra:
		return e.arithmetic(code)
	default:
		return e.other(code)
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
func (e *evaluator) constant(code op.Opcode) {
	c := &e.c
	switch code {
	case op.DW_OP_constu:
		e.push(c.uleb())
	case op.DW_OP_consts:
		e.push(uint64(c.sleb()))
	default: // unsigned and signed numbers of 1, 2, 4 and 8 bytes take turns
		n := uint64(1) << ((code - op.DW_OP_const1u) / 2)
		if (code-op.DW_OP_const1u)%2 == 0 {
			e.push(c.uint(n))
		} else {
			e.push(uint64(c.int(n)))
		}
	}
}

// other executes what is neither a constant nor arithmetic.
func (e *evaluator) other(code op.Opcode) bool {
	c := &e.c
	switch code {
	case op.DW_OP_addr:
		e.push(c.uint(8))
	case op.DW_OP_deref:
		e.load(8)
	case op.DW_OP_deref_size:
		e.load(uint64(c.u8()))
	case op.DW_OP_dup:
		e.pick(0)
	case op.DW_OP_drop:
		e.pop()
	case op.DW_OP_over:
		e.pick(1)
	case op.DW_OP_pick:
		e.pick(int(c.u8()))
	case op.DW_OP_swap:
		a, b := e.pop(), e.pop()
		e.push(a)
		e.push(b)
	case op.DW_OP_rot:
		a, b, d := e.pop(), e.pop(), e.pop()
		e.push(a)
		e.push(d)
		e.push(b)
	case op.DW_OP_plus_uconst:
		e.push(e.pop() + c.uleb())
	case op.DW_OP_bra:
		if to := c.int(2); e.pop() != 0 {
			e.jump(to)
		}
	case op.DW_OP_skip:
		e.jump(c.int(2))
	case op.DW_OP_bregx:
		n := c.uleb()
		e.register(n, c.sleb())
	case op.DW_OP_nop:
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
func (e *evaluator) arithmetic(code op.Opcode) bool {
	a := e.pop()
	switch code {
	case op.DW_OP_abs:
		if int64(a) < 0 {
			a = -a
		}
		e.push(a)
		return true
	case op.DW_OP_neg:
		e.push(-a)
		return true
	case op.DW_OP_not:
		e.push(^a)
		return true
	default: // the others have two operands
	}
	v, ok := binary2(code, e.pop(), a)
	e.push(v)
	return ok
}

// binary2 computes an operation on the second and the first value of the stack.
func binary2(code op.Opcode, x, y uint64) (uint64, bool) {
	truth := func(b bool) (uint64, bool) {
		if b {
			return 1, true
		}
		return 0, true
	}
	sx, sy := int64(x), int64(y)
	switch code {
	case op.DW_OP_and:
		return x & y, true
	case op.DW_OP_div, op.DW_OP_mod:
		if y == 0 || sy == -1 && code == op.DW_OP_div && sx == -1<<63 {
			return 0, false
		}
		if code == op.DW_OP_div {
			return uint64(sx / sy), true
		}
		return x % y, true
	case op.DW_OP_minus:
		return x - y, true
	case op.DW_OP_mul:
		return x * y, true
	case op.DW_OP_or:
		return x | y, true
	case op.DW_OP_plus:
		return x + y, true
	case op.DW_OP_shl:
		return x << y, true
	case op.DW_OP_shr:
		return x >> y, true
	case op.DW_OP_shra:
		return uint64(sx >> y), true
	case op.DW_OP_xor:
		return x ^ y, true
	case op.DW_OP_eq:
		return truth(sx == sy)
	case op.DW_OP_ge:
		return truth(sx >= sy)
	case op.DW_OP_gt:
		return truth(sx > sy)
	case op.DW_OP_le:
		return truth(sx <= sy)
	case op.DW_OP_lt:
		return truth(sx < sy)
	case op.DW_OP_ne:
		return truth(sx != sy)
	default:
		return 0, false
	}
}
