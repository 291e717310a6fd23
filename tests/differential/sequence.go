package differential

import (
	"slices"

	"vplay/replay/x86"
)

// Sequences test what single instructions cannot: blocks, lazy flags that one
// instruction leaves and another reads, fused pairs, dead flags dropped.

// maxSequence is how many instructions a sequence has at most.
const maxSequence = 10

// sequential says whether a row may stand in a sequence: it goes on to the
// next instruction, and its operands need no shaping for it to mean something.
func sequential(row *x86.Row) bool {
	switch row.Mnemonic {
	case "POPF", "POPFQ", "STD", "ENTER", "LEAVE", "XLAT", "XLATB", "MASKMOVQ", "MASKMOVDQU", "XGETBV",
		"LSL": // of one selector, the number of the CPU
		return false
	}
	if slices.Contains(row.Operands, "sreg") || approximate[row.Mnemonic] {
		return false
	}
	return WhyNotRun(row) == "" && !row.Attr("vsib") && !row.Attr("end") && !row.Attr("stop") && !row.Attr("rep") && !row.Attr("priv") &&
		row.File != "xsave" && !usesStringMemory(row) && row.Encoding.Imm != x86.ImmMoffs
}

// SequenceRows returns the rows that may stand in a sequence, and those that
// read arithmetic flags (branches too), which end one.
func SequenceRows() (body, readers []int) {
	for i := range x86.Rows() {
		row := &x86.Rows()[i]
		if i == 0 {
			continue
		}
		if sequential(row) {
			body = append(body, i)
			if row.File == "int" { // these are what lazy flags are about
				body = append(body, i, i, i)
			}
		}
		if row.Reads != 0 && WhyNotRun(row) == "" && row.Mnemonic != "INTO" {
			readers = append(readers, i)
		}
	}
	return body, readers
}

// Sequence makes a case of several instructions.
func (g *Generator) Sequence(body, readers []int) *Case {
	rows := x86.Rows()
	k := &Case{Row: -1}
	last := readers[g.r.IntN(len(readers))]
	g.registers(k, &rows[last], nil, laneInt)
	k.Offset = uint32(0x800 + g.r.IntN(64))
	if g.one(8) {
		k.Offset = uint32(pageSize - 1 - g.r.IntN(24))
	}
	k.In.RIP = CodeBase + uint64(k.Offset)
	start := k.Offset
	for n := 1 + g.r.IntN(maxSequence-1); n > 0; n-- {
		row := body[g.r.IntN(len(body))]
		if g.one(4) {
			row = readers[g.r.IntN(len(readers))]
			if !sequential(&rows[row]) {
				continue
			}
		}
		if !g.append(k, row) {
			break
		}
	}
	g.append(k, last)
	k.Offset = start
	k.Steps = len(k.Lens)
	return k
}

// append adds an instruction of the row at k.Offset, which it advances.
// Memory operands are RIP-relative or absolute: the only ones that stay where
// they are aimed while registers change.
func (g *Generator) append(k *Case, index int) bool {
	row := &x86.Rows()[index]
	in := g.enc.encode(row)
	for in.mem && !in.ripRelative && !in.absolute {
		in = g.enc.encode(row)
	}
	if len(k.Code)+len(in.bytes) > maxCode-16 {
		return false
	}
	if in.mem {
		t := g.target()
		k.In.FSBase, k.In.GSBase = 0, 0
		in.seg = 0
		g.aim(k, in, t)
	}
	if row.Attr("end") {
		g.shapeByOperands(k, in)
	}
	k.Code = append(k.Code, in.bytes...)
	k.Lens = append(k.Lens, len(in.bytes))
	k.Offset += uint32(len(in.bytes))
	return true
}

// without returns the case without instruction i of its sequence.
func (k *Case) without(i int) *Case {
	c := *k
	at := 0
	for _, n := range k.Lens[:i] {
		at += n
	}
	c.Code = append(append([]byte(nil), k.Code[:at]...), k.Code[at+k.Lens[i]:]...)
	c.Lens = append(append([]int(nil), k.Lens[:i]...), k.Lens[i+1:]...)
	c.Steps--
	return &c
}
