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
	isJump   bool   // a conditional jump
	saves    bool   // XSAVE and the like
	restores bool
	keeps    bool  // it may leave the whole of its destination as it was
	wide     *wide // of AVX-512, where there is a rule
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
	if k.isJump = k.Transfer == x86.Branch && !k.Indirect; k.isJump {
		all.Add(dataflow.FlagsOf(row.Reads))
	}
	switch k.mnemonic {
	case "JRCXZ", "JECXZ", "LOOP", "LOOPE", "LOOPNE":
		all.Add(dataflow.BytesOf(x86.RCX, 0, 8))
	}
	k.saves = strings.HasPrefix(k.mnemonic, "XSAVE") || k.mnemonic == "FXSAVE"
	k.restores = strings.HasPrefix(k.mnemonic, "XRSTOR") || k.mnemonic == "FXRSTOR"
	switch k.mnemonic {
	case "BSF", "BSR", "LAR", "LSL", "CMPXCHG", "SMSW", "STR", "SLDT":
		k.keeps = true
	}
	k.touch = all.Summary()
	k.isPlain = !k.Repeats && !k.Spied && !k.Indirect && !k.saves && !k.restores
	k.findRule(row, e.Read.Parts&x86.PartX87 != 0)
	return k
}

// findRule finds the instruction's rule.
func (k *instruction) findRule(row *x86.Row, isX87 bool) {
	switch isWide := k.Inst.Flags&x86.InstEVEX != 0 || row.File == "opmask"; {
	case isX87:
		k.rule = x87RuleOf(k, row)
	case isWide && !row.Attr("refuse"):
		if k.wide = wideOf(k, row); k.wide != nil {
			k.rule = useWide
		}
	case k.isPlain && !isWide:
		k.rule = ruleOf(k, row)
	}
}
