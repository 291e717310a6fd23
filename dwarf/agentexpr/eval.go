package agentexpr

import (
	"encoding/binary"
	"fmt"
	"sync"
)

// Machine is what an expression is evaluated for.
type Machine interface {
	// GPR returns a general register, by the number that instructions have for it.
	GPR(index int) uint64
	RIP() uint64
	// ReadMemory returns how many bytes from addr on it has read, and why not all.
	ReadMemory(addr uint64, b []byte) (n int, err error)
}

// Registers returns a register that is none of a Machine's, by its number, and whether there is one.
type Registers func(m Machine, number int) (uint64, bool)

// Program is an expression that can be evaluated, by several goroutines at once.
type Program struct{ steps []step }

// step is an operator. The argument of a jump is the index of the step that it leads to.
type step struct {
	arg            uint64
	op             byte
	takes, returns uint8
	at             uint16 // offset in the code
}

// Parse makes a program of code that is well formed: known operators, operands
// whole, jumps to the beginning of an operator. What depends on values (stack
// depth, loops, memory) is found by Eval. The error wraps Err and names
// the offset in bytes.
func Parse(code []byte) (*Program, error) {
	if len(code) > MaxLen {
		return nil, errorAt(0, "too long")
	}
	p := &Program{}
	index := map[uint64]uint64{} // of steps, by offset
	for pc := 0; pc < len(code); {
		op, arg, next, err := Next(code, pc)
		if err != nil {
			return nil, err
		}
		index[uint64(pc)] = uint64(len(p.steps))
		p.steps = append(p.steps, step{arg: arg, op: code[pc], takes: uint8(op.Takes), returns: uint8(op.Returns), at: uint16(pc)})
		pc = next
	}
	for i := range p.steps {
		s := &p.steps[i]
		if s.op != IfGoto && s.op != Goto {
			continue
		}
		to, ok := index[s.arg]
		if !ok {
			return nil, errorAt(int(s.at), "jump into nowhere")
		}
		s.arg = to
	}
	return p, nil
}

// evaluation is the state of one evaluation.
type evaluation struct {
	m     Machine
	other Registers
	stack [maxStack]uint64
	sp    int
	buf   [8]byte
}

// Eval evaluates the program and returns the top of the stack at its end, 0 for an empty one. other is for registers that are none of m's; nil says that
// there are none. It takes at most maxSteps operators. Errors wrap [Err], or the error of ReadMemory. Tracing operators
// collect nothing and printf prints nothing; trace state variables do not exist.
func (p *Program) Eval(m Machine, other Registers) (uint64, error) {
	a := evaluations.Get().(*evaluation)
	a.m, a.other, a.sp = m, other, 0
	v, err := a.eval(p.steps)
	a.m, a.other = nil, nil
	evaluations.Put(a)
	return v, err
}

// Holds reports whether the program is not 0, or cannot be evaluated: a breakpoint whose condition it is stops there.
func (p *Program) Holds(m Machine, other Registers) bool {
	v, err := p.Eval(m, other)
	return v != 0 || err != nil
}

// evaluations keeps their states: one would otherwise be allocated for each
// evaluation, as its buffer goes through an interface.
var evaluations = sync.Pool{New: func() any { return new(evaluation) }}

// register returns a register by its number.
func (a *evaluation) register(number int) (uint64, bool) {
	switch {
	case number < RIP:
		return a.m.GPR(int(GPR[number])), true
	case number == RIP:
		return a.m.RIP(), true
	case a.other == nil:
		return 0, false
	}
	return a.other(a.m, number)
}

// eval goes through steps to their end.
func (a *evaluation) eval(steps []step) (uint64, error) {
	pc := 0
	for range maxSteps {
		if pc >= len(steps) {
			return 0, errorAt(0, "runs off the end")
		}
		s := &steps[pc]
		pc++
		if a.sp < int(s.takes) {
			return 0, s.fails("stack underflow")
		}
		if a.sp+int(s.returns)-int(s.takes) > len(a.stack) {
			return 0, s.fails("stack overflow")
		}
		switch s.op {
		case Const8, Const16, Const32, Const64:
			a.push(s.arg)
		case End:
			if a.sp == 0 {
				return 0, nil
			}
			return a.stack[a.sp-1], nil
		case Goto:
			pc = int(s.arg)
		case IfGoto:
			a.sp--
			if a.stack[a.sp] != 0 {
				pc = int(s.arg)
			}
		default:
			if err := a.execute(s); err != nil {
				return 0, err
			}
		}
	}
	return 0, errorAt(0, "too many steps")
}

