package gdbstub

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"vplay/replay/debug/api"
)

// Agent expressions are gdb's bytecode for conditions that the target checks
// itself (gdb manual, appendix "The GDB Agent Expression Mechanism"; opcode
// numbers from gdbsupport/ax.def). A stack machine with 64-bit cells, constants
// big-endian, memory in the target's byte order, here little-endian.
//
// gdb sends them with breakpoints. A condition that is true once in ten million
// hits then costs ten million short evaluations in the engine instead of as
// many round trips. Nothing is allocated while one is evaluated.

// Limits on agent expressions.
const (
	MaxAgentLen   = 1024  // bytes of code
	MaxAgentSteps = 10000 // operators executed
	maxAgentStack = 100   // cells
)

// ErrAgent is wrapped by every error of CheckAgent and EvalAgent that the
// expression is to blame for.
var ErrAgent = errors.New("gdbstub: agent expression")

// Opcodes.
const (
	axAdd          = 0x02
	axSub          = 0x03
	axMul          = 0x04
	axDivSigned    = 0x05
	axDivUnsigned  = 0x06
	axRemSigned    = 0x07
	axRemUnsigned  = 0x08
	axLsh          = 0x09
	axRshSigned    = 0x0a
	axRshUnsigned  = 0x0b
	axTrace        = 0x0c
	axTraceQuick   = 0x0d
	axLogNot       = 0x0e
	axBitAnd       = 0x0f
	axBitOr        = 0x10
	axBitXor       = 0x11
	axBitNot       = 0x12
	axEqual        = 0x13
	axLessSigned   = 0x14
	axLessUnsigned = 0x15
	axExt          = 0x16
	axRef8         = 0x17
	axRef16        = 0x18
	axRef32        = 0x19
	axRef64        = 0x1a
	axIfGoto       = 0x20
	axGoto         = 0x21
	axConst8       = 0x22
	axConst16      = 0x23
	axConst32      = 0x24
	axConst64      = 0x25
	axReg          = 0x26
	axEnd          = 0x27
	axDup          = 0x28
	axPop          = 0x29
	axZeroExt      = 0x2a
	axSwap         = 0x2b
	axGetv         = 0x2c
	axSetv         = 0x2d
	axTracev       = 0x2e
	axTracenz      = 0x2f
	axTrace16      = 0x30
	axPick         = 0x32
	axRot          = 0x33
	axPrintf       = 0x34
)

// axOp describes an operator: its name, the bytes of operand that follow it and
// how many cells it takes from and puts on the stack. Operators without a name
// do not exist or, like the floating-point ones, have no definition in gdb.
type axOp struct {
	name           string
	operand        int
	takes, returns int
}

var axOps = [256]axOp{
	axAdd:          {"add", 0, 2, 1},
	axSub:          {"sub", 0, 2, 1},
	axMul:          {"mul", 0, 2, 1},
	axDivSigned:    {"div_signed", 0, 2, 1},
	axDivUnsigned:  {"div_unsigned", 0, 2, 1},
	axRemSigned:    {"rem_signed", 0, 2, 1},
	axRemUnsigned:  {"rem_unsigned", 0, 2, 1},
	axLsh:          {"lsh", 0, 2, 1},
	axRshSigned:    {"rsh_signed", 0, 2, 1},
	axRshUnsigned:  {"rsh_unsigned", 0, 2, 1},
	axTrace:        {"trace", 0, 2, 0},
	axTraceQuick:   {"trace_quick", 1, 1, 1},
	axLogNot:       {"log_not", 0, 1, 1},
	axBitAnd:       {"bit_and", 0, 2, 1},
	axBitOr:        {"bit_or", 0, 2, 1},
	axBitXor:       {"bit_xor", 0, 2, 1},
	axBitNot:       {"bit_not", 0, 1, 1},
	axEqual:        {"equal", 0, 2, 1},
	axLessSigned:   {"less_signed", 0, 2, 1},
	axLessUnsigned: {"less_unsigned", 0, 2, 1},
	axExt:          {"ext", 1, 1, 1},
	axRef8:         {"ref8", 0, 1, 1},
	axRef16:        {"ref16", 0, 1, 1},
	axRef32:        {"ref32", 0, 1, 1},
	axRef64:        {"ref64", 0, 1, 1},
	axIfGoto:       {"if_goto", 2, 1, 0},
	axGoto:         {"goto", 2, 0, 0},
	axConst8:       {"const8", 1, 0, 1},
	axConst16:      {"const16", 2, 0, 1},
	axConst32:      {"const32", 4, 0, 1},
	axConst64:      {"const64", 8, 0, 1},
	axReg:          {"reg", 2, 0, 1},
	axEnd:          {"end", 0, 0, 0},
	axDup:          {"dup", 0, 1, 2},
	axPop:          {"pop", 0, 1, 0},
	axZeroExt:      {"zero_ext", 1, 1, 1},
	axSwap:         {"swap", 0, 2, 2},
	axGetv:         {"getv", 2, 0, 1},
	axSetv:         {"setv", 2, 1, 1},
	axTracev:       {"tracev", 2, 0, 0},
	axTracenz:      {"tracenz", 0, 2, 0},
	axTrace16:      {"trace16", 2, 1, 1},
	axPick:         {"pick", 1, 0, 1},
	axRot:          {"rot", 0, 3, 3},
	axPrintf:       {"printf", 3, 2, 0},
}

