package differential

import (
	"slices"
	"strings"

	"vplay/replay/x86"
)

// Generator makes cases, the same ones for the same seed.
type Generator struct {
	r        *random
	enc      encoder
	rejected bool // by a shaper: its registers are in each other's way
	named    [8]int
	wide     bool // there is AVX-512
}

// NewGenerator returns a generator for a seed. The CPU decides encodings
// that differ, as the length of branches with an operand-size prefix, and which registers
// there are.
func NewGenerator(seed uint64, id *x86.CPUIdentity) *Generator { return newStream(seed, 0, id) }

// newStream returns the generator for stream n of a seed.
func newStream(seed, n uint64, id *x86.CPUIdentity) *Generator {
	r := newRandom(seed, n)
	return &Generator{r: r, enc: encoder{r, id.Vendor}, wide: id.XCR0&wideState == wideState}
}

func (g *Generator) one(n int) bool { return g.r.IntN(n) == 0 }

// Case makes a case of the row with the given index in x86.Rows.
func (g *Generator) Case(index int) *Case {
	for {
		g.rejected = false
		if k := g.attempt(index); !g.rejected {
			return k
		}
	}
}

// attempt makes a case, which a shaper may reject.
func (g *Generator) attempt(index int) *Case {
	row := &x86.Rows()[index]
	in := g.enc.encode(row)
	k := &Case{Row: index, Steps: 1}
	l := laneOf(row, g.r)
	g.registers(k, row, in, l)
	k.Offset = g.offset(len(in.bytes))
	if row.Mnemonic == "UD" {
		k.Offset = 0x800 // how much the CPU fetches before it says #UD is of no use to anybody
	}
	k.In.RIP = CodeBase + uint64(k.Offset)
	if in.mem {
		t := g.target()
		g.aim(k, in, t)
		g.fill(k, t, l)
	}
	if f := shapers[row.Mnemonic]; f != nil {
		f(g, k, in)
	} else {
		g.shapeByOperands(k, in)
	}
	k.Code = in.bytes
	if len(k.Code) > maxCode {
		k.Code = k.Code[:maxCode]
	}
	if int(k.Offset)+len(k.Code) > CodeSize && !g.one(2) {
		k.Offset = 0x800 // RIP-relative operands now miss; rarely taken
		k.In.RIP = CodeBase + uint64(k.Offset)
	}
	return k
}

// offset chooses where the code stands: mostly in the middle of the first
// page, sometimes across the page boundary, sometimes at or over the end.
func (g *Generator) offset(n int) uint32 {
	switch g.r.IntN(32) {
	case 0:
		return uint32(pageSize - g.r.IntN(n+1))
	case 1:
		return uint32(CodeSize - n)
	case 2:
		if n > 1 && g.one(4) {
			return uint32(CodeSize - 1 - g.r.IntN(n-1))
		}
	}
	return uint32(0x800 + g.r.IntN(64))
}

// target chooses the address of a memory operand.
func (g *Generator) target() uint64 {
	r := g.r
	switch r.IntN(40) {
	case 0, 1, 2:
		return DataBase + uint64(1+r.IntN(3))*pageSize - uint64(r.IntN(40))
	case 3:
		return ReadOnlyPage - uint64(r.IntN(40))
	case 4:
		return ReadOnlyPage + uint64(r.IntN(pageSize-64))
	case 5:
		return ReadOnlyPage + pageSize - uint64(r.IntN(40))
	case 6:
		return DataBase - uint64(r.IntN(20))
	case 7:
		return LastPage + pageSize - uint64(r.IntN(40))
	case 8:
		return []uint64{0, 0x1000, 0x20000800, 0x2000a010, 0x40000000, 1 << 46, 0xffff800000000000, 0xffffffff80000000}[r.IntN(8)] + uint64(r.IntN(64))
	case 9:
		return []uint64{1 << 47, 1 << 63, 0x0001000000000000, 0xffff7fffffffff00, 0xdeadbeefdeadbee0, 1<<47 - 20}[r.IntN(6)] + uint64(r.IntN(64))
	}
	t := DataBase + 256 + uint64(r.IntN(writablePages*pageSize-1024))
	if !g.one(3) {
		t &^= 63
	} else if g.one(2) {
		t &^= 15
	}
	return t
}

