package dataflow

import (
	"strings"

	"vplay/replay/x86"
)

// Argument is an explicit operand of an instruction, in the manual's order, for those who know
// what the instruction computes.
type Argument struct {
	Place
	Size          uint8 // bytes
	IsOther       bool  // neither memory nor a general or vector register: Place has no meaning
	IsImmediate   bool
	Reads, Writes bool
}

// Arguments returns the explicit operands of in. The memory operand is of index 0 in Reg.
func Arguments(in *x86.Inst) (out []Argument) {
	row := &x86.Rows()[in.Row]
	c := compiler{k: &Instruction{Inst: *in}, in: in, row: row, mnemonic: strings.TrimPrefix(row.Mnemonic, "V")}
	ops := in.Operands()
	for i := range row.Operands {
		if i >= len(ops) {
			break
		}
		o := &ops[i]
		a := Argument{Reads: o.Dir&x86.DirRead != 0, Writes: o.Dir&x86.DirWrite != 0}
		p, ok := c.place(o, 0)
		switch {
		case !ok:
			a.IsOther = true
			a.IsImmediate = strings.HasPrefix(o.Name, "imm") || o.Name == "one"
		case p.Kind == InMemory:
			a.Size = c.size(o.Name)
		case p.Kind == InGeneral:
			a.Size = uint8(c.width(o))
		case o.Name[0] == 'y' && !c.isHalf():
			a.Size = 32
		default:
			a.Size = 16
			if n := c.size(o.Name); n > 0 && n < 16 {
				a.Size = n
			}
		}
		a.Place = p
		out = append(out, a)
	}
	return out
}

// Mnemonic returns the name of in without the V of VEX and EVEX forms, and whether it has one.
func Mnemonic(in *x86.Inst) (name string, isVEX bool) {
	name = x86.Rows()[in.Row].Mnemonic
	if isVEX = in.Flags&(x86.InstVEX|x86.InstEVEX) != 0; isVEX {
		name = strings.TrimPrefix(name, "V")
	}
	return name, isVEX
}
