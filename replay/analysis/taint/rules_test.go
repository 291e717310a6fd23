package taint

import (
	"math/rand/v2"
	"strings"
	"testing"

	"vplay/replay/analysis/dataflow"
	"vplay/replay/analysis/internal/randomcode"
	"vplay/replay/x86"
)

// noiseMemory is memory of which marked bits may be changed.
type noiseMemory struct {
	randomcode.Memory
	at     uint64
	marks  [64]byte
	change [64]byte
}

// byteAt is randomcode.Memory.Change.
func (m *noiseMemory) byteAt(at uint64, b byte) byte {
	if at%5 == 0 {
		b = 0 // some rules are about zeroes
	}
	if off := at - m.at; off < 64 {
		b ^= m.change[off] & m.marks[off]
	}
	return b
}

// newNoise returns memory that is like m, of which nothing is stored.
func newNoise(m noiseMemory) *noiseMemory {
	n := &m
	n.Stored, n.Change = map[uint64]byte{}, n.byteAt
	return n
}

// someBits returns marks as there are: none, a few bits, bytes, or all.
func someBits(r *rand.Rand) uint64 {
	switch r.IntN(6) {
	case 0:
		return 1 << r.IntN(64)
	case 1:
		return 0xff << (8 * r.IntN(8))
	case 2:
		return ^uint64(0)
	case 3:
		return r.Uint64() & r.Uint64() & r.Uint64()
	}
	return 0
}

// someValue returns a value: often one that rules treat in a way of its own.
func someValue(r *rand.Rand) uint64 {
	switch r.IntN(4) {
	case 0:
		return 0
	case 1:
		return r.Uint64N(64)
	}
	return r.Uint64()
}

// bench is what trials share, since it is large.
type bench struct {
	e         *Engine
	one, two  *x86.CPU
	id        *x86.CPUIdentity
	wide, x87 bool // there are the registers of AVX-512, and numbers in those of the x87 unit
}

func newBench(xcr0 uint64) *bench {
	id := &x86.CPUIdentity{Vendor: x86.VendorAMD, XCR0: xcr0}
	return &bench{e: New(Options{}), one: x86.New(newNoise(noiseMemory{}), id), two: x86.New(newNoise(noiseMemory{}), id), id: id}
}

// numbers fills the x87 unit, and marks some of it.
func (t *trial) numbers(r *rand.Rand) {
	f := &t.one.FPU
	var marks x87Marks
	f.Top, f.Tag = uint8(r.IntN(8)), 0xff
	if r.IntN(2) == 0 {
		f.Tag = uint8(r.Uint32())
	}
	f.SW = uint16(r.Uint32()) & x87Codes
	marks.sw, marks.swTag = uint16(someBits(r))&x87Codes, 1
	if t.k.mnemonic == "FNSTCW" || t.k.mnemonic == "FLDCW" { // no other looks at it, as far as rules go
		marks.cw, marks.cwTag = uint16(someBits(r))&0xf00, 1
	}
	for i := range f.R {
		f.R[i] = x86.F80{M: someValue(r) | uint64(r.IntN(2))<<63, E: uint16(0x3fe0+r.IntN(0x60)) | uint16(r.IntN(2))<<15}
		if r.IntN(6) == 0 {
			f.R[i].E = uint16(r.Uint32())
		}
		marks.r[i], marks.tag[i] = x87Bits{someBits(r), uint16(someBits(r))}, 1
	}
	t.e.cur.setX87(&marks)
}

// trial is one instruction with marks.
type trial struct {
	e      *Engine
	in     x86.Inst
	k      *instruction
	one    *x86.CPU
	memory *noiseMemory
	start  x86.State
}

