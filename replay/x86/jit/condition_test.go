//go:build linux && amd64

package jit

import (
	"math/rand/v2"
	"slices"
	"testing"

	"vplay/dwarf/agentexpr"
	"vplay/replay/x86"
)

// wholeBus has all bytes of its page, if it is whole: then they are read directly.
type wholeBus struct {
	tellingBus
	whole bool
}

func (b *wholeBus) Translate(a uint64, k x86.Access) (*[pageSize]byte, bool) {
	p, fast := b.tellingBus.Translate(a, k)
	return p, fast || a == dataAt && b.whole
}

func (b *wholeBus) PartialPage(a uint64, k x86.Access) x86.PartialPage {
	if b.whole {
		return x86.PartialPage{}
	}
	return b.tellingBus.PartialPage(a, k)
}

// conditionMachine is what conditions are evaluated for in Go.
type conditionMachine struct {
	c   *x86.CPU
	bus *wholeBus
}

func (m conditionMachine) GPR(i int) uint64 { return m.c.R[i] }
func (m conditionMachine) RIP() uint64      { return m.c.RIP }
func (m conditionMachine) ReadMemory(addr uint64, b []byte) (int, error) {
	if m.bus.Probe(addr, len(b), x86.Load).Kind != x86.FaultNone {
		return 0, nil
	}
	return copy(b, m.bus.data[addr-dataAt:]), nil
}

// randomCondition makes expressions.
type randomCondition struct {
	*rand.Rand
	agentexpr.Builder
}

// value appends what leaves one cell more.
func (r *randomCondition) value(depth int) {
	binary := []byte{
		agentexpr.Add, agentexpr.Sub, agentexpr.Mul, agentexpr.BitAnd, agentexpr.BitOr, agentexpr.BitXor,
		agentexpr.Equal, agentexpr.Equal, agentexpr.LessSigned, agentexpr.LessUnsigned,
	}
	n := r.IntN(14)
	if depth == 0 {
		n %= 5
	}
	switch n {
	case 0:
		r.Number(uint64(r.IntN(4)))
	case 1:
		r.Number(r.Uint64())
	case 2, 3:
		r.Register(r.IntN(agentexpr.RIP + 1))
	case 4: // memory, seldom at the edge of its page
		r.Number(dataAt + uint64(r.IntN(pageSize+256)))
		r.Load(1 << r.IntN(4))
	case 5:
		r.value(depth - 1)
		r.Op([]byte{agentexpr.LogNot, agentexpr.BitNot}[r.IntN(2)])
	case 6:
		r.value(depth - 1)
		r.Op([]byte{agentexpr.Ext, agentexpr.ZeroExt}[r.IntN(2)], byte(1+r.IntN(64)))
	case 7:
		r.value(depth - 1)
		r.Number(uint64(r.IntN(64)))
		r.Op(byte(agentexpr.Lsh + r.IntN(3)))
	case 8: // x && y, as gdb has it
		r.value(depth - 1)
		isTrue := r.Jump(agentexpr.IfGoto)
		isFalse := r.Jump(agentexpr.Goto)
		isTrue()
		r.value(depth - 1)
		alsoTrue := r.Jump(agentexpr.IfGoto)
		isFalse()
		r.Number(0)
		end := r.Jump(agentexpr.Goto)
		alsoTrue()
		r.Number(1)
		end()
	case 9:
		r.value(depth - 1)
		r.Op(agentexpr.Dup)
		r.Op(binary[r.IntN(len(binary))])
	case 10:
		r.value(depth - 1)
		r.value(depth - 1)
		r.Op(agentexpr.Pick, byte(r.IntN(2)))
		r.Op(agentexpr.Pop)
		r.Op(agentexpr.Sub)
	default:
		r.value(depth - 1)
		r.value(depth - 1)
		r.Op(binary[r.IntN(len(binary))])
	}
}

// TestConditions: random conditions at the head of a loop. Where generated code says that all are 0 so does their evaluation in Go, and where
// it does not each turn comes to Pass. Some memory has bytes that are not known.
func TestConditions(t *testing.T) {
	t.Run("whole", func(t *testing.T) { testConditions(t, true) })
	t.Run("part", func(t *testing.T) { testConditions(t, false) })
}

