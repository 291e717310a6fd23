package dataflow

import (
	"strings"

	"vplay/replay/x86"
)

// What an instruction does to the flow of control, and what decides where it goes.

// Class says what an instruction does to the flow of control.
type Class uint8

// The classes.
const (
	IsPlain  Class = iota
	IsBranch       // conditional, or a jump through a register or memory
	IsCall
	IsReturn
)

// control finds what the instruction does to the flow of control, and what it is decided by.
func (c *compiler) control() {
	k, row := c.k, c.row
	if c.in.Flags&x86.InstEnd == 0 {
		return
	}
	isIndirect := len(row.Operands) == 1 && row.Operands[0] == "rmv"
	switch name := row.Mnemonic; {
	case name == "RET":
		k.Class = IsReturn
	case name == "CALL":
		k.Class = IsCall
	case name == "JMP" && isIndirect, name != "JMP" && name[0] == 'J', strings.HasPrefix(name, "LOOP"):
		k.Class = IsBranch
	}
	k.Indirect = isIndirect && (k.Class == IsCall || k.Class == IsBranch)
	switch {
	case k.Indirect:
		address := k.Address
		k.Decides, k.Address = Flow{Store: -1}, RegSet{}
		for _, o := range c.in.Operands() {
			if o.Name == "rmv" {
				c.operand(&o, &k.Decides)
			}
		}
		k.Decides.Src.Add(k.Address)
		k.Address = address
	case k.Class == IsBranch && len(k.Flows) > 0:
		k.Decides = k.Flows[0]
	}
}
