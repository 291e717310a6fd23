//go:build linux && amd64

package jit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"vplay/replay/x86"
)

// testTrace notes all that it is told, instruction by instruction.
type testTrace struct {
	to      x86.TraceEngine
	pending bool
	list    []string
	ran     int // told by units

	units [][]told
}

// told is an instruction of a unit.
type told struct {
	pc    uint64
	words int
}

func newTestTrace(c *x86.CPU) *testTrace {
	t := &testTrace{}
	t.to.Before = func(c *x86.CPU, in *x86.Inst, _ *uint32) {
		var words []uint64
		list, _ := t.Words(c.RIP, in)
		for _, w := range list {
			words = append(words, w.Of(c, in))
		}
		t.note(c.RIP, c.Retired, words)
	}
	t.to.After = func(_ *x86.CPU, _ *x86.Inst, e x86.Exit) {
		if e == x86.ExitFault {
			t.list = t.list[:len(t.list)-1]
		}
	}
	t.to.Pending = &t.pending
	c.OnInst = func(in *x86.Inst) { t.to.Before(c, in, nil) }
	c.AfterInst = func(in *x86.Inst, e x86.Exit) { t.to.After(c, in, e) }
	return t
}

func (t *testTrace) note(pc, retired uint64, words []uint64) {
	t.list = append(t.list, fmt.Sprintf("%#x behind %d %x", pc, retired, words))
}

// Words implements x86.UnitTracer: of each instruction the address of its operand, or two registers. INC and DEC of rbp are in no unit.
func (t *testTrace) Words(_ uint64, in *x86.Inst) ([]x86.Word, bool) {
	switch {
	case in.Opc == 0xff && in.Flags&x86.InstMem == 0:
		return nil, false
	case in.Flags&x86.InstMem != 0 && x86.Rows()[in.Row].Mnemonic != "LEA":
		return []x86.Word{{Reg: x86.NoReg}, {Reg: x86.R13, Add: -1 << 20}, {Reg: x86.NoReg, Kind: x86.WordBefore, Size: 1}}, true
	case in.Size == 8:
		return []x86.Word{{Reg: x86.RAX}, {Reg: x86.RSP, Add: -8}, {Reg: x86.R12}, {Reg: x86.RSI, Add: 1}}, true
	}
	return nil, true
}

func (t *testTrace) Unit(id int, pc uint64, in []x86.Inst) {
	var u []told
	for i := range in {
		list, _ := t.Words(pc, &in[i])
		u = append(u, told{pc, len(list)})
		pc += uint64(in[i].Len)
	}
	t.units = append(t.units[:id], u)
}

func (t *testTrace) Ran(id, n int, before uint64, words []uint64) {
	t.ran += n
	for i, x := range t.units[id][:n] {
		t.note(x.pc, before+uint64(i), words[:x.words])
		words = words[x.words:]
	}
	if len(words) != 0 {
		panic("a unit has words of no instruction")
	}
}

// TestTraceLimit: a program that has executed little stops at any limit. One that jumped to where it is did not.
func TestTraceLimit(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	for limit := uint64(1); limit < 200; limit++ {
		bus := &textBus{}
		copy(bus.text[:], []byte{0xeb, 0xfe}) // jmp -2
		c := x86.New(bus, host())
		c.RIP = textAt
		e := pool.Engine(c)
		e.Eager()
		tr := newTestTrace(c)
		tr.to.Units = tr
		e.Trace(&tr.to)
		c.SetEngine(e)
		if x := c.Run(limit); x != x86.ExitLimit || c.Retired != limit || uint64(len(tr.list)) != limit || tr.ran == 0 {
			t.Errorf("exit %d behind %d instructions, %d are told, %d by units; want %d", x, c.Retired, len(tr.list), tr.ran, limit)
		}
		e.Close()
	}
}

// TestTraces: what generated code tells of a program is what the interpreter tells, at any limit, at the ends of pages, at faults, and
// where handlers execute an instruction of a unit.
func TestTraces(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	n := 120
	if testing.Short() {
		n = 40
	}
	rng := rand.New(rand.NewPCG(19, 1))
	var all Stats
	told, ran, faults := 0, 0, 0
	for i := range n {
		text := reachCode(rng)
		want, got, buses, r := reachMachines(rng, text)
		e := pool.Engine(got)
		if i%2 == 0 {
			e.Eager()
		}
		e.Warmup, e.MinRun, e.Threshold = 0, 0, min(e.Threshold, 8)
		got.SetEngine(e)
		a, b := newTestTrace(want), newTestTrace(got)
		b.to.Units = b
		want.SetEngine(&a.to)
		e.Trace(&b.to)
		got.SetEngine(e)
		for limit := uint64(0); limit < 20_000; {
			limit += 1 + rng.Uint64N(2000)
			before := want.Retired
			x, y := want.Run(limit), got.Run(limit)
			if err := sameMachines(want, got, buses); err != nil || x != y {
				t.Fatalf("program %d: exit %d, want %d, behind %d instructions, want %d: %v\n% x", i, y, x, got.Retired, want.Retired, err, text[:450])
			}
			if !slices.Equal(a.list, b.list) {
				at := 0
				for at < min(len(a.list), len(b.list)) && a.list[at] == b.list[at] {
					at++
				}
				t.Fatalf("program %d: told are %d of %d instructions; from number %d on %q, want %q", i, len(b.list), len(a.list), at,
					b.list[at:min(at+3, len(b.list))], a.list[at:min(at+3, len(a.list))])
			}
			if n := uint64(len(a.list)); n != want.Retired-before {
				t.Fatalf("program %d: %d instructions are told of %d", i, n, want.Retired-before)
			}
			told += len(a.list)
			a.list, b.list = a.list[:0], b.list[:0]
			if x != x86.ExitLimit { // the stack has left its pages
				faults++
				for _, c := range []*x86.CPU{want, got} {
					c.R = r
					c.RIP = textAt
				}
			}
		}
		ran += b.ran
		e.Close()
		all.Handled += e.Stats.Handled
		all.Units += e.Stats.Units
		all.Bad += e.Stats.Bad
	}
	if all.Bad != 0 {
		t.Errorf("%d units could not be used", all.Bad)
	}
	if ran < told/2 || faults < n/10 || all.Handled < 1000 {
		t.Errorf("told are %d instructions, by units %d; faults %d, instructions executed by handlers %d", told, ran, faults, all.Handled)
	}
	t.Logf("%d instructions, %d of them by units, %d faults, %+v", told, ran, faults, all)
}
