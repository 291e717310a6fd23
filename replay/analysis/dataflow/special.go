package dataflow

import (
	"strings"

	"vplay/replay/x86"
)

// Instructions of which more is known than that everything written depends on everything
// read: copies, the stack, and string instructions. They are most of what a value goes
// through on its way.

// copy makes f a copy where the instruction is one: then a byte that is needed makes only
// the byte needed that it was.
func (c *compiler) copy(f *Flow) {
	n, extends := 0, false
	ops := c.in.Operands()
	if len(c.row.Operands) != 2 || len(ops) < 2 {
		return
	}
	switch c.mnemonic {
	case "MOV", "MOVNTI":
		if strings.Contains(strings.Join(c.row.Operands, " "), "imm") || f.Src[MiscWord] != 0 || f.Dst[MiscWord] != 0 {
			return
		}
		n = int(c.in.Size)
	case "MOVZX", "MOVSX", "MOVSXD":
		n, extends = int(c.size(c.row.Operands[1])), c.mnemonic != "MOVZX"
	case "MOVUPS", "MOVUPD", "MOVAPS", "MOVAPD", "MOVDQA", "MOVDQU", "LDDQU", "MOVNTPS", "MOVNTPD", "MOVNTDQ", "MOVNTDQA":
		if n = 16; c.row.Operands[0][0] == 'y' || strings.HasSuffix(c.row.Operands[0], "256") || strings.HasSuffix(c.row.Operands[1], "256") {
			n = 32
		}
		if c.isHalf() {
			n = 16
		}
	case "MOVQ", "MOVD":
		if n = 8; c.in.Flags&x86.InstW == 0 && c.mnemonic == "MOVD" {
			n = 4
		}
	case "MOVSS", "MOVSD":
		if c.in.Flags&x86.InstMem == 0 {
			return
		}
		if n = 8; c.mnemonic == "MOVSS" {
			n = 4
		}
		if c.row.Operands[0] == "xmm" { // a load clears the rest
			f.Src.Remove(LanesOf(c.in.Reg&31, 0, 2))
		}
	default:
		return
	}
	if c.in.Flags&x86.InstEVEX != 0 || n == 0 {
		return
	}
	to, ok1 := c.place(&ops[0], f.Store)
	load := int8(-1)
	if len(f.Loads) > 0 {
		load = f.Loads[0]
	}
	from, ok2 := c.place(&ops[1], load)
	if ok1 && ok2 {
		f.Copies, f.Extends, f.N, f.To, f.From = true, extends, uint8(n), to, from
	}
}

// place returns where an operand is: memory operand i, if that is not below 0, or a
// register.
func (c *compiler) place(o *x86.Operand, i int8) (p Place, ok bool) {
	switch {
	case o.Uses.Parts&x86.PartMemory != 0:
		return Place{Kind: InMemory, Reg: uint8(i)}, i >= 0
	case o.Uses.R != 0:
		return c.general(o), true
	}
	for n := range uint8(32) {
		if o.Uses.V == 1<<n {
			return Place{Kind: InVector, Reg: n}, true
		}
	}
	return p, false
}

// general returns where a general register operand begins.
func (c *compiler) general(o *x86.Operand) Place {
	p := Place{Kind: InGeneral}
	for r := range uint8(16) {
		if o.Uses.R>>r&1 != 0 {
			p.Reg = r
		}
	}
	if c.isHigh(o.Name) {
		p.Off = 1
	}
	return p
}

