package differential

import (
	"fmt"
	"slices"
	"strings"

	"vplay/replay/x86"
)

// Directions of operands, proved by experiment: everything that an instruction is
// not said to read is changed, and what it does must stay the same. The changed
// places themselves must come out as they went in, or written without a trace
// of what was there.

// flagBits are the flags that a case can load, one by one.
var flagBits = []struct {
	name string
	bit  uint64
}{
	{"CF", x86.FlagCF}, {"PF", x86.FlagPF}, {"AF", x86.FlagAF}, {"ZF", x86.FlagZF}, {"SF", x86.FlagSF},
	{"OF", x86.FlagOF}, {"DF", x86.FlagDF}, {"NT", x86.FlagNT}, {"ID", x86.FlagID},
}

// disturb returns k with everything changed that is not in read. in is k's instruction.
func (g *Generator) disturb(k *Case, in *x86.Inst, read *x86.Uses) *Case {
	r := g.r
	p := *k
	p.Patches = append([]Patch(nil), k.Patches...)
	to := &p.In
	for i := range to.R {
		if read.R>>i&1 == 0 {
			to.R[i] = randInt(r)
		}
	}
	for i := range to.V {
		if read.V>>i&1 == 0 {
			to.V[i] = x86.Vec{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()}
		}
	}
	if g.wide {
		g.disturbWide(to, read)
	}
	for _, f := range flagBits {
		if read.Flags&f.bit == 0 {
			to.Flags = to.Flags&^f.bit | r.Uint64()&f.bit
		}
	}
	g.disturbParts(to, read)
	if read.Parts&x86.PartMemory == 0 {
		n := 128
		if slices.Contains(x86.Rows()[in.Row].Operands, "m") { // the area of XSAVE and its like
			n = 1024
		}
		for _, a := range addresses(k, in) {
			g.scramble(&p, a, n)
		}
	}
	return &p
}

// disturbParts changes the parts of the state that are not in read.
func (g *Generator) disturbParts(to *Regs, read *x86.Uses) {
	var f x86.FPU
	g.x87(&f)
	if read.Parts&x86.PartX87 == 0 {
		old := to.FPU.R
		to.FPU = f
		to.FPU.R = old
	}
	for i := range to.FPU.R {
		if read.X87>>i&1 == 0 {
			to.FPU.R[i] = f.R[i]
		}
	}
	if read.Parts&x86.PartMXCSR == 0 {
		to.MXCSR = g.mxcsr()
	}
	if read.Parts&x86.PartFSBase == 0 {
		to.FSBase = uint64(g.r.Uint32())
	}
	if read.Parts&x86.PartGSBase == 0 {
		to.GSBase = uint64(g.r.Uint32())
	}
}

// addresses are where k's instruction may access memory: its operand, and what
// the general registers point to.
func addresses(k *Case, in *x86.Inst) []uint64 {
	l := append([]uint64(nil), k.In.R[:]...)
	a := uint64(in.Disp)
	if in.Base < 16 {
		a += k.In.R[in.Base]
	}
	if in.Index < 16 {
		a += k.In.R[in.Index] << in.Scale
	}
	if in.Flags&x86.InstAddr32 != 0 {
		a = uint64(uint32(a))
	}
	return append(l, a, a+k.In.FSBase, a+k.In.GSBase)
}

// scramble puts n random bytes around a, where memory is writable.
func (g *Generator) scramble(k *Case, a uint64, n int) {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.r.Uint32())
	}
	g.patch(k, a-32, b)
}

// undeclared says in what the outcomes a of k and b of p show that the instruction
// reads or writes something that e does not have; p is k but for what e
// says is not read. Empty if in nothing.
func undeclared(k, p *Case, a, b *Outcome, e *x86.Effects) string {
	return compareUses(k, p, a, b, e, false)
}

