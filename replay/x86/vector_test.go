package x86

import (
	"math"
	"math/rand/v2"
	"testing"
)

// vectorRows are the rows with cases of internal/isagen's vector.go.
func vectorRows() []*Row {
	var rows []*Row
	all := Rows()
	for i := range all {
		if r := &all[i]; r.class != 0 && r.File != "int" {
			rows = append(rows, r)
		}
	}
	return rows
}

// vectorInst encodes a row, with a VEX prefix of three bytes where it has one;
// memory operands are next to a register, mostly at a multiple of 16.
func vectorInst(rng *rand.Rand, r *Row) []byte {
	e := &r.Encoding
	pick := func(fixed int8, n int) byte {
		if fixed >= 0 {
			return byte(fixed)
		}
		return byte(rng.IntN(n))
	}
	w, l, low, vvvv := pick(e.W, 2), pick(e.L, 2), byte(rng.IntN(8)), byte(0)
	if len(r.Operands) > 2 {
		vvvv = byte(rng.IntN(16))
	}
	var b []byte
	if e.VEX {
		pp := map[Prefix]byte{Prefix66: 1, PrefixF3: 2, PrefixF2: 3}[e.Prefix]
		b = []byte{0xc4, low<<5 | e.Map, w<<7 | (15-vvvv)<<3 | l<<2 | pp, e.Opcode}
	} else {
		if p := map[Prefix]byte{Prefix66: 0x66, PrefixF3: 0xf3, PrefixF2: 0xf2}[e.Prefix]; p != 0 {
			b = append(b, p)
		}
		b = append(b, 0x40|w<<3|low, 0x0f)
		if e.Map == 2 {
			b = append(b, 0x38)
		}
		b = append(b, e.Opcode)
	}
	m := byte(rng.Uint32()) & 0x7f
	if e.Digit >= 0 {
		m = m&^0x38 | byte(e.Digit)<<3
	}
	if e.Mod == ModReg || e.Mod == ModAny && rng.IntN(2) == 0 {
		m |= 0xc0
	}
	b = append(b, m)
	if m < 0xc0 && m&7 == 4 {
		b = append(b, byte(rng.IntN(4))<<6|4<<3|byte(rng.IntN(8))) // no index, or r12
	}
	disp := byte(rng.IntN(16)-8) << 4
	if rng.IntN(4) == 0 {
		disp += byte(rng.IntN(16))
	}
	b = append(b, disp, 0, 0, 0, 0, 0)
	d, err := Decode(b)
	if err != nil || d.HasMem && d.Mem.Base == RIPReg {
		return nil
	}
	return b[:d.Len]
}

// vectorDouble is mostly a number with which the host may compute.
func vectorDouble(rng *rand.Rand) uint64 {
	switch rng.IntN(24) {
	case 0:
		return 0
	case 1:
		return 1 << 63
	case 2:
		return rng.Uint64() >> 12 // denormal
	case 3:
		return 0x7ff << 52
	case 4:
		return rng.Uint64()
	case 5:
		return 0x7ff<<52 | rng.Uint64()>>12
	case 6:
		return uint64(1+rng.IntN(3))<<52 | rng.Uint64()>>12 // next to the underflow boundary
	case 7:
		return uint64(0x7fe-rng.IntN(3))<<52 | rng.Uint64()>>12
	}
	return math.Float64bits(rng.NormFloat64())
}

// TestVectorBlocksAgainstSteps is TestBlocksAgainstSteps for vector cases,
// with XINUSE and MXCSR.
func TestVectorBlocksAgainstSteps(t *testing.T) {
	rows := vectorRows()
	if len(rows) < 100 {
		t.Fatalf("%d rows", len(rows))
	}
	rng := rand.New(rand.NewPCG(9, 9))
	retired := uint64(0)
	for i := range 2000 {
		var code []byte
		for n := rng.IntN(30); len(code) < 6*n; {
			r := rows[rng.IntN(len(rows))]
			code = append(code, vectorInst(rng, r)...)
		}
		code = append(code, 0x0f, 0x0b)
		seed, vendor := rng.Uint64(), Vendor(i&1)
		start := func() (*CPU, *testBus) {
			rng := rand.New(rand.NewPCG(seed, 2))
			c, bus := machine(seed, code, vendor)
			for a := uint64(testData); a < testTop; a += 8 {
				bus.put(a, le.AppendUint64(nil, vectorDouble(rng)))
			}
			for j := range c.V {
				c.V[j] = Vec{vectorDouble(rng), vectorDouble(rng), vectorDouble(rng), vectorDouble(rng)}
			}
			for j := range c.R {
				if rng.IntN(16) > 0 {
					c.R[j] = testData + 512 + 32*uint64(rng.IntN((testTop-testData-1024)/32))
				}
			}
			if rng.IntN(4) > 0 {
				c.MXCSR |= uint32(mxPE)
			}
			return c, bus
		}
		a, abus := start()
		b, bbus := start()
		ae := a.Run(1 << 40)
		be := ExitNone
		for be == ExitNone {
			be = b.Step()
		}
		retired += b.Retired
		if x, y := describe(a, ae), describe(b, be); x != y || a.MXCSR != b.MXCSR || a.NotInUse != b.NotInUse {
			t.Fatalf("program %d: % x\nblocks: %s %#x %d\nsteps:  %s %#x %d", i, code, x, a.MXCSR, a.NotInUse, y, b.MXCSR, b.NotInUse)
		}
		sameMemory(t, abus, bbus, "program %d: % x", i, code)
	}
	t.Logf("%d instructions", retired)
}
