package differential

import (
	"encoding/binary"

	"vplay/replay/x86"
)

// Shapers give the operands of some instructions values that mean something:
// counts that are small, targets that exist, images that load.

var shapers = makeShapers()

type shaper func(g *Generator, k *Case, in *instruction)

func makeShapers() map[string]shaper {
	m := map[string]shaper{
		"XLAT": shapeXLAT, "XLATB": shapeXLAT,
		"MASKMOVDQU": shapeMaskMove, "MASKMOVQ": shapeMaskMove, "VMASKMOVDQU": shapeMaskMove,
		"CMPXCHG": shapeCompareExchange, "CMPXCHG8B": shapeCompareExchangePair, "CMPXCHG16B": shapeCompareExchangePair,
		"POPF": shapePopFlags, "POPFQ": shapePopFlags, "POPFW": shapePopFlags, "PUSHF": shapeStack, "PUSHFQ": shapeStack,
		"IRET": shapeIRET, "IRETQ": shapeIRET, "IRETD": shapeIRET,
		"ENTER": shapeEnter, "LEAVE": shapeLeave,
		"LDMXCSR": shapeLDMXCSR, "VLDMXCSR": shapeLDMXCSR,
		"FXRSTOR": shapeImage, "FXRSTOR64": shapeImage, "XRSTOR": shapeImage, "XRSTOR64": shapeImage,
		"FXSAVE": shapeArea, "FXSAVE64": shapeArea, "XSAVE": shapeArea, "XSAVE64": shapeArea, "XSAVEOPT": shapeArea, "XSAVEOPT64": shapeArea, "XSAVEC": shapeArea, "XSAVEC64": shapeArea,
		"XGETBV": shapeXGETBV, "WRFSBASE": shapeBase, "WRGSBASE": shapeBase,
		"RET": shapeReturn, "RETN": shapeReturn, "RETF": shapeFarReturn,
		"PCMPESTRI": shapeStrings, "PCMPESTRM": shapeStrings, "VPCMPESTRI": shapeStrings, "VPCMPESTRM": shapeStrings,
		"LOOP": shapeLoop, "LOOPE": shapeLoop, "LOOPNE": shapeLoop, "JRCXZ": shapeLoop, "JECXZ": shapeLoop,
		"FBLD": shapeBCD, "POP": shapePop,
	}
	for n, f := range systemShapers {
		m[n] = f
	}
	for _, n := range []string{"BT", "BTS", "BTR", "BTC"} {
		m[n] = shapeBit
	}
	for _, n := range []string{"SHL", "SAL", "SHR", "SAR", "ROL", "ROR", "RCL", "RCR", "SHLD", "SHRD"} {
		m[n] = shapeCount
	}
	for _, n := range []string{"DIV", "IDIV"} {
		m[n] = shapeDivide
	}
	return m
}

// shapeByOperands handles what the operand names tell: branches, string
// instructions, direct addresses, selectors.
func (g *Generator) shapeByOperands(k *Case, in *instruction) {
	if usesStringMemory(in.row) {
		g.shapeString(k, in)
		return
	}
	if in.vindex >= 0 {
		g.shapeGather(k, in)
	}
	for _, o := range in.row.Operands {
		switch o {
		case "rel8":
			g.relative(k, in, 1)
		case "rel32":
			g.relative(k, in, len(in.bytes)-in.immAt)
		case "sreg":
			g.selector(k, in)
		}
	}
	if in.row.Encoding.Imm == x86.ImmMoffs {
		t := g.target()
		b := g.segment(k, in, t)
		appendLE(in.bytes[:in.immAt], t-b, len(in.bytes)-in.immAt)
		g.fill(k, t, laneInt)
	}
	if in.row.Attr("end") && in.immAt == 0 {
		g.indirect(k, in)
	}
}

// relative aims a relative branch into the code pages, never at the
// instruction itself or the trampoline behind it.
func (g *Generator) relative(k *Case, in *instruction, n int) {
	next := int(k.Offset) + len(in.bytes)
	for range 20 {
		d := g.r.IntN(256) - 128
		if n > 1 && g.one(2) {
			d = g.r.IntN(4096) - 2048
		}
		if n > 1 && g.one(20) {
			d = int(int32(g.r.Uint32())) &^ 0x30000000
		}
		at := next + d
		if (at < int(k.In.RIP-CodeBase)-16 || at >= next+len(trampoline)) && (n > 1 || d >= -128) {
			appendLE(in.bytes[:in.immAt], uint64(d), n)
			return
		}
	}
	appendLE(in.bytes[:in.immAt], 100, n)
}

