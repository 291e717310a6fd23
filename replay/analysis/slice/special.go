package slice

import (
	"strings"

	"vplay/replay/x86"
)

// Instructions of which more is known than that everything written depends on everything
// read: copies, the stack, and string instructions. They are most of what a value goes
// through on its way.

// copy makes f a copy where the instruction is one: then a byte that is needed makes only
// the byte needed that it was.
func (c *compiler) copy(f *flow) {
	n, extends := 0, false
	ops := c.in.Operands()
	if len(c.row.Operands) != 2 || len(ops) < 2 {
		return
	}
	switch c.mnemonic {
	case "MOV", "MOVNTI":
		if strings.Contains(strings.Join(c.row.Operands, " "), "imm") || f.src[miscWord] != 0 || f.dst[miscWord] != 0 {
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
			f.src.remove(lanesOf(c.in.Reg&31, 0, 2))
		}
	default:
		return
	}
	if c.in.Flags&x86.InstEVEX != 0 || n == 0 {
		return
	}
	to, ok1 := c.place(&ops[0], f.store)
	load := int8(-1)
	if len(f.loads) > 0 {
		load = f.loads[0]
	}
	from, ok2 := c.place(&ops[1], load)
	if ok1 && ok2 {
		f.copies, f.extends, f.n, f.to, f.from = true, extends, uint8(n), to, from
	}
}

// place returns where an operand is: memory operand i, if that is not below 0, or a
// register.
func (c *compiler) place(o *x86.Operand, i int8) (p place, ok bool) {
	switch {
	case o.Uses.Parts&x86.PartMemory != 0:
		return place{kind: inMemory, reg: uint8(i)}, i >= 0
	case o.Uses.R != 0:
		return c.general(o), true
	}
	for n := range uint8(32) {
		if o.Uses.V == 1<<n {
			return place{kind: inVector, reg: n}, true
		}
	}
	return p, false
}

// general returns where a general register operand begins.
func (c *compiler) general(o *x86.Operand) place {
	p := place{kind: inGeneral}
	for r := range uint8(16) {
		if o.Uses.R>>r&1 != 0 {
			p.reg = r
		}
	}
	if c.isHigh(o.Name) {
		p.off = 1
	}
	return p
}

// stack makes the flows of instructions that push and pop.
func (c *compiler) stack() bool {
	k, size := c.k, c.in.Size
	f := flow{store: -1, n: size}
	switch c.mnemonic {
	case "PUSH", "PUSHF":
		if len(c.row.Operands) > 0 && c.row.Operands[0] == "rmv" && c.in.Flags&x86.InstMem != 0 {
			c.operandsOnly(&f)
			if k.spied {
				k.flows = []flow{f}
				return true
			}
			f.copies, f.from = true, place{kind: inMemory, reg: 0}
		} else {
			c.operandsOnly(&f)
			if f.src[miscWord] == 0 && len(c.row.Operands) > 0 && (c.row.Operands[0] == "rv" || c.row.Operands[0] == "rmv") {
				ops := c.in.Operands()
				f.copies, f.from = true, c.general(&ops[0])
			}
		}
		f.store = int8(len(k.ops))
		f.to = place{kind: inMemory, reg: uint8(f.store)}
		k.ops = append(k.ops, operand{byPush, size})
	case "CALL":
		f.store = 0
		k.ops = []operand{{byPush, 8}}
		f.src = regSet{}
	case "POP":
		if c.in.Flags&x86.InstMem != 0 {
			k.spied = true
		}
		c.operandsOnly(&f)
		if c.row.Operands[0] == "rv" {
			ops := c.in.Operands()
			f.copies, f.to = true, c.general(&ops[0])
		}
		f.loads = []int8{int8(len(k.ops))}
		f.from = place{kind: inMemory, reg: uint8(len(k.ops))}
		k.ops = append(k.ops, operand{byPop, size})
	case "POPF":
		c.operandsOnly(&f)
		f.loads = []int8{0}
		k.ops = []operand{{byPop, size}}
	case "LEAVE":
		f = flow{store: -1, n: 8, copies: true, to: place{kind: inGeneral, reg: x86.RBP}, from: place{kind: inMemory}, loads: []int8{0}, dst: bytesOf(x86.RBP, 0, 8)}
		k.ops = []operand{{byRBP, 8}}
		k.address = bytesOf(x86.RBP, 0, 8)
	case "RET": // it decides where execution goes, which no data depends on
		k.ops = []operand{{byPop, 8}}
		return true
	case "JMP":
		return true
	default:
		return false
	}
	k.flows = []flow{f}
	return true
}

// operandsOnly adds all operands of the instruction but the stack.
func (c *compiler) operandsOnly(f *flow) {
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
	k.repeats = true
	k.ops = []operand{{bySource, size}, {byTarget, size}}
	df, rax := flagsOf(x86.FlagDF), bytesOf(x86.RAX, 0, int(size))
	var pointers regSet
	for _, o := range c.in.Operands() {
		if o.Uses.R != 0 && o.Uses.R&(1<<x86.RAX) == 0 {
			pointers.add(generals(o.Uses.R))
		}
		k.address.add(segments(o.Address.Parts))
	}
	k.address.add(pointers)
	k.address.add(df)
	steps := flow{store: -1, dst: pointers, src: pointers}
	steps.src.add(df)
	data := flow{store: -1}
	switch strings.TrimRight(c.mnemonic, "BWDQ") {
	case "MOVS":
		data.store, data.loads, data.copies = 1, []int8{0}, true
	case "STOS":
		data.store, data.src = 1, rax
	case "LODS":
		data.loads, data.dst, data.src = []int8{0}, rax, rax
		if size == 4 {
			data.dst = bytesOf(x86.RAX, 0, 8)
		}
	case "CMPS", "SCAS":
		// Where the comparison ends depends on what is compared.
		all := flagsOf(x86.FlagCF | x86.FlagPF | x86.FlagAF | x86.FlagZF | x86.FlagSF | x86.FlagOF)
		steps.dst.add(all)
		steps.src.add(all)
		steps.loads = []int8{0, 1}
		if c.mnemonic[0] == 'S' {
			steps.loads = []int8{1}
			steps.src.add(rax)
		}
		k.flows = []flow{steps}
		return true
	}
	k.flows = []flow{data, steps}
	return true
}
