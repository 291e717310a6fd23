// Package agentexpr is agent expressions: the bytecode in which gdb sends conditions that the target checks itself
// (gdb manual, appendix "The GDB Agent Expression Mechanism"; opcode numbers from gdbsupport/ax.def). It is a
// stack machine with 64-bit cells, constants big-endian, memory in the target's byte order, here little-endian.
//
// A condition that is true once in ten million hits then costs ten million short evaluations in the engine instead of as
// many round trips. Package x86/jit makes code of them. Eval is what they mean; it allocates nothing.
package agentexpr

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Limits on agent expressions.
const (
	MaxLen   = 1024  // bytes of code
	maxSteps = 10000 // operators executed
	maxStack = 100   // cells
)

// Err is wrapped by every error of Parse and Eval that the expression is to blame for.
var Err = errors.New("agent expression")

// RIP is the number of the program counter. Registers have the numbers that gdb gives them in a target description of
// amd64 (features/i386/64bit-core.xml).
const RIP = 16

// GPR maps the numbers below RIP to those that instructions have for these registers (SDM vol. 2, table 2-2).
var GPR = [RIP]uint8{0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15}

// Opcodes.
const (
	Add          = 0x02
	Sub          = 0x03
	Mul          = 0x04
	DivSigned    = 0x05
	DivUnsigned  = 0x06
	RemSigned    = 0x07
	RemUnsigned  = 0x08
	Lsh          = 0x09
	RshSigned    = 0x0a
	RshUnsigned  = 0x0b
	Trace        = 0x0c
	TraceQuick   = 0x0d
	LogNot       = 0x0e
	BitAnd       = 0x0f
	BitOr        = 0x10
	BitXor       = 0x11
	BitNot       = 0x12
	Equal        = 0x13
	LessSigned   = 0x14
	LessUnsigned = 0x15
	Ext          = 0x16
	Ref8         = 0x17
	Ref16        = 0x18
	Ref32        = 0x19
	Ref64        = 0x1a
	IfGoto       = 0x20
	Goto         = 0x21
	Const8       = 0x22
	Const16      = 0x23
	Const32      = 0x24
	Const64      = 0x25
	Reg          = 0x26
	End          = 0x27
	Dup          = 0x28
	Pop          = 0x29
	ZeroExt      = 0x2a
	Swap         = 0x2b
	Getv         = 0x2c
	Setv         = 0x2d
	Tracev       = 0x2e
	Tracenz      = 0x2f
	Trace16      = 0x30
	Pick         = 0x32
	Rot          = 0x33
	Printf       = 0x34
)

// Operator describes an operator: its name, the bytes of operand that follow it and
// how many cells it takes from and puts on the stack. Operators without a name
// do not exist or, like the floating-point ones, have no definition in gdb.
type Operator struct {
	Name           string
	Operand        int
	Takes, Returns int
}

var ops = [256]Operator{
	Add:          {"add", 0, 2, 1},
	Sub:          {"sub", 0, 2, 1},
	Mul:          {"mul", 0, 2, 1},
	DivSigned:    {"div_signed", 0, 2, 1},
	DivUnsigned:  {"div_unsigned", 0, 2, 1},
	RemSigned:    {"rem_signed", 0, 2, 1},
	RemUnsigned:  {"rem_unsigned", 0, 2, 1},
	Lsh:          {"lsh", 0, 2, 1},
	RshSigned:    {"rsh_signed", 0, 2, 1},
	RshUnsigned:  {"rsh_unsigned", 0, 2, 1},
	Trace:        {"trace", 0, 2, 0},
	TraceQuick:   {"trace_quick", 1, 1, 1},
	LogNot:       {"log_not", 0, 1, 1},
	BitAnd:       {"bit_and", 0, 2, 1},
	BitOr:        {"bit_or", 0, 2, 1},
	BitXor:       {"bit_xor", 0, 2, 1},
	BitNot:       {"bit_not", 0, 1, 1},
	Equal:        {"equal", 0, 2, 1},
	LessSigned:   {"less_signed", 0, 2, 1},
	LessUnsigned: {"less_unsigned", 0, 2, 1},
	Ext:          {"ext", 1, 1, 1},
	Ref8:         {"ref8", 0, 1, 1},
	Ref16:        {"ref16", 0, 1, 1},
	Ref32:        {"ref32", 0, 1, 1},
	Ref64:        {"ref64", 0, 1, 1},
	IfGoto:       {"if_goto", 2, 1, 0},
	Goto:         {"goto", 2, 0, 0},
	Const8:       {"const8", 1, 0, 1},
	Const16:      {"const16", 2, 0, 1},
	Const32:      {"const32", 4, 0, 1},
	Const64:      {"const64", 8, 0, 1},
	Reg:          {"reg", 2, 0, 1},
	End:          {"end", 0, 0, 0},
	Dup:          {"dup", 0, 1, 2},
	Pop:          {"pop", 0, 1, 0},
	ZeroExt:      {"zero_ext", 1, 1, 1},
	Swap:         {"swap", 0, 2, 2},
	Getv:         {"getv", 2, 0, 1},
	Setv:         {"setv", 2, 1, 1},
	Tracev:       {"tracev", 2, 0, 0},
	Tracenz:      {"tracenz", 0, 2, 0},
	Trace16:      {"trace16", 2, 1, 1},
	Pick:         {"pick", 1, 0, 1},
	Rot:          {"rot", 0, 3, 3},
	Printf:       {"printf", 3, 2, 0},
}

// errorAt makes an error about the operator at pc.
func errorAt(pc int, what string) error { return fmt.Errorf("%w: offset %d: %s", Err, pc, what) }

// Next returns the operator at pc, its operand and where the next one is.
func Next(code []byte, pc int) (op *Operator, arg uint64, next int, err error) {
	if pc >= len(code) {
		return nil, 0, 0, errorAt(pc, "runs off the end")
	}
	op = &ops[code[pc]]
	next = pc + 1 + op.Operand
	switch {
	case op.Name == "":
		return nil, 0, 0, errorAt(pc, fmt.Sprintf("no operator 0x%02x", code[pc]))
	case next > len(code):
		return nil, 0, 0, errorAt(pc, op.Name+" is cut off")
	}
	switch b := code[pc+1 : next]; len(b) {
	case 0:
	case 1:
		arg = uint64(b[0])
	case 2:
		arg = uint64(binary.BigEndian.Uint16(b))
	case 3:
		arg = uint64(b[0])<<16 | uint64(binary.BigEndian.Uint16(b[1:]))
	case 4:
		arg = uint64(binary.BigEndian.Uint32(b))
	default:
		arg = binary.BigEndian.Uint64(b)
	}
	if code[pc] == Printf { // arg is count (1 byte) and length of the format (2 bytes)
		if next += int(arg & 0xffff); next > len(code) {
			return nil, 0, 0, errorAt(pc, "printf is cut off")
		}
	}
	return op, arg, next, nil
}