// fails makes an error about the step.
func (s *step) fails(what string) error {
	return errorAt(int(s.at), ops[s.op].Name+": "+what)
}

// execute carries out any operator but the jumps and numbers.
// Preconditions: the stack holds what it takes and has room for what it returns.
func (a *evaluation) execute(s *step) error {
	switch s.op {
	case Add, Sub, Mul, DivSigned, DivUnsigned, RemSigned, RemUnsigned, Lsh, RshSigned, RshUnsigned, BitAnd, BitOr, BitXor, Equal, LessSigned, LessUnsigned:
		a.sp--
		v, ok := binaryOf(s.op, a.stack[a.sp-1], a.stack[a.sp])
		if !ok {
			return s.fails("division by zero")
		}
		a.stack[a.sp-1] = v
		return nil
	case Ref8, Ref16, Ref32, Ref64:
		return a.ref(s, 1<<(s.op-Ref8))
	case Reg:
		v, ok := a.register(int(s.arg))
		if !ok {
			return s.fails("there is no such register")
		}
		a.push(v)
		return nil
	case Getv, Setv:
		return s.fails("there are no trace state variables")
	}
	return a.shuffle(s)
}

// push puts a value on the stack.
func (a *evaluation) push(v uint64) {
	a.stack[a.sp] = v
	a.sp++
}

// shuffle carries out the operators that work on the top of the stack.
func (a *evaluation) shuffle(s *step) error {
	arg := s.arg
	top := a.stack[:a.sp]
	n := len(top)
	switch s.op {
	case LogNot:
		top[n-1] = truth(top[n-1] == 0)
	case BitNot:
		top[n-1] = ^top[n-1]
	case Ext, ZeroExt:
		if arg == 0 || arg > 64 {
			return s.fails("a wrong number of bits")
		}
		v := top[n-1] << (64 - arg)
		if s.op == Ext {
			top[n-1] = uint64(int64(v) >> (64 - arg))
		} else {
			top[n-1] = v >> (64 - arg)
		}
	case Dup:
		a.push(top[n-1])
	case Pop:
		a.sp--
	case Swap:
		top[n-1], top[n-2] = top[n-2], top[n-1]
	case Rot: // a b c becomes c a b
		top[n-1], top[n-2], top[n-3] = top[n-2], top[n-3], top[n-1]
	case Pick:
		if arg >= uint64(n) {
			return s.fails("stack underflow")
		}
		a.push(top[n-1-int(arg)])
	case Trace, Tracenz:
		a.sp -= 2
	case TraceQuick, Trace16, Tracev: // collect nothing
	case Printf: // function, channel and the arguments
		if n < 2+int(arg>>16) {
			return s.fails("stack underflow")
		}
		a.sp -= 2 + int(arg>>16)
	}
	return nil
}

// ref replaces the address on the stack by the n bytes it points to.
func (a *evaluation) ref(s *step, n int) error {
	a.buf = [8]byte{}
	addr := a.stack[a.sp-1]
	if addr+uint64(n-1) < addr {
		return s.fails("address wraps around")
	}
	if got, err := a.m.ReadMemory(addr, a.buf[:n]); got < n {
		if err == nil {
			return s.fails("memory cannot be read")
		}
		return fmt.Errorf("%w: %w", s.fails("memory cannot be read"), err)
	}
	a.stack[a.sp-1] = binary.LittleEndian.Uint64(a.buf[:])
	return nil
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// binaryOf computes x op y. It reports false for a division by zero. Shifts by
// 64 and more give 0, or the sign.
func binaryOf(op byte, x, y uint64) (uint64, bool) {
	switch op {
	case Add:
		return x + y, true
	case Sub:
		return x - y, true
	case Mul:
		return x * y, true
	case Lsh:
		return x << y, true
	case RshSigned:
		return uint64(int64(x) >> y), true
	case RshUnsigned:
		return x >> y, true
	case BitAnd:
		return x & y, true
	case BitOr:
		return x | y, true
	case BitXor:
		return x ^ y, true
	case Equal:
		return truth(x == y), true
	case LessSigned:
		return truth(int64(x) < int64(y)), true
	case LessUnsigned:
		return truth(x < y), true
	}
	if y == 0 {
		return 0, false
	}
	switch op {
	case DivSigned:
		return uint64(int64(x) / int64(y)), true
	case DivUnsigned:
		return x / y, true
	case RemSigned:
		return uint64(int64(x) % int64(y)), true
	default: // RemUnsigned
		return x % y, true
	}
}