// newTrial returns an instruction that is executed with random marks; nil where the bytes are
// not of use.
func (b *bench) newTrial(r *rand.Rand, code []byte) *trial {
	id := b.id
	in, err := x86.DecodeInst(code, randomcode.At, id)
	if err != nil || x86.Rows()[in.Row].Attr("refuse") || in.Flags&x86.InstEnd != 0 {
		return nil
	}
	k := compile(randomcode.At, &in, false)
	if !k.isPlain && k.wide == nil || len(k.Flows) == 0 {
		return nil
	}
	b.e.Mem = newMemory()
	t := &trial{e: b.e, in: in, k: k, memory: newNoise(noiseMemory{Memory: randomcode.Memory{Code: code}})}
	t.e.cur = &thread{}
	t.one = b.one
	t.one.Renew(t.memory, id)
	t.e.regs[0] = t.e.cur
	g := &t.e.cur.regs
	for i := range uint8(16) {
		t.one.R[i] = someValue(r) &^ (0xffff << 48)
		all := dataflow.BytesOf(i, 0, 8)
		if all.And(k.Address) == (dataflow.RegSet{}) && i != x86.RSP {
			g.setGeneral(i, ^uint64(0), someBits(r), 1)
		}
	}
	for i := range uint8(32) {
		var z, marks vector
		for w := range 8 {
			if z[w], marks[w] = someValue(r), someBits(r); r.IntN(3) == 0 {
				z[w] &= 0xff00ff0000ffff
			}
		}
		if !b.wide {
			if clear(z[4:]); i > 15 {
				break
			}
			clear(marks[4:])
		}
		t.one.SetZMM(i, z)
		g.setVector(i, laneMask(0xff), &marks, 1)
	}
	for i := range t.one.Wide.K {
		if t.one.Wide.K[i] = r.Uint64(); b.wide {
			g.setMask(uint8(i), someBits(r), 1)
		}
	}
	if b.x87 {
		t.numbers(r)
	}
	const arithmetic = x86.FlagCF | x86.FlagPF | x86.FlagAF | x86.FlagZF | x86.FlagSF | x86.FlagOF
	g.setFlags(^uint64(0), someBits(r)&arithmetic, 1)
	t.one.SetFlags(r.Uint64()&arithmetic | 2 | x86.FlagIF)
	t.one.RIP, t.one.MXCSR = randomcode.At, 0x1f80
	size := 0
	if len(k.Ops) == 1 {
		t.memory.at, size = k.Ops[0].At(t.one, &in), int(k.Ops[0].Size)
	} else if k.wide != nil && in.Flags&x86.InstMem != 0 {
		t.memory.at, size = t.one.Address(&in), k.wide.Memory
	}
	if size > 0 {
		t.e.step.at[0] = t.memory.at
		for i := range size {
			t.memory.marks[i] = byte(someBits(r))
		}
		t.e.Mem.Store(t.memory.at, t.memory.marks[:size], 1)
	}
	t.start = t.one.State
	return t
}

// changed executes the instruction with other values of marked bits.
func (t *trial) changed(r *rand.Rand, two *x86.CPU, before *regs) *x86.CPU {
	m := newNoise(*t.memory)
	for i := range m.change {
		m.change[i] = byte(r.Uint32())
	}
	two.Renew(m, t.one.ID)
	two.State = t.start
	for i := range 16 {
		two.R[i] ^= r.Uint64() & before.r[i]
	}
	for i := range uint8(32) {
		z := two.ZMM(i)
		for w := range z {
			z[w] ^= r.Uint64() & before.v[i][w]
		}
		two.SetZMM(i, z)
	}
	for i := range two.Wide.K {
		two.Wide.K[i] ^= r.Uint64() & before.k[i]
		two.FPU.R[i].M ^= r.Uint64() & before.x87.r[i].m
		two.FPU.R[i].E ^= uint16(r.Uint32()) & before.x87.r[i].e
	}
	two.FPU.SW ^= uint16(r.Uint32()) & before.x87.sw
	two.FPU.CW ^= uint16(r.Uint32()) & before.x87.cw
	two.SetFlags(two.Flags() ^ r.Uint64()&before.flag)
	return two
}