// landing is a place in the code pages where only INT3 stands, or, rarely, elsewhere.
func (g *Generator) landing() uint64 {
	if g.r.IntN(16) == 0 {
		return []uint64{0x30002000, 0x20001000, 0x1000, 1 << 47, 1 << 63, 0xffff800000000000, 0x7ffffffff000}[g.r.IntN(7)]
	}
	return CodeBase + uint64(g.r.IntN(0x700))
}

// indirect gives JMP and CALL through a register or memory a landing place.
func (g *Generator) indirect(k *Case, in *instruction) {
	if in.rm >= 0 {
		k.In.R[in.rm] = g.landing()
		return
	}
	for i := range k.Patches {
		if p := &k.Patches[i]; len(p.Bytes) >= 8 {
			binary.LittleEndian.PutUint64(p.Bytes, g.landing())
		}
	}
}

// selector gives MOV to a segment register a selector that may load. Not 1 to 3:
// the CPU makes them 0 whenever the kernel returns to us.
func (g *Generator) selector(k *Case, in *instruction) {
	s := []uint64{0, 0, 0x2b, 0x2b, 0x33, 0x23, 0x28, 0xffff, 0x10, 0x63}[g.r.IntN(10)]
	if g.one(2) {
		s = 0x2b // the one that SS takes, too
	}
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

// shapeString sets the pointers, the count and the direction.
func (g *Generator) shapeString(k *Case, in *instruction) {
	r := g.r
	s, d := g.target(), g.target()
	if g.one(3) { // overlapping
		d = s + uint64(r.IntN(40)) - 20
	}
	if g.one(3) {
		k.In.Flags |= x86.FlagDF
	}
	count := uint64(r.IntN(24))
	if g.one(8) {
		count = uint64(r.IntN(5000))
	}
	if in.addr32 {
		count |= r.Uint64() << 32
	}
	if g.one(2) { // something to compare equal
		v := randInt(r)
		k.In.R[x86.RAX] = v
		b := make([]byte, 0, 96)
		for len(b) < 96 {
			b = appendLE(b, v, 8)
		}
		if g.one(2) {
			b[r.IntN(96)] ^= 1
		}
		g.patch(k, s-48, b)
		g.patch(k, d-48, append([]byte(nil), b...))
	}
	s -= g.segment(k, in, s)
	k.In.R[x86.RSI], k.In.R[x86.RDI], k.In.R[x86.RCX] = s, d, count
	if in.addr32 {
		k.In.R[x86.RSI] = s&0xffffffff | r.Uint64()<<32
		k.In.R[x86.RDI] = d&0xffffffff | r.Uint64()<<32
	}
}

func shapeXLAT(g *Generator, k *Case, in *instruction) {
	t := g.target()
	t -= g.segment(k, in, t)
	k.In.R[x86.RBX] = t - k.In.R[x86.RAX]&0xff
}

func shapeMaskMove(g *Generator, k *Case, in *instruction) {
	t := g.target()
	t -= g.segment(k, in, t)
	k.In.R[x86.RDI] = t
}

// operandValue reads what the destination of in holds: a register or patch.
func operandValue(k *Case, in *instruction) uint64 {
	if in.rm >= 0 {
		return k.In.R[in.rm]
	}
	if n := len(k.Patches); n > 0 && len(k.Patches[n-1].Bytes) >= 8 {
		return binary.LittleEndian.Uint64(k.Patches[n-1].Bytes)
	}
	return 0
}

func shapeCompareExchange(g *Generator, k *Case, in *instruction) {
	if g.one(2) && in.base != x86.RAX && in.index != x86.RAX {
		k.In.R[x86.RAX] = operandValue(k, in)
	}
}

func shapeCompareExchangePair(g *Generator, k *Case, in *instruction) {
	for _, n := range []int{in.base, in.index} {
		if n == x86.RAX || n == x86.RDX {
			return
		}
	}
	if n := len(k.Patches); n > 0 && len(k.Patches[n-1].Bytes) >= 16 && g.one(2) {
		b := k.Patches[n-1].Bytes
		lo, hi := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		if in.row.Mnemonic == "CMPXCHG8B" {
			lo, hi = lo&0xffffffff|g.r.Uint64()<<32, lo>>32|g.r.Uint64()<<32
		}
		k.In.R[x86.RAX], k.In.R[x86.RDX] = lo, hi
	}
}

// edges says whether frames and save areas may lie half outside of memory: what a
// CPU looks at first there is known of Intel's alone.
func (g *Generator) edges() bool { return g.enc.vendor == x86.VendorIntel }

// frame moves the stack pointer to b, which it writes there: mostly all of it,
// sometimes as much as there is memory for. Not where the rest would be what
// the sandbox holds: a TF in it would trap in the harness. It returns the stack pointer.
func (g *Generator) frame(k *Case, b []byte) uint64 {
	r := g.r
	sp := DataBase + 2*pageSize + uint64(r.IntN(512))*8
	if g.edges() && g.one(8) {
		sp = []uint64{LastPage + pageSize, DataBase, 1 << 47, 0xffff8000_00000000, 1 << 63}[r.IntN(5)] - uint64(r.IntN(len(b)+8))
	}
	k.In.R[x86.RSP] = sp
	if sp < LastPage+pageSize && LastPage+pageSize-sp < uint64(len(b)) {
		b = b[:LastPage+pageSize-sp]
	}
	g.patch(k, sp, b)
	return sp
}

// shapePopFlags keeps TF clear: a single step would trap in the harness's way out.
func shapePopFlags(g *Generator, k *Case, _ *instruction) {
	g.frame(k, appendLE(nil, g.r.Uint64()&^x86.FlagTF, 8))
}

func shapeStack(g *Generator, k *Case, _ *instruction) { k.In.R[x86.RSP] = g.stack() }

// shapeIRET makes a frame that returns into the code pages, or does not.
func shapeIRET(g *Generator, k *Case, in *instruction) {
	n := 4
	switch in.size {
	case 8, 2:
		n = in.size
	}
	cs, ss := uint64(0x33), uint64(0x2b)
	if g.one(6) {
		cs = []uint64{0, 0x2b, 0x10, 0x30, 0xffff}[g.r.IntN(5)]
	}
	if g.one(6) {
		ss = []uint64{0, 3, 0x33, 0x28, 0xffff}[g.r.IntN(5)]
	}
	flags := g.r.Uint64() & flagsLoadable
	var b []byte
	for _, v := range []uint64{g.landing(), cs, flags, DataBase + pageSize + uint64(g.r.IntN(1000)), ss} {
		b = appendLE(b, v, n)
	}
	sp := g.frame(k, b)
	g.rejected = sp&7 != 0 && flags&x86.FlagAC != 0 // see RATIONALE.md
}

func shapeEnter(g *Generator, k *Case, in *instruction) {
	k.In.R[x86.RBP] = g.target()
	if g.one(2) {
		k.In.R[x86.RBP] = DataBase + 2*pageSize + uint64(g.r.IntN(4096))
	}
	if !g.one(4) {
		appendLE(in.bytes[:in.immAt], uint64(g.r.IntN(256)), 2)
	}
}

func shapeLeave(g *Generator, k *Case, _ *instruction) { k.In.R[x86.RBP] = g.target() }

func shapeLDMXCSR(g *Generator, k *Case, _ *instruction) {
	v := g.mxcsr()
	if g.one(8) {
		v = g.r.Uint32()
	}
	for i := range k.Patches {
		if p := &k.Patches[i]; len(p.Bytes) >= 4 {
			binary.LittleEndian.PutUint32(p.Bytes, v)
		}
	}
}

// shapeArea aims save areas: 64-byte aligned and wholly inside, mostly.
func shapeArea(g *Generator, k *Case, in *instruction) {
	k.Patches = nil
	t := g.areaAddress()
	g.aim(k, in, t)
	g.saveMask(k, in)
}

func (g *Generator) areaAddress() uint64 {
	t := DataBase + uint64(g.r.IntN(3*pageSize))&^63
	switch g.r.IntN(16) {
	case 0:
		t += uint64(g.r.IntN(64))
	case 1:
		t = ReadOnlyPage - uint64(g.r.IntN(1024))&^63
	case 2:
		t = LastPage + pageSize - uint64(g.r.IntN(1024))&^63
	case 3:
		if g.edges() {
			t = []uint64{DataBase, LastPage, 1 << 47}[g.r.IntN(3)] - uint64(g.r.IntN(1024))&^63
		}
	}
	return t
}

// saveMask sets EDX:EAX, the requested components: x87, SSE, AVX, those of AVX-512, and some that
// no XCR0 has.
func (g *Generator) saveMask(k *Case, in *instruction) {
	for _, n := range []int{in.base, in.index} {
		if n == x86.RAX || n == x86.RDX {
			g.rejected = true
			return
		}
	}
	k.In.R[x86.RAX] = []uint64{7, 7, 3, 1, 2, 4, 0, 5, 6, 0x107}[g.r.IntN(10)] | g.r.Uint64()<<32
	if g.wide && g.one(2) {
		k.In.R[x86.RAX] |= []uint64{0xe0, 0xe0, 0x20, 0x40, 0x80}[g.r.IntN(5)]
	}
	k.In.R[x86.RDX] = 0
}

// shapeImage puts an image to load where the operand points.
func shapeImage(g *Generator, k *Case, in *instruction) {
	shapeArea(g, k, in)
	k.Patches = nil
	t := g.areaAddress()
	g.aim(k, in, t)
	g.saveMask(k, in)
	other := DefaultRegs()
	for i := range other.V {
		for j := range other.V[i] {
			other.V[i][j] = randInt(g.r)
		}
	}
	other.MXCSR = g.mxcsr()
	if g.one(12) {
		other.MXCSR = g.r.Uint32()
	}
	g.x87(&other.FPU)
	b := make([]byte, xsaveSize)
	encodeImage(&other, b)
	if g.one(3) {
		b[xsaveHeader] = byte(g.r.IntN(8))
		if g.wide && g.one(2) {
			b[xsaveHeader] |= byte(g.r.IntN(8) << 5)
		}
	}
	if g.one(16) {
		b[xsaveHeader+g.r.IntN(24)] = byte(g.r.Uint32())
	}
	if end := uint64(LastPage + pageSize); g.edges() && t >= LastPage && t < end {
		b = b[:min(uint64(len(b)), end-t)]
	}
	if g.edges() && t < LastPage && t > LastPage-uint64(len(b)) {
		t, b = LastPage, b[LastPage-t:]
	}
	g.patch(k, t, b)
}

func shapeXGETBV(g *Generator, k *Case, _ *instruction) {
	k.In.R[x86.RCX] = []uint64{0, 0, 2, 3, 1 << 32}[g.r.IntN(5)] // 1 shows what the host uses
}

func shapeBase(g *Generator, k *Case, in *instruction) {
	if in.rm >= 0 && !g.one(4) {
		k.In.R[in.rm] = uint64(int64(k.In.R[in.rm]<<17) >> 17)
	}
}

func shapeReturn(g *Generator, k *Case, in *instruction) {
	g.frame(k, appendLE(nil, g.landing(), 8))
	if g.one(16) {
		k.In.R[x86.RSP] = g.target()
	}
}

func shapeFarReturn(g *Generator, k *Case, in *instruction) {
	n := in.size
	cs := uint64(0x33)
	if g.one(4) {
		cs = []uint64{0, 0x2b, 0x10, 0xffff}[g.r.IntN(4)]
	}
	g.frame(k, appendLE(appendLE(nil, g.landing(), n), cs, n))
}

func shapeStrings(g *Generator, k *Case, in *instruction) {
	for _, n := range []int{x86.RAX, x86.RDX} {
		if n != in.base && n != in.index && !g.one(4) {
			k.In.R[n] = uint64(int64(g.r.IntN(40) - 20))
		}
	}
}

func shapeLoop(g *Generator, k *Case, in *instruction) {
	k.In.R[x86.RCX] = []uint64{0, 1, 2, 1 << 32, 1<<32 + 1, 1 << 16, ^uint64(0)}[g.r.IntN(7)]
	g.relative(k, in, 1)
}

// shapeBCD puts ten bytes of decimal digits, mostly valid.
func shapeBCD(g *Generator, k *Case, _ *instruction) {
	for i := range k.Patches {
		p := &k.Patches[i]
		for j := range min(len(p.Bytes), 9) {
			p.Bytes[j] = byte(g.r.IntN(10)<<4 | g.r.IntN(10))
		}
		if g.one(8) && len(p.Bytes) > 0 {
			p.Bytes[g.r.IntN(len(p.Bytes))] = byte(g.r.Uint32())
		}
	}
}

// shapeBit keeps the bit offset of a memory operand in the sandbox, mostly.
func shapeBit(g *Generator, k *Case, in *instruction) {
	if in.mem && in.reg >= 0 && in.reg != in.base && in.reg != in.index && !g.one(8) {
		k.In.R[in.reg] = uint64(int64(g.r.IntN(4096) - 2048))
	}
}

func shapeCount(g *Generator, k *Case, in *instruction) {
	if in.base != x86.RCX && in.index != x86.RCX && !g.one(4) {
		k.In.R[x86.RCX] = k.In.R[x86.RCX]&^0xff | uint64(g.r.IntN(70))
	}
	if in.immAt > 0 && !g.one(4) {
		in.bytes[in.immAt] = byte(g.r.IntN(70))
	}
}

// shapeDivide makes the quotient fit, mostly.
func shapeDivide(g *Generator, k *Case, in *instruction) {
	for _, n := range []int{in.base, in.index, in.rm} {
		if n == x86.RAX || n == x86.RDX {
			return
		}
	}
	switch g.r.IntN(4) {
	case 0:
		k.In.R[x86.RDX] = 0
	case 1:
		k.In.R[x86.RDX] = uint64(int64(k.In.R[x86.RAX]) >> 63)
	case 2:
		k.In.R[x86.RDX] = uint64(int64(g.r.IntN(7) - 3))
	}
	if in.row.Encoding.Opcode == 0xf6 && g.one(2) {
		k.In.R[x86.RAX] = k.In.R[x86.RAX]&^0xffff | uint64(int64(int8(g.r.Uint32())))&0xffff>>uint(g.r.IntN(8))
	}
}

// shapeGather gives indexes that stay near the base, mostly, and a mask.
func (g *Generator) shapeGather(k *Case, in *instruction) {
	narrow := in.row.Encoding.Opcode&1 == 0 // 32-bit indexes
	far := g.one(4)
	index := func() uint64 {
		if far && g.one(6) {
			return uint64(int64(g.r.IntN(40000) - 20000))
		}
		return uint64(int64(g.r.IntN(96) - 48))
	}
	var z [8]uint64
	for i := range z {
		z[i] = index()
		if narrow {
			z[i] = z[i]&0xffffffff | index()<<32
		}
	}
	switch {
	case !in.row.Encoding.EVEX:
		clear(z[4:])
	case !g.wide:
		return // the CPU has neither the instruction nor all of the register
	}
	k.In.setZMM(in.vindex, z)
	if in.row.Encoding.EVEX {
		if g.one(16) {
			k.In.R[in.base] = randInt(g.r)
		}
		return
	}
	if in.vvvv != in.vindex && !g.one(3) {
		for i := range k.In.V[in.vvvv] {
			k.In.V[in.vvvv][i] = []uint64{0, ^uint64(0), 1 << 63, 1<<63 | 1<<31, 1 << 31}[g.r.IntN(5)]
		}
	}
	if g.one(16) {
		k.In.R[in.base] = randInt(g.r)
	}
}

// shapePop gives POP FS and POP GS a selector that may load.
func shapePop(g *Generator, k *Case, in *instruction) {
	if in.row.Encoding.Map != 1 {
		g.shapeByOperands(k, in)
		return
	}
	b := appendLE(nil, []uint64{0, 0, 0x2b, 0x33, 0x23, 0x28, 0x10, 0xffff}[g.r.IntN(8)], 2)
	g.frame(k, appendLE(b, g.r.Uint64(), 6))
}