// writable says whether n bytes at a are in the writable sandbox.
func writable(a, n uint64) bool {
	i, j := pageIndex(a), pageIndex(a+n-1)
	return i >= 0 && j >= 0 && j-i <= 1 && j-i >= 0 && i != readOnlyIndex && j != readOnlyIndex
}

// patch overwrites sandbox bytes, as far as they are writable.
func (g *Generator) patch(k *Case, a uint64, b []byte) {
	if len(b) > 0 && writable(a, uint64(len(b))) {
		k.Patches = append(k.Patches, Patch{a, b})
	}
}

// fill puts elements of the kind around the operand.
func (g *Generator) fill(k *Case, t uint64, l lane) {
	if g.one(5) {
		return
	}
	n := 4
	if g.one(4) {
		n = 8
	}
	b := make([]byte, 0, 8*n)
	for range n {
		b = appendLE(b, randQuad(l, g.r), 8)
	}
	if l == laneF80 {
		v := randF80(g.r)
		b = appendLE(appendLE(b[:0], v.M, 8), uint64(v.E), 2)
	}
	for len(b) > 0 && !writable(t, uint64(len(b))) {
		b = b[:len(b)/2]
	}
	g.patch(k, t, b)
}

// aim makes the memory operand of in stand at linear address t.
func (g *Generator) aim(k *Case, in *instruction, t uint64) {
	t -= g.segment(k, in, t)
	switch {
	case in.ripRelative:
		next := CodeBase + uint64(k.Offset) + uint64(len(in.bytes))
		appendLE(in.bytes[:in.dispAt], t-next, 4)
		return
	case in.absolute:
		appendLE(in.bytes[:in.dispAt], t, 4)
		return
	}
	t -= uint64(in.disp)
	high := func() uint64 {
		if in.addr32 {
			return g.r.Uint64() << 32
		}
		return 0
	}
	switch {
	case in.index >= 0 && in.index == in.base:
		k.In.R[in.base] = t/(1+1<<in.scale) + high()
	case in.index >= 0:
		x := randInt(g.r)
		if g.one(2) {
			x = uint64(int64(g.r.IntN(4096) - 2048))
		}
		k.In.R[in.index] = x
		k.In.R[in.base] = t - x<<in.scale
		if in.addr32 {
			k.In.R[in.base] = k.In.R[in.base]&0xffffffff + high()
		}
	default:
		k.In.R[in.base] = t
		if in.addr32 {
			k.In.R[in.base] = t&0xffffffff + high()
		}
	}
}

// segment chooses a base for FS or GS when the instruction uses it.
func (g *Generator) segment(k *Case, in *instruction, t uint64) uint64 {
	if in.seg != 0x64 && in.seg != 0x65 {
		return 0
	}
	b := uint64(g.r.IntN(0x10000))
	if g.one(4) && !in.addr32 {
		b = uint64(int64(g.r.Uint64()<<17) >> 17)
	}
	if in.addr32 && b > t {
		b = 0
	}
	if in.seg == 0x64 {
		k.In.FSBase = b
	} else {
		k.In.GSBase = b
	}
	return b
}

// registers fills everything a case starts from. ins is its instruction, nil
// where there are several.
func (g *Generator) registers(k *Case, row *x86.Row, ins *instruction, l lane) {
	r := g.r
	in := &k.In
	*in = DefaultRegs()
	for i := range in.R {
		in.R[i] = randInt(r)
	}
	if g.one(3) { // equal and neighbouring values
		in.R[r.IntN(16)] = in.R[r.IntN(16)]
		in.R[r.IntN(16)] = in.R[r.IntN(16)] + uint64(r.IntN(3)) - 1
	}
	in.R[x86.RSP] = g.stack()
	in.FSBase, in.GSBase = uint64(r.IntN(2))*DataBase, uint64(r.IntN(2))*0x120012345000 // where Linux maps nothing
	in.Flags = defaultFlags | r.Uint64()&(x86.FlagCF|x86.FlagPF|x86.FlagAF|x86.FlagZF|x86.FlagSF|x86.FlagOF)
	if g.one(16) {
		in.Flags |= r.Uint64() & (x86.FlagNT | x86.FlagID | x86.FlagDF)
	}
	g.vectors(&in.V, row, ins, l)
	g.wideRegisters(in, row, ins, l)
	in.MXCSR = g.mxcsr()
	if ins != nil && !usesX87(row) && !g.one(8) {
		for i := range in.FPU.R {
			in.FPU.R[i] = x86.F80{M: r.Uint64() | 1<<63, E: 0x3fff}
		}
		in.FPU.Tag = uint8(r.Uint32())
		return
	}
	g.x87(&in.FPU)
}