func testConditions(t *testing.T, whole bool) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 14))
	var data [pageSize]byte
	var known [pageSize / 8]byte
	for i := range data {
		data[i] = byte(rng.Uint32()) & byte(rng.Uint32()) & byte(rng.Uint32())
		if whole || i < pageSize/2 {
			known[i/8] |= 1 << (i % 8)
		}
	}
	bus := &wholeBus{tellingBus{partialBus: partialBus{data: &data, known: &known}}, whole}
	copy(bus.text[:], []byte{0x90, 0x90, 0xeb, 0xfc}) // nop; nop; jmp back
	c := x86.New(bus, host())
	e := pool.Engine(c)
	defer e.Close()
	e.Eager()
	c.SetEngine(e)
	c.SetBreakpoints([]uint64{textAt})
	asked := 0
	c.Pass = func() bool { asked++; return true }

	// The interpreter has the last maxUnit instructions, and asks.
	const turns, warm = 200, maxUnit/3 + 8
	var zero, held, left int
	for n := range 4000 {
		for i := range c.R {
			c.R[i] = rng.Uint64() >> rng.IntN(64)
		}
		var codes [][]byte
		isZero := true
		for range 1 + rng.IntN(2) {
			r := &randomCondition{Rand: rng}
			r.value(3)
			if rng.IntN(3) > 0 { // else few are 0
				r.Op(agentexpr.LogNot)
			}
			r.Op(agentexpr.End)
			codes = append(codes, r.Code)
			c.RIP = textAt
			p, err := agentexpr.Parse(r.Code)
			if err != nil {
				t.Fatal(err)
			}
			isZero = isZero && !p.Holds(conditionMachine{c, bus}, nil)
		}
		if n%16 == 0 && isZero { // conditions that are gone
			c.Conditions = nil
		} else {
			c.Conditions = &x86.Conditions{At: map[uint64][][]byte{textAt: codes}}
		}
		before := c.R
		asked = 0
		if x := c.Run(c.Retired + 3*turns); x != x86.ExitLimit || c.R != before {
			t.Fatalf("%x: exit %d, registers %x, want %x", codes, x, c.R, before)
		}
		switch {
		case (!isZero || c.Conditions == nil) && asked < turns-1:
			t.Fatalf("%x: passed %d times by itself, with %x", codes, turns-asked, c.R)
		case !isZero || c.Conditions == nil:
			held++
		case asked <= warm:
			zero++
		default:
			left++
		}
	}
	t.Logf("%d passed, %d held, %d asked in each turn", zero, held, left)
	if zero < 1000 || held < 1000 || left > zero/20 {
		t.Error("too few are decided in generated code")
	}
	if len(e.Faults) > 0 {
		t.Errorf("generated code faulted: %v", e.Faults)
	}
}

// newConditionTranslator returns a translator for conditions alone.
func newConditionTranslator() *translator {
	return &translator{assembler: assembler{buf: make([]byte, 1<<16)}, c: x86.New(&textBus{}, host()), layout: x86.Layout(), e: &Engine{pool: &Pool{}}, u: &unit{}}
}

// TestConditionsWithoutCode: what cannot be told in generated code leaves it: the breakpoint is asked about each time.
func TestConditionsWithoutCode(t *testing.T) {
	zero := []byte{agentexpr.Const8, 0, agentexpr.End}
	for name, bad := range map[string][]byte{
		"division":     {agentexpr.Const8, 0, agentexpr.Const8, 1, agentexpr.DivUnsigned, agentexpr.End},
		"by 64 bits":   {agentexpr.Const8, 0, agentexpr.Const8, 64, agentexpr.Lsh, agentexpr.End},
		"another":      {agentexpr.Reg, 0, 17, agentexpr.End},
		"underflow":    {agentexpr.Add, agentexpr.End},
		"no end":       {agentexpr.Const8, 0},
		"empty":        {},
		"a loop":       {agentexpr.Const8, 0, agentexpr.IfGoto, 0, 0, agentexpr.Const8, 0, agentexpr.End},
		"far":          {agentexpr.Const8, 0, agentexpr.IfGoto, 9, 9, agentexpr.Const8, 0, agentexpr.End},
		"two depths":   {agentexpr.Reg, 0, 0, agentexpr.IfGoto, 0, 8, agentexpr.Const8, 0, agentexpr.End},
		"many cells":   slices.Concat(slices.Repeat([]byte{agentexpr.Reg, 0, 0}, maxCells+1), zero),
		"extension":    {agentexpr.Const8, 0, agentexpr.Ext, 65, agentexpr.End},
		"no operator":  {0xff, agentexpr.End},
		"cut off":      {agentexpr.Const64, 0},
		"pick beneath": {agentexpr.Const8, 0, agentexpr.Pick, 1, agentexpr.End},
	} {
		tr := newConditionTranslator()
		if _, ok := tr.passConditions([][]byte{zero, bad}); ok || tr.n != 0 {
			t.Errorf("%s: %v, %d bytes", name, ok, tr.n)
		}
		if _, ok := tr.passConditions([][]byte{zero}); !ok || tr.n == 0 {
			t.Error("0 has no code")
		}
	}
	rng := rand.New(rand.NewPCG(9, 9))
	tr := newConditionTranslator()
	for range 20_000 { // anything a client may send
		code := make([]byte, rng.IntN(40))
		for i := range code {
			code[i] = byte(rng.IntN(0x36))
		}
		tr.n = 0
		tr.passConditions([][]byte{code})
	}
}
