package differential

import (
	"slices"

	"vplay/replay/x86"
)

// Memory operands of EVEX forms that lie across an edge: what a CPU looks at first there,
// and what a mask keeps from it, no manual says.

// memoryEdges are the addresses where one kind of memory ends and another begins. The last page
// below 1<<47 is never mapped (Linux keeps it free), nor are the first and the last of all.
var memoryEdges = []uint64{
	DataBase, ReadOnlyPage, ReadOnlyPage + pageSize, LastPage, LastPage + pageSize, // mapped, read-only, not mapped
	1 << 47, 0xffff8000_00000000, 0, // canonical or not; the wrap
	1 << 32, // the wrap of 32-bit addresses
}

// EdgeRows returns the rows whose cases Edge makes: EVEX forms that may have memory.
func EdgeRows() (l []int) {
	for i := range x86.Rows() {
		if r := &x86.Rows()[i]; r.Encoding.EVEX && r.Encoding.Mod != x86.ModReg && r.Encoding.ModRM && WhyNotRun(r) == "" {
			l = append(l, i)
		}
	}
	return l
}

// Edge makes a case of a row whose memory operand begins before bytes before an edge, with
// 32-bit addresses for the edge that only they have.
func (g *Generator) Edge(index int, edge uint64, before int) *Case {
	row := &x86.Rows()[index]
	var in *instruction
	for in == nil || !in.mem || in.ripRelative || in.absolute || in.seg != 0 || in.addr32 && edge > 1<<32 || !in.addr32 && edge == 1<<32 {
		in = g.enc.encode(row)
	}
	k := &Case{Row: index, Steps: 1, Offset: 0x800, Code: in.bytes}
	g.registers(k, row, in, laneOf(row, g.r))
	k.In.RIP = CodeBase + uint64(k.Offset)
	g.aim(k, in, edge-uint64(before))
	if in.vindex >= 0 {
		g.edgeIndexes(k, in)
	}
	if m := in.evex.Mask(); m != 0 && !slices.Contains(row.Operands, "k") {
		k.In.Wide.K[m] = g.edgeMask()
	}
	return k
}

// edgeMask chooses a mask: of some first or last elements, of one, of all, or any.
func (g *Generator) edgeMask() uint64 {
	r := g.r
	at := r.IntN(2 << r.IntN(6)) // below the number of elements, for any number
	high := r.Uint64() << 32     // where few elements are, ignored
	switch r.IntN(8) {
	case 0:
		return 0
	case 1:
		return high
	case 2:
		return ^uint64(0)
	case 3:
		return 1 << at
	case 4:
		return ^uint64(0) << at
	case 5:
		return ^(^uint64(0) << at)
	case 6:
		return r.Uint64() & r.Uint64()
	}
	return r.Uint64()
}

// edgeIndexes spreads the elements of a gather or scatter to both sides of the edge.
func (g *Generator) edgeIndexes(k *Case, in *instruction) {
	var z [8]uint64
	for i := range z {
		z[i] = uint64(int64(g.r.IntN(32) - 16))
		if in.row.Encoding.Opcode&1 == 0 { // 32-bit indexes
			z[i] = z[i]&0xffffffff | uint64(g.r.IntN(32)-16)<<32
		}
	}
	k.In.setZMM(in.vindex, z)
}