// vectors fills the vector registers: those that ins may look at (all, where it
// is nil) with elements of the kind, the others with random bits.
func (g *Generator) vectors(v *[16]x86.Vec, row *x86.Row, ins *instruction, l lane) {
	r := g.r
	var named []int
	switch {
	case ins == nil || row.File == "xsave" || row.File == "system" || g.one(32):
		named = everyRegister
	case usesVectors(row):
		named = ins.vectors(g.named[:0])
	}
	if len(named) < len(v) {
		for i := range v {
			for j := range v[i] {
				v[i][j] = r.Uint64()
			}
		}
	}
	for _, i := range named {
		for j := range v[i] {
			v[i][j] = randQuad(l, r)
		}
	}
	if len(named) > 0 {
		for range r.IntN(4) { // equal, or but for a quadword
			i, j := named[r.IntN(len(named))], named[r.IntN(len(named))]
			if i == j || g.one(2) {
				continue
			}
			v[i] = v[j]
			if g.one(2) {
				v[i][r.IntN(4)] = randQuad(l, r)
			}
		}
	}
}

var everyRegister = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// vectors appends the vector registers that in may name, and register 0, which
// some forms imply.
func (in *instruction) vectors(l []int) []int {
	for _, i := range []int{0, in.reg, in.rm, in.vvvv, in.vindex, int(in.bytes[len(in.bytes)-1] >> 4)} {
		if i >= 0 && i < 16 {
			l = append(l, i)
		}
	}
	return l
}

// usesVectors says whether instructions of the row may look at vector registers,
// usesX87 whether at the x87 unit.
func usesVectors(row *x86.Row) bool {
	return row.File != "int" && row.File != "bmi" && row.File != "x87"
}

func usesX87(row *x86.Row) bool {
	switch row.File {
	case "x87", "mmx", "xsave", "system":
		return true
	}
	return slices.ContainsFunc(row.Operands, func(o string) bool { return strings.HasPrefix(o, "mm") })
}

func (g *Generator) stack() uint64 {
	r := g.r
	switch r.IntN(24) {
	case 0:
		return g.target()
	case 1:
		return DataBase + pageSize + uint64(r.IntN(16))
	}
	return DataBase + pageSize + uint64(r.IntN(1024))*8
}

func (g *Generator) mxcsr() uint32 {
	m := uint32(defaultMXCSR)
	switch g.r.IntN(4) {
	case 0:
		return m
	case 1:
		return g.r.Uint32() & mxcsrBits
	}
	return m | g.r.Uint32()&0xe07f // rounding, FTZ, DAZ, flags
}

// x87 fills the x87 unit: mostly a full stack and masked exceptions.
func (g *Generator) x87(f *x86.FPU) {
	r := g.r
	for i := range f.R {
		f.R[i] = randF80(r)
	}
	if g.one(4) { // as after MMX
		for i := range f.R {
			f.R[i] = x86.F80{M: randQuad(laneBytes, r), E: 0xffff}
		}
	}
	f.Tag = 0xff
	switch r.IntN(4) {
	case 0:
		f.Tag = uint8(r.Uint32())
	case 1:
		f.Tag = 0
	}
	f.CW = 0x37f
	if !g.one(3) {
		f.CW = 0x7f | uint16(r.IntN(16))<<8
	}
	if g.one(5) {
		f.CW = f.CW&^0x3f | uint16(r.IntN(64))
	}
	if g.one(16) {
		f.CW |= 0x1000
	}
	sw := uint16(r.Uint32()) & 0x7f00
	if g.one(3) {
		sw |= uint16(r.IntN(128))
	}
	f.SetStatus(sw)
}