// compareUses is undeclared; strict also tells of places that are written and come
// out different, even where each kept what it held.
func compareUses(k, p *Case, a, b *Outcome, e *x86.Effects, strict bool) string {
	c := comparison{strict: strict}
	for i := range a.Out.R {
		c.word(fmt.Sprintf("r%d", i), k.In.R[i], p.In.R[i], a.Out.R[i], b.Out.R[i], e.Write.R>>i&1 != 0)
	}
	for i := range a.Out.V {
		for j := range a.Out.V[i] {
			c.word(fmt.Sprintf("ymm%d", i), k.In.V[i][j], p.In.V[i][j], a.Out.V[i][j], b.Out.V[i][j], e.Write.V>>i&1 != 0)
		}
	}
	c.wide(k, p, a, b, e)
	for _, f := range flagBits {
		c.word(f.name, k.In.Flags&f.bit, p.In.Flags&f.bit, a.Out.Flags&f.bit, b.Out.Flags&f.bit, e.Write.Flags&f.bit != 0)
	}
	c.word("mxcsr", uint64(k.In.MXCSR), uint64(p.In.MXCSR), uint64(a.Out.MXCSR), uint64(b.Out.MXCSR), e.Write.Parts&x86.PartMXCSR != 0)
	c.word("fsbase", k.In.FSBase, p.In.FSBase, a.Out.FSBase, b.Out.FSBase, e.Write.Parts&x86.PartFSBase != 0)
	c.word("gsbase", k.In.GSBase, p.In.GSBase, a.Out.GSBase, b.Out.GSBase, e.Write.Parts&x86.PartGSBase != 0)
	for i := range a.Out.Seg {
		c.word("selectors", uint64(k.In.Seg[i]), uint64(p.In.Seg[i]), uint64(a.Out.Seg[i]), uint64(b.Out.Seg[i]), e.Write.Parts&x86.PartSelector != 0)
	}
	c.x87(k, p, a, b, e)
	if a.Out.RIP != b.Out.RIP || a.Trap != b.Trap {
		c.add("rip or trap is another")
	}
	c.memory(k, p, a, b, e.Write.Parts&x86.PartMemory != 0)
	return strings.Join(c.found, ", ")
}

// comparison collects what undeclared finds, each once.
type comparison struct {
	found  []string
	strict bool
}

func (c *comparison) add(s string) {
	if len(c.found) == 0 || c.found[len(c.found)-1] != s {
		c.found = append(c.found, s)
	}
}

// word compares one place: x0 and y0 went in, x and y came out.
func (c *comparison) word(name string, x0, y0, x, y uint64, written bool) {
	if !written && (x != x0 || y != y0) {
		c.add(name + " is written")
	}
	if (x^y)&(x^x0|y^y0) != 0 || c.strict && written && x != y {
		c.add(name + " is another")
	}
}

func (c *comparison) x87(k, p *Case, a, b *Outcome, e *x86.Effects) {
	for i := range a.Out.FPU.R {
		w := e.Write.X87>>i&1 != 0
		k, p, a, b := k.In.FPU.R[i], p.In.FPU.R[i], a.Out.FPU.R[i], b.Out.FPU.R[i]
		c.word(fmt.Sprintf("fpr%d", i), k.M, p.M, a.M, b.M, w)
		c.word(fmt.Sprintf("fpr%d", i), uint64(k.E), uint64(p.E), uint64(a.E), uint64(b.E), w)
	}
	written := e.Write.Parts&x86.PartX87 != 0
	for _, get := range []func(f *x86.FPU) uint64{
		func(f *x86.FPU) uint64 { return uint64(f.CW)<<32 | uint64(f.Status())<<16 | uint64(f.Tag) },
		func(f *x86.FPU) uint64 { return f.FIP },
		func(f *x86.FPU) uint64 { return f.FDP },
		func(f *x86.FPU) uint64 { return uint64(f.FOP) },
	} {
		c.word("x87", get(&k.In.FPU), get(&p.In.FPU), get(&a.Out.FPU), get(&b.Out.FPU), written)
	}
}

// memory compares the bytes that either changed.
func (c *comparison) memory(k, p *Case, a, b *Outcome, written bool) {
	if !written && len(a.Changed)+len(b.Changed) > 0 {
		c.add("memory is written")
	}
	x, y := after(a), after(b)
	for _, l := range []map[uint64]byte{x, y} {
		for at := range l {
			x0, y0 := k.byteAt(at), p.byteAt(at)
			u, changed := x[at]
			if !changed {
				u = x0
			}
			v, changed := y[at]
			if !changed {
				v = y0
			}
			if (u^v)&(u^x0|v^y0) != 0 || c.strict && u != v {
				c.add("memory is another")
				return
			}
		}
	}
}

// after are the bytes that o changed.
func after(o *Outcome) map[uint64]byte {
	m := map[uint64]byte{}
	for _, r := range o.Changed {
		for i, b := range r.Bytes {
			m[r.Addr+uint64(i)] = b
		}
	}
	return m
}

// byteAt is what is at a before k runs.
func (k *Case) byteAt(a uint64) byte {
	for i := len(k.Patches) - 1; i >= 0; i-- {
		if p := &k.Patches[i]; a-p.Addr < uint64(len(p.Bytes)) {
			return p.Bytes[a-p.Addr]
		}
	}
	return baseImage[pageIndex(a)][a%pageSize]
}
