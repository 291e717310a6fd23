package taint

import (
	"strings"

	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// instruction is what is known of an instruction at an address.
type instruction struct {
	dataflow.Instruction
	mnemonic string // without the V of VEX forms
	isVEX    bool
	args     []dataflow.Argument
	rule     rule   // nil: what is written is made of all that is read
	touch    uint64 // summary of all registers that it reads and writes
	isPlain  bool   // all that it accesses are Ops
	isCall   bool   // a call or a return
	isJump   bool   // a conditional jump
	isTarget bool   // an indirect jump or call
	saves    bool   // XSAVE and the like
	restores bool
	keeps    bool // it may leave the whole of its destination as it was
}

func compile(pc uint64, in *x86.Inst, frame bool) *instruction {
	k := &instruction{Instruction: *dataflow.Compile(pc, in, frame), args: dataflow.Arguments(in)}
	k.mnemonic, k.isVEX = dataflow.Mnemonic(in)
	row := &x86.Rows()[in.Row]
	e := in.Effects()
	var all dataflow.RegSet
	for i := range k.Flows {
		all.Add(k.Flows[i].Dst)
		all.Add(k.Flows[i].Src)
	}
	all.Add(k.Address)
	switch k.mnemonic {
	case "CALL", "JMP":
		k.isCall = k.mnemonic == "CALL"
		k.isTarget = in.Flags&x86.InstMem != 0 || len(row.Operands) > 0 && row.Operands[0] == "rmv"
	case "RET":
		k.isCall = true
	case "JRCXZ", "JECXZ", "LOOP", "LOOPE", "LOOPNE":
		k.isJump = true
		all.Add(dataflow.BytesOf(x86.RCX, 0, 8))
	default:
		k.isJump = row.Mnemonic[0] == 'J'
	}
	if k.isJump {
		all.Add(dataflow.FlagsOf(row.Reads))
	}
	k.saves = strings.HasPrefix(k.mnemonic, "XSAVE") || k.mnemonic == "FXSAVE"
	k.restores = strings.HasPrefix(k.mnemonic, "XRSTOR") || k.mnemonic == "FXRSTOR"
	switch k.mnemonic {
	case "BSF", "BSR", "LAR", "LSL", "CMPXCHG", "SMSW", "STR", "SLDT":
		k.keeps = true
	}
	k.touch = all.Summary()
	k.isPlain = !k.Repeats && !k.Spied && !k.isTarget && !k.saves && !k.restores
	if k.isPlain && e.Read.Parts&x86.PartX87 == 0 {
		k.rule = ruleOf(k, row)
	}
	return k
}
