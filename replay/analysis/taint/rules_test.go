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
	e        *Engine
	one, two *x86.CPU
	id       *x86.CPUIdentity
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

// newTrial returns a random instruction that is executed with random marks; nil where the bytes are
// not of use.
func (b *bench) newTrial(r *rand.Rand) *trial {
	id := b.id
	code := randomcode.Bytes(r, 5)
	in, err := x86.DecodeInst(code, randomcode.At, id)
	if err != nil || in.Flags&x86.InstEVEX != 0 || x86.Rows()[in.Row].Attr("refuse") || in.Flags&x86.InstEnd != 0 {
		return nil
	}
	k := compile(randomcode.At, &in, false)
	if !k.isPlain || len(k.Flows) == 0 {
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
		marks := vector{someBits(r), someBits(r), someBits(r), someBits(r)}
		g.setVector(i, laneMask(0xff), &marks, 1)
		for w := range 4 {
			t.one.V[i][w] = someValue(r)
			if r.IntN(3) == 0 {
				t.one.V[i][w] &= 0xff00ff0000ffff
			}
		}
	}
	const arithmetic = x86.FlagCF | x86.FlagPF | x86.FlagAF | x86.FlagZF | x86.FlagSF | x86.FlagOF
	g.setFlags(^uint64(0), someBits(r)&arithmetic, 1)
	t.one.SetFlags(r.Uint64()&arithmetic | 2 | x86.FlagIF)
	t.one.RIP, t.one.MXCSR = randomcode.At, 0x1f80
	if len(k.Ops) == 1 {
		t.memory.at = k.Ops[0].At(t.one, &in)
		t.e.step.at[0] = t.memory.at
		for i := range int(k.Ops[0].Size) {
			t.memory.marks[i] = byte(someBits(r))
		}
		t.e.Mem.Store(t.memory.at, t.memory.marks[:k.Ops[0].Size], 1)
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
		for w := range 4 {
			two.V[i][w] ^= r.Uint64() & before.v[i][w]
		}
	}
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
		for w := range 4 {
			if (t.one.V[i][w]^two.V[i][w])&^g.v[i][w] != 0 {
				return "a vector register"
			}
		}
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
	r := rand.New(rand.NewPCG(7, 8))
	id := &x86.CPUIdentity{Vendor: x86.VendorAMD, XCR0: 7}
	b := &bench{e: New(Options{}), one: x86.New(newNoise(noiseMemory{}), id), two: x86.New(newNoise(noiseMemory{}), id), id: id}
	bad, ruled := map[string]int{}, map[string]bool{}
	for range 30_000 {
		x := b.newTrial(r)
		if x == nil {
			continue
		}
		before := x.e.cur.regs
		x.e.slow(x.one, &x.in, x.k)
		if x.one.Step() != x86.ExitNone {
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
	if len(names) < 100 {
		t.Errorf("%d mnemonics with rules only", len(names))
	}
}
