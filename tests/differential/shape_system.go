package differential

import (
	"encoding/binary"

	"vplay/replay/x86"
)

// Shapers, as in shape.go, for the instructions with selectors, far pointers, and an
// address in a register.

// systemShapers are those of segments, far transfers and instructions with an
// address in a register.
var systemShapers = map[string]shaper{
	"LAR": shapeSelector, "LSL": shapeSelector, "VERR": shapeSelector, "VERW": shapeSelector,
	"LSS": shapeFarLoad, "LFS": shapeFarLoad, "LGS": shapeFarLoad,
	"JMP FAR": shapeFarJump, "CALL FAR": shapeFarJump,
	"CLZERO":    func(g *Generator, k *Case, in *instruction) { g.pointer(k, in, x86.RAX) },
	"UMONITOR":  func(g *Generator, k *Case, in *instruction) { g.pointer(k, in, in.rm) },
	"MOVDIR64B": shapeMovdir64b,
}

// pointer makes register n an address.
func (g *Generator) pointer(k *Case, in *instruction, n int) {
	t := g.target()
	k.In.R[n] = t - g.segment(k, in, t)
}

// shapeSelector chooses among selectors that exist and that do not. Not 0x78 to
// 0x7b: their limit is the number of the CPU.
func shapeSelector(g *Generator, k *Case, in *instruction) {
	s := []uint64{0, 3, 0x10, 0x18, 0x20, 0x23, 0x28, 0x2b, 0x30, 0x33, 0x40, 0x50, 0x63, 0x80, 0x2f, 0xffff}[g.r.IntN(16)]
	if in.rm >= 0 {
		k.In.R[in.rm] = k.In.R[in.rm]&^0xffff | s
		return
	}
	for i := range k.Patches {
		if p := &k.Patches[i]; len(p.Bytes) >= 2 {
			binary.LittleEndian.PutUint16(p.Bytes, uint16(s))
		}
	}
}

// farPointer puts an offset and a selector where the memory operand is.
func (g *Generator) farPointer(k *Case, in *instruction, offset, sel uint64) {
	n := 4
	switch in.size {
	case 8:
		if g.enc.vendor != x86.VendorAMD {
			n = 8 // AMD's is m16:32
		}
	case 2:
		n = 2
	}
	b := appendLE(appendLE(nil, offset, n), sel, 2)
	for i := range k.Patches {
		if p := &k.Patches[i]; len(p.Bytes) >= len(b) {
			copy(p.Bytes, b)
		}
	}
}

func shapeFarLoad(g *Generator, k *Case, in *instruction) {
	s := []uint64{0x28, 0x33, 0, 0x10, 0x63, 0xffff}[g.r.IntN(6)]
	if !g.one(4) {
		s = 0x2b
	}
	g.farPointer(k, in, randInt(g.r), s)
}

func shapeFarJump(g *Generator, k *Case, in *instruction) {
	s := []uint64{0x33, 0x33, 0x33, 0x33, 0x30, 0x31, 0x32, 0, 0x2b, 0x10, 0xffff}[g.r.IntN(11)]
	if g.one(2) {
		s = 0x33
	}
	g.farPointer(k, in, g.landing(), s)
}

// shapeMovdir64b aims the register operand, mostly aligned.
func shapeMovdir64b(g *Generator, k *Case, in *instruction) {
	if in.reg == in.base || in.reg == in.index {
		g.rejected = true
		return
	}
	t := g.target()
	if !g.one(5) {
		t &^= 63
	}
	k.In.R[in.reg] = t
}
