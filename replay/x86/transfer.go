package x86

import (
	"strings"
	"sync"
)

// Control transfer instructions (SDM vol. 1, 7.3.8): what an instruction does to the flow of control, said once for all who follow it.

// Transfer says how an instruction goes on elsewhere than behind itself.
type Transfer uint8

// The kinds of transfers. System calls and exceptions are none of them: what they do is an event.
const (
	NoTransfer Transfer = iota
	Jump                // unconditional, to one place
	Branch              // conditional, or a jump to where a register or memory says
	Call
	Return
)

// transfer is what a row's instructions are.
type transfer struct {
	kind       Transfer
	isIndirect bool
}

// transfers are those of all rows.
var transfers = sync.OnceValue(func() []transfer {
	out := make([]transfer, len(Rows()))
	for i := range out {
		row := &Rows()[i]
		isIndirect := len(row.Operands) == 1 && row.Operands[0] == "rmv"
		switch name := row.Mnemonic; {
		case name == "RET":
			out[i].kind = Return
		case name == "CALL":
			out[i] = transfer{Call, isIndirect}
		case name == "JMP" && !isIndirect:
			out[i].kind = Jump
		case strings.HasPrefix(name, "J"), strings.HasPrefix(name, "LOOP"):
			out[i] = transfer{Branch, isIndirect}
		}
	}
	return out
})

// Transfer returns what in does to the flow of control. isIndirect says of a branch or a call that a register or memory
// says where it goes.
func (in *Inst) Transfer() (kind Transfer, isIndirect bool) {
	if in.Flags&InstEnd == 0 {
		return NoTransfer, false
	}
	t := transfers()[in.Row]
	return t.kind, t.isIndirect
}