// axError makes an error about the operator at pc.
func axError(pc int, what string) error { return fmt.Errorf("%w: offset %d: %s", ErrAgent, pc, what) }

// axNext returns the operator at pc, its operand and where the next one is.
func axNext(code []byte, pc int) (op *axOp, arg uint64, next int, err error) {
	if pc >= len(code) {
		return nil, 0, 0, axError(pc, "runs off the end")
	}
	op = &axOps[code[pc]]
	next = pc + 1 + op.operand
	switch {
	case op.name == "":
		return nil, 0, 0, axError(pc, fmt.Sprintf("no operator 0x%02x", code[pc]))
	case next > len(code):
		return nil, 0, 0, axError(pc, op.name+" is cut off")
	}
	for _, b := range code[pc+1 : next] {
		arg = arg<<8 | uint64(b)
	}
	if code[pc] == axPrintf { // arg is count (1 byte) and length of the format (2 bytes)
		if next += int(arg & 0xffff); next > len(code) {
			return nil, 0, 0, axError(pc, "printf is cut off")
		}
	}
	return op, arg, next, nil
}

// CheckAgent reports whether code is well formed: known operators, operands
// whole, jumps to the beginning of an operator. What depends on values (stack
// depth, loops, memory) is found by EvalAgent. The error wraps ErrAgent and names
// the offset in bytes.
func CheckAgent(code []byte) error {
	if len(code) > MaxAgentLen {
		return axError(0, "too long")
	}
	var starts [MaxAgentLen + 1]bool
	for pc := 0; pc < len(code); {
		_, _, next, err := axNext(code, pc)
		if err != nil {
			return err
		}
		starts[pc] = true
		pc = next
	}
	for pc := 0; pc < len(code); {
		_, arg, next, _ := axNext(code, pc)
		switch code[pc] {
		case axIfGoto, axGoto:
			if arg >= uint64(len(code)) || !starts[arg] {
				return axError(pc, "jump into nowhere")
			}
		}
		pc = next
	}
	return nil
}

// agent is the state of one evaluation.
type agent struct {
	m     api.Machine
	stack [maxAgentStack]uint64
	sp    int
	buf   [8]byte
}

// EvalAgent evaluates code and returns the top of the stack at its end, 0 for
// an empty one. It takes at most MaxAgentSteps operators. Errors wrap
// [ErrAgent], or the error of ReadMemory. Tracing operators collect nothing and
// printf prints nothing; trace state variables do not exist.
func EvalAgent(code []byte, m api.Machine) (uint64, error) {
	if len(code) > MaxAgentLen {
		return 0, axError(0, "too long")
	}
	a := agents.Get().(*agent)
	a.m, a.sp = m, 0
	defer func() {
		a.m = nil
		agents.Put(a)
	}()
	return a.eval(code)
}

// agents keeps evaluation states: one would otherwise be allocated for each
// evaluation, as its buffer goes through an interface.
var agents = sync.Pool{New: func() any { return new(agent) }}

// eval runs code to its end.
func (a *agent) eval(code []byte) (uint64, error) {
	pc := 0
	for range MaxAgentSteps {
		op, arg, next, err := axNext(code, pc)
		if err != nil {
			return 0, err
		}
		if a.sp < op.takes {
			return 0, axError(pc, op.name+": stack underflow")
		}
		if a.sp+op.returns-op.takes > len(a.stack) {
			return 0, axError(pc, op.name+": stack overflow")
		}
		switch code[pc] {
		case axEnd:
			if a.sp == 0 {
				return 0, nil
			}
			return a.stack[a.sp-1], nil
		case axGoto:
			next = int(arg)
		case axIfGoto:
			a.sp--
			if a.stack[a.sp] != 0 {
				next = int(arg)
			}
		default:
			if err := a.execute(code[pc], pc, arg); err != nil {
				return 0, err
			}
		}
		pc = next
	}
	return 0, axError(pc, "too many steps")
}

