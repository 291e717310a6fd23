package x86

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"
)

const (
	testText = 0x10000
	testData = 0x20000
	testTop  = 0x24000 // end of data
)

// randomInst returns the bytes of a random instruction of row r, or nil when
// it cannot be encoded.
func randomInst(rng *rand.Rand, r *Row) []byte {
	e := &r.Encoding
	if e.VEX || e.Second >= 0 {
		return nil
	}
	var b []byte
	switch e.Prefix {
	case PrefixNP:
	case Prefix66:
		b = append(b, 0x66)
	case PrefixF2:
		b = append(b, 0xf2)
	case PrefixF3:
		b = append(b, 0xf3)
	case PrefixAny:
		if rng.IntN(6) == 0 {
			b = append(b, 0x66)
		}
	}
	rex := byte(0)
	switch rng.IntN(3) {
	case 0:
		rex = 0x48 | byte(rng.IntN(8))
	case 1:
		rex = byte(rng.IntN(2)) * (0x40 | byte(rng.IntN(8)))
	}
	switch e.W {
	case 1:
		rex |= 0x48
	case 0:
		rex &^= 8
	}
	if rex != 0 {
		b = append(b, rex)
	}
	switch e.Map {
	case 1:
		b = append(b, 0x0f)
	case 2:
		b = append(b, 0x0f, 0x38)
	case 3:
		b = append(b, 0x0f, 0x3a)
	}
	op := e.Opcode
	if e.PlusR {
		op += byte(rng.IntN(8))
	}
	b = append(b, op)
	if e.ModRM {
		m := byte(rng.Uint32())
		if rng.IntN(2) == 0 {
			m |= 0xc0
		}
		if e.Digit >= 0 {
			m = m&^0x38 | byte(e.Digit)<<3
		}
		switch e.Mod {
		case ModMem:
			m &^= 0x80
		case ModReg:
			m |= 0xc0
		case ModAny:
		}
		b = append(b, m)
	}
	for i := 0; i < 10; i++ {
		b = append(b, byte(rng.IntN(40)-20))
	}
	d, err := Decode(b)
	if err != nil || d.HasMem && d.Mem.Base == RIPReg {
		return nil
	}
	return b[:d.Len]
}

// blockRows are the rows that random programs are made of.
func blockRows() []*Row {
	var rows []*Row
	all := Rows()
	for i := range all {
		r := &all[i]
		if r.File == "int" && !r.Attr("end") && !r.Attr("stop") && r.fn != nil {
			rows = append(rows, r)
		}
	}
	return rows
}

// randomProgram returns straight code of about n instructions, ended by a
// conditional branch over nothing now and then, and UD2.
func randomProgram(rng *rand.Rand, rows []*Row, n int) []byte {
	var b []byte
	for len(b) < 6*n {
		in := randomInst(rng, rows[rng.IntN(len(rows))])
		b = append(b, in...)
		if in != nil && rng.IntN(8) == 0 {
			b = append(b, 0x70|byte(rng.IntN(16)), byte(rng.IntN(2)), 0x90)
		}
	}
	return append(b, 0x0f, 0x0b)
}

// randomState fills registers with values near data and anything else.
func randomState(rng *rand.Rand, c *CPU) {
	for i := range c.R {
		switch rng.IntN(8) {
		case 0:
			c.R[i] = rng.Uint64() >> rng.IntN(64)
		case 1:
			c.R[i] = uint64(rng.IntN(64))
		default:
			c.R[i] = testData + 64 + uint64(rng.IntN(testTop-testData-128))
		}
	}
	for i := range c.V {
		c.V[i] = Vec{rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64()}
	}
	c.FSBase = uint64(rng.IntN(64))
	c.SetFlags(FlagIF | rng.Uint64()&flagsArith)
	c.RIP = testText
}

// machine returns a CPU with code at testText and random data.
func machine(seed uint64, code []byte, vendor Vendor) (*CPU, *testBus) {
	rng := rand.New(rand.NewPCG(seed, 1))
	bus := newTestBus()
	bus.add(testText, len(code)+2, "rx")
	bus.put(testText, code)
	bus.add(testData, testTop-testData, "rw")
	data := make([]byte, testTop-testData)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	bus.put(testData, data)
	c := New(bus, &CPUIdentity{Vendor: vendor, Family: 0x19})
	randomState(rng, c)
	return c, bus
}

func describe(c *CPU, e Exit) string {
	return fmt.Sprintf("exit %d fault %+v rip %#x retired %d flags %#x rep %d\n%x\n%x", e, c.Fault, c.RIP, c.Retired, c.Flags(), c.RepIter, c.R, c.V)
}

// TestBlocksAgainstSteps runs random programs by blocks and by single steps:
// everything must be the same at the end, which often is a fault in the middle.
func TestBlocksAgainstSteps(t *testing.T) {
	rows := blockRows()
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range 4000 {
		code := randomProgram(rng, rows, 1+rng.IntN(40))
		seed, vendor := rng.Uint64(), Vendor(i&1)
		a, abus := machine(seed, code, vendor)
		b, bbus := machine(seed, code, vendor)
		ae := a.Run(1 << 40)
		be := ExitNone
		for be == ExitNone {
			be = b.Step()
		}
		if x, y := describe(a, ae), describe(b, be); x != y {
			t.Fatalf("program %d: % x\nblocks: %s\nsteps:  %s", i, code, x, y)
		}
		sameMemory(t, abus, bbus, "program %d: % x", i, code)
	}
}

// sameMemory fails the test, with what it says, where two machines' memory differs.
func sameMemory(t *testing.T, a, b *testBus, format string, args ...any) {
	t.Helper()
	for p, pg := range a.pages {
		if !bytes.Equal(pg.b[:], b.pages[p].b[:]) {
			t.Fatalf(format+"\npage %#x differs", append(args, p)...)
		}
	}
}

// TestRunLimit stops at every count of a program and compares with steps.
func TestRunLimit(t *testing.T) {
	rows := blockRows()
	rng := rand.New(rand.NewPCG(8, 8))
	for i := range 60 {
		code := randomProgram(rng, rows, 20)
		seed := rng.Uint64()
		s, _ := machine(seed, code, Vendor(i&1))
		for limit := uint64(1); ; limit++ {
			e := ExitNone
			for e == ExitNone && s.Retired < limit {
				e = s.Step()
			}
			r, _ := machine(seed, code, Vendor(i&1))
			re := r.Run(limit)
			if e == ExitNone {
				e = ExitLimit
			}
			if x, y := describe(r, re), describe(s, e); x != y {
				t.Fatalf("program %d limit %d: % x\nrun:   %s\nsteps: %s", i, limit, code, x, y)
			}
			if e != ExitLimit {
				break
			}
		}
	}
}

// TestOpSize: see op.
func TestOpSize(t *testing.T) {
	if n := unsafe.Sizeof(op{}); n != 32 {
		t.Errorf("op has %d bytes, want 32", n)
	}
}
