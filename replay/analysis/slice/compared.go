package slice

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"vplay/replay/x86"
)

// What a branch of a slice was decided by, for those who show it.

// IsDecision reports whether v may go one way or another: a conditional branch, or a jump or call to where a register or memory says.
func (v *Vertex) IsDecision() bool {
	kind, isIndirect := v.Inst.Transfer()
	return v.Kind == Instruction && (kind == x86.Branch || kind == x86.Call && isIndirect)
}

// DecidedBy returns the edge to the instruction that made what v was decided by the last time; nil where that is in the slice as a source, or not at all.
func (v *Vertex) DecidedBy() (found *Edge) {
	for i := range v.Needs {
		e := &v.Needs[i]
		if e.Role == ForValue && e.To.Kind == Instruction && (found == nil || e.Newest.Compare(found.Newest) > 0) {
			found = e
		}
	}
	return found
}

// Compared writes what the instruction in, at which c stands, compares for the conditional branch by: two numbers as "7 with 5", or
// "7 & 1" where bits were tested. It returns "" for instructions that do something else. Numbers are signed where the branch takes them so. load
// copies memory and returns how many bytes are known.
func Compared(c *x86.CPU, in, by *x86.Inst, load func(a uint64, b []byte) int) string {
	row := &x86.Rows()[in.Row]
	name := strings.TrimPrefix(row.Mnemonic, "V")
	ops := in.Operands()
	if kind, isIndirect := by.Transfer(); kind != x86.Branch || isIndirect || len(row.Operands) < 2 || len(ops) < 2 {
		return ""
	}
	var values [2]uint64
	for i := range values {
		v, ok := operandValue(c, in, row.Operands[i], &ops[i], load)
		if !ok {
			return ""
		}
		values[i] = v
	}
	switch name {
	case "UCOMISD", "COMISD":
		return fmt.Sprintf("%v with %v", math.Float64frombits(values[0]), math.Float64frombits(values[1]))
	case "UCOMISS", "COMISS":
		return fmt.Sprintf("%v with %v", math.Float32frombits(uint32(values[0])), math.Float32frombits(uint32(values[1])))
	}
	size := 8 * operandSize(in, row.Operands[0])
	shown := func(v uint64) string { return number(v, size, isSigned(by)) }
	switch {
	case name == "CMP" || name == "SUB":
		return shown(values[0]) + " with " + shown(values[1])
	case name == "TEST" && values[0] == values[1] && ops[0].Uses == ops[1].Uses:
		return shown(values[0]) + " with 0"
	case name == "TEST" || name == "AND":
		return shown(values[0]) + " & " + number(values[1], size, false)
	}
	return ""
}

// operandSize returns how many bytes an operand has.
func operandSize(in *x86.Inst, name string) int {
	switch {
	case name == "rm8" || name == "r8" || name == "al":
		return 1
	case strings.HasPrefix(name, "xmm"):
		if x86.Rows()[in.Row].Mnemonic[len(x86.Rows()[in.Row].Mnemonic)-1] == 'S' {
			return 4
		}
		return 8
	}
	return int(in.Size)
}

// operandValue returns the value of an operand that is a register, in memory, or immediate.
func operandValue(c *x86.CPU, in *x86.Inst, name string, o *x86.Operand, load func(a uint64, b []byte) int) (uint64, bool) {
	size := operandSize(in, name)
	var v uint64
	switch {
	case strings.HasPrefix(name, "imm"):
		return in.Imm, true
	case o.Uses.Parts&x86.PartMemory != 0:
		var b [8]byte
		if size < 1 || size > 8 || load(c.Address(in), b[:size]) < size {
			return 0, false
		}
		v = binary.LittleEndian.Uint64(b[:])
	case o.Uses.V != 0:
		v = c.V[bits.TrailingZeros32(o.Uses.V)][0]
	case o.Uses.R != 0:
		r := bits.TrailingZeros16(o.Uses.R)
		v = c.R[r]
		field := in.RM
		if name == "r8" {
			field = in.Reg
		}
		if size == 1 && name != "al" && int(field&31) == r+4 { // ah and its like
			v >>= 8
		}
	default:
		return 0, false
	}
	if size < 8 {
		v &= 1<<(8*size) - 1
	}
	return v, true
}

// isSigned reports whether a conditional jump takes what was compared for signed numbers, or does not care (SDM vol. 2, appendix B.1.4.7).
func isSigned(by *x86.Inst) bool {
	cc := by.Opc & 15
	return cc < 2 || cc > 3 && cc < 6 || cc > 7
}

// number writes a number of some bits: what looks like an address in hexadecimal.
func number(v uint64, size int, signed bool) string {
	if size < 64 {
		v &= 1<<size - 1
	}
	n := int64(v) << (64 - size) >> (64 - size)
	switch {
	case signed && n > -1<<31 && n < 1<<31:
		return strconv.FormatInt(n, 10)
	case v < 1<<31:
		return strconv.FormatUint(v, 10)
	}
	return fmt.Sprintf("%#x", v)
}