// differs says what of the results differs that is not marked.
func (t *trial) differs(two *x86.CPU) string {
	g := &t.e.cur.regs
	for i := range 16 {
		if i != x86.RSP && (t.one.R[i]^two.R[i])&^g.r[i] != 0 {
			return "a general register"
		}
	}
	for i := range uint8(32) {
		x, y := t.one.ZMM(i), two.ZMM(i)
		for w := range x {
			if (x[w]^y[w])&^g.v[i][w] != 0 {
				return "a vector register"
			}
		}
	}
	for i := range g.k {
		x, y, m := t.one.FPU.R[i], two.FPU.R[i], g.x87.r[i]
		switch {
		case (t.one.Wide.K[i]^two.Wide.K[i])&^g.k[i] != 0:
			return "a mask"
		case (x.M^y.M)&^m.m != 0 || (x.E^y.E)&^m.e != 0:
			return "an x87 register"
		}
	}
	if (t.one.FPU.SW^two.FPU.SW)&x87Codes&^g.x87.sw != 0 || (t.one.FPU.CW^two.FPU.CW)&^g.x87.cw != 0 || t.one.FPU.Top != two.FPU.Top && t.k.rule != nil {
		return "a control or status word"
	}
	flags := uint64(x86.FlagCF | x86.FlagPF | x86.FlagZF | x86.FlagSF | x86.FlagOF)
	flags &^= x86.Rows()[t.in.Row].Undef
	x, y := t.one.Flags(), two.Flags()
	if t.k.mnemonic == "SUB" || t.k.mnemonic == "CMP" { // SF and OF are known together
		flags &^= x86.FlagSF | x86.FlagOF
		if g.flag&x86.FlagSF == 0 && isTaken(0xc, x) != isTaken(0xc, y) {
			return "less"
		}
	}
	if (x^y)&flags&^g.flag != 0 {
		return "a flag"
	}
	for a, v := range t.memory.Stored {
		var b [1]byte
		t.e.Mem.Load(a, b[:])
		if (v^two.Bus.(*noiseMemory).Stored[a])&^b[0] != 0 {
			return "memory"
		}
	}
	return ""
}

// TestRules: what is not marked in a result does not depend on what is marked in the operands.
// Random instructions are executed twice, the second time with other values of marked bits.
func TestRules(t *testing.T) {
	newBench(7).try(t, 30_000, 100, func(r *rand.Rand) []byte { return randomcode.Bytes(r, 5) })
}

// TestRulesWide is TestRules for instructions of AVX-512, TestRulesX87 for those of the x87 unit and MMX.
func TestRulesWide(t *testing.T) {
	b := newBench(0xe7)
	b.wide = true
	b.try(t, 8_000, 150, ofRows(func(row *x86.Row) bool { return row.Encoding.EVEX || row.File == "opmask" }))
}

func TestRulesX87(t *testing.T) {
	b := newBench(7)
	b.x87 = true
	b.try(t, 6_000, 100, ofRows(func(row *x86.Row) bool { return row.File == "x87" || row.File == "mmx" }))
}

// ofRows returns random instructions of some rows.
func ofRows(is func(row *x86.Row) bool) func(r *rand.Rand) []byte {
	var rows []*x86.Row
	for i := range x86.Rows() {
		if row := &x86.Rows()[i]; is(row) && !row.Attr("refuse") && row.Mnemonic != "UD" {
			rows = append(rows, row)
		}
	}
	return func(r *rand.Rand) []byte { return randomcode.OfRow(r, rows[r.IntN(len(rows))]) }
}

// try executes random instructions, and wants so many mnemonics among them that have rules.
func (b *bench) try(t *testing.T, count, wanted int, code func(r *rand.Rand) []byte) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 8))
	bad, ruled := map[string]int{}, map[string]bool{}
	for range count {
		x := b.newTrial(r, code(r))
		if x == nil {
			continue
		}
		before := x.e.cur.regs
		x.e.slow(x.one, &x.in, x.k)
		if x.one.Step() != x86.ExitNone {
			x.e.After(x.one, &x.in, x86.ExitFault)
			continue
		}
		x.e.After(x.one, &x.in, x86.ExitNone)
		if x.k.rule != nil {
			ruled[x.k.mnemonic] = true
		}
		for range 3 {
			two := x.changed(r, b.two, &before)
			if two.Step() != x86.ExitNone {
				continue
			}
			what := x.differs(two)
			if what == "" {
				continue
			}
			if bad[x.k.mnemonic]++; bad[x.k.mnemonic] == 1 {
				t.Errorf("%s %v % x: %s depends on what is marked", x.k.mnemonic, x86.Rows()[x.in.Row].Operands, x.memory.Code[:x.in.Len], what)
			}
			break
		}
	}
	var names []string
	for n := range ruled {
		names = append(names, n)
	}
	t.Logf("%d mnemonics with rules: %s", len(names), strings.Join(names, " "))
	if len(names) < wanted {
		t.Errorf("%d mnemonics with rules only", len(names))
	}
}