// execute carries out any operator but the jumps.
// Preconditions: the stack holds what it takes and has room for what it returns.
func (a *agent) execute(op byte, pc int, arg uint64) error {
	switch {
	case op >= axAdd && op <= axRshUnsigned, op >= axBitAnd && op <= axBitXor, op >= axEqual && op <= axLessUnsigned:
		a.sp--
		v, ok := axBinary(op, a.stack[a.sp-1], a.stack[a.sp])
		if !ok {
			return axError(pc, "division by zero")
		}
		a.stack[a.sp-1] = v
		return nil
	case op >= axConst8 && op <= axConst64:
		a.push(arg)
		return nil
	case op >= axRef8 && op <= axRef64:
		return a.ref(pc, 1<<(op-axRef8))
	case op == axReg:
		v, ok := agentRegister(a.m, int(arg))
		if !ok {
			return axError(pc, fmt.Sprintf("register %d is not known", arg))
		}
		a.push(v)
		return nil
	case op == axGetv, op == axSetv:
		return axError(pc, "no trace state variables here")
	}
	return a.shuffle(op, pc, arg)
}

// push puts a value on the stack.
func (a *agent) push(v uint64) {
	a.stack[a.sp] = v
	a.sp++
}

// shuffle carries out the operators that work on the top of the stack.
func (a *agent) shuffle(op byte, pc int, arg uint64) error {
	top := a.stack[:a.sp]
	n := len(top)
	switch op {
	case axLogNot:
		top[n-1] = axBool(top[n-1] == 0)
	case axBitNot:
		top[n-1] = ^top[n-1]
	case axExt, axZeroExt:
		if arg == 0 || arg > 64 {
			return axError(pc, "extension of a wrong number of bits")
		}
		v := top[n-1] << (64 - arg)
		if op == axExt {
			top[n-1] = uint64(int64(v) >> (64 - arg))
		} else {
			top[n-1] = v >> (64 - arg)
		}
	case axDup:
		a.push(top[n-1])
	case axPop:
		a.sp--
	case axSwap:
		top[n-1], top[n-2] = top[n-2], top[n-1]
	case axRot: // a b c becomes c a b
		top[n-1], top[n-2], top[n-3] = top[n-2], top[n-3], top[n-1]
	case axPick:
		if arg >= uint64(n) {
			return axError(pc, "pick: stack underflow")
		}
		a.push(top[n-1-int(arg)])
	case axTrace, axTracenz:
		a.sp -= 2
	case axTraceQuick, axTrace16, axTracev: // collect nothing
	case axPrintf: // function, channel and the arguments
		if n < 2+int(arg>>16) {
			return axError(pc, "printf: stack underflow")
		}
		a.sp -= 2 + int(arg>>16)
	}
	return nil
}

// ref replaces the address on the stack by the n bytes it points to.
func (a *agent) ref(pc, n int) error {
	a.buf = [8]byte{}
	addr := a.stack[a.sp-1]
	if addr+uint64(n-1) < addr {
		return axError(pc, "address wraps around")
	}
	if got, err := a.m.ReadMemory(addr, a.buf[:n]); got < n {
		if err == nil {
			return axError(pc, "memory cannot be read")
		}
		return fmt.Errorf("%w: offset %d: %w", ErrAgent, pc, err)
	}
	a.stack[a.sp-1] = binary.LittleEndian.Uint64(a.buf[:])
	return nil
}

func axBool(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// axBinary computes x op y. It reports false for a division by zero. Shifts by
// 64 and more give 0, or the sign.
func axBinary(op byte, x, y uint64) (uint64, bool) {
	switch op {
	case axAdd:
		return x + y, true
	case axSub:
		return x - y, true
	case axMul:
		return x * y, true
	case axLsh:
		return x << y, true
	case axRshSigned:
		return uint64(int64(x) >> y), true
	case axRshUnsigned:
		return x >> y, true
	case axBitAnd:
		return x & y, true
	case axBitOr:
		return x | y, true
	case axBitXor:
		return x ^ y, true
	case axEqual:
		return axBool(x == y), true
	case axLessSigned:
		return axBool(int64(x) < int64(y)), true
	case axLessUnsigned:
		return axBool(x < y), true
	}
	if y == 0 {
		return 0, false
	}
	switch op {
	case axDivSigned:
		return uint64(int64(x) / int64(y)), true
	case axDivUnsigned:
		return x / y, true
	case axRemSigned:
		return uint64(int64(x) % int64(y)), true
	default: // axRemUnsigned
		return x % y, true
	}
}