// stack makes the flows of instructions that push and pop.
func (c *compiler) stack() bool {
	k, size := c.k, c.in.Size
	f := Flow{Store: -1, N: size}
	switch c.mnemonic {
	case "PUSH", "PUSHF":
		if len(c.row.Operands) > 0 && c.row.Operands[0] == "rmv" && c.in.Flags&x86.InstMem != 0 {
			c.operandsOnly(&f)
			if k.Spied {
				k.Flows = []Flow{f}
				return true
			}
			f.Copies, f.From = true, Place{Kind: InMemory, Reg: 0}
		} else {
			c.operandsOnly(&f)
			if f.Src[MiscWord] == 0 && len(c.row.Operands) > 0 && (c.row.Operands[0] == "rv" || c.row.Operands[0] == "rmv") {
				ops := c.in.Operands()
				f.Copies, f.From = true, c.general(&ops[0])
			}
		}
		f.Store = int8(len(k.Ops))
		f.To = Place{Kind: InMemory, Reg: uint8(f.Store)}
		k.Ops = append(k.Ops, Operand{ByPush, size})
	case "CALL":
		f.Store = 0
		k.Ops = []Operand{{ByPush, 8}}
		f.Src = RegSet{}
	case "POP":
		if c.in.Flags&x86.InstMem != 0 {
			k.Spied = true
		}
		c.operandsOnly(&f)
		if c.row.Operands[0] == "rv" {
			ops := c.in.Operands()
			f.Copies, f.To = true, c.general(&ops[0])
		}
		f.Loads = []int8{int8(len(k.Ops))}
		f.From = Place{Kind: InMemory, Reg: uint8(len(k.Ops))}
		k.Ops = append(k.Ops, Operand{ByPop, size})
	case "POPF":
		c.operandsOnly(&f)
		f.Loads = []int8{0}
		k.Ops = []Operand{{ByPop, size}}
	case "LEAVE":
		f = Flow{Store: -1, N: 8, Copies: true, To: Place{Kind: InGeneral, Reg: x86.RBP}, From: Place{Kind: InMemory}, Loads: []int8{0}, Dst: BytesOf(x86.RBP, 0, 8)}
		k.Ops = []Operand{{ByRBP, 8}}
		k.Address = BytesOf(x86.RBP, 0, 8)
	case "RET": // it decides where execution goes, which no data depends on
		k.Ops = []Operand{{ByPop, 8}}
		return true
	case "JMP":
		return true
	default:
		return false
	}
	k.Flows = []Flow{f}
	return true
}

// operandsOnly adds all operands of the instruction but the stack.
func (c *compiler) operandsOnly(f *Flow) {
	for _, o := range c.in.Operands() {
		if o.Name != "mem" {
			c.operand(&o, f)
		}
	}
}

// string makes the flows of string instructions: the data, and how the pointers go on.
func (c *compiler) string() bool {
	if !c.row.Attr("rep") || c.in.Flags&x86.InstAddr32 != 0 || c.in.Seg != x86.NoSeg {
		return false // others are watched
	}
	k, size := c.k, c.in.Size
	if strings.HasSuffix(c.row.Operands[0], "8") {
		size = 1
	}
	k.Repeats = true
	k.Ops = []Operand{{BySource, size}, {ByTarget, size}}
	df, rax := FlagsOf(x86.FlagDF), BytesOf(x86.RAX, 0, int(size))
	var pointers RegSet
	for _, o := range c.in.Operands() {
		if o.Uses.R != 0 && o.Uses.R&(1<<x86.RAX) == 0 {
			pointers.Add(generals(o.Uses.R))
		}
		k.Address.Add(Segments(o.Address.Parts))
	}
	k.Address.Add(pointers)
	k.Address.Add(df)
	steps := Flow{Store: -1, Dst: pointers, Src: pointers}
	steps.Src.Add(df)
	data := Flow{Store: -1}
	switch strings.TrimRight(c.mnemonic, "BWDQ") {
	case "MOVS":
		data.Store, data.Loads, data.Copies = 1, []int8{0}, true
	case "STOS":
		data.Store, data.Src = 1, rax
	case "LODS":
		data.Loads, data.Dst, data.Src = []int8{0}, rax, rax
		if size == 4 {
			data.Dst = BytesOf(x86.RAX, 0, 8)
		}
	case "CMPS", "SCAS":
		// Where the comparison ends depends on what is compared.
		all := FlagsOf(x86.FlagCF | x86.FlagPF | x86.FlagAF | x86.FlagZF | x86.FlagSF | x86.FlagOF)
		steps.Dst.Add(all)
		steps.Src.Add(all)
		steps.Loads = []int8{0, 1}
		if c.mnemonic[0] == 'S' {
			steps.Loads = []int8{1}
			steps.Src.Add(rax)
		}
		k.Flows = []Flow{steps}
		return true
	}
	k.Flows = []Flow{data, steps}
	return true
}
