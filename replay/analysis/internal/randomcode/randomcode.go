// Package randomcode makes random instructions and memory for them, for tests that execute an instruction twice
// with other values of what it should not depend on.
package randomcode

import (
	"math/rand/v2"

	"vplay/replay/x86"
)

// At is where the code stands.
const At = 0x10_0000_0000

// Bytes returns bytes that are an instruction more often than not: of so many shapes, 4 or 5; the fifth is that of
// three-byte opcodes.
func Bytes(r *rand.Rand, shapes int) []byte {
	b := make([]byte, 15)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	switch r.IntN(shapes) {
	case 0: // VEX
		b[0] = 0xc5 - byte(r.IntN(2))
	case 1:
		b[0] = 0x0f
	case 2:
		b[0], b[1] = [...]byte{0x66, 0xf2, 0xf3, 0x48}[r.IntN(4)], 0x0f
	case 3:
		if shapes > 4 {
			b[0], b[1] = 0x66, 0x0f
			b[2] = 0x38 + byte(r.IntN(2))*2
		}
	}
	return b
}

// OfRow returns bytes that are an instruction of a row more often than not: what the row leaves open is random.
func OfRow(r *rand.Rand, row *x86.Row) []byte {
	e := &row.Encoding
	mandatory := map[x86.Prefix]byte{x86.Prefix66: 1, x86.PrefixF3: 2, x86.PrefixF2: 3}[e.Prefix]
	random := func() byte { return byte(r.Uint32()) }
	var b []byte
	fields := mandatory // W, vvvv and pp of VEX and EVEX
	if fields |= 0x78; e.VVVV {
		fields = mandatory | random()&0x78
	}
	if e.W == 1 || e.W < 0 && r.IntN(2) == 0 {
		fields |= 0x80
	}
	switch {
	case e.EVEX:
		last := random() &^ 0x80 // zeroing is right for few
		if r.IntN(3) == 0 {
			last |= 0x80
		}
		if !e.VVVV {
			last |= 8
		}
		b = append(b, 0x62, random()&0xf0|e.Map, fields|4, last)
	case e.VEX:
		if e.L == 1 || e.L < 0 && r.IntN(2) == 0 {
			fields |= 4
		}
		b = append(b, 0xc4, random()&0xe0|e.Map, fields)
	default:
		if mandatory > 0 {
			b = append(b, [...]byte{0x66, 0xf3, 0xf2}[mandatory-1])
		}
		if e.W == 1 {
			b = append(b, 0x48)
		}
		b = append(b, [...][]byte{{}, {0x0f}, {0x0f, 0x38}, {0x0f, 0x3a}}[e.Map&3]...)
	}
	b = append(b, e.Opcode)
	modRM := random()
	switch {
	case e.Second >= 0:
		if modRM = byte(e.Second); e.PlusI {
			modRM |= random() & 7
		}
	case e.Digit >= 0:
		modRM = modRM&0xc7 | byte(e.Digit)<<3
	}
	switch {
	case e.Second >= 0:
	case e.Mod == x86.ModMem:
		modRM = modRM&0x3f | byte(r.IntN(3))<<6
	case e.Mod == x86.ModReg || r.IntN(2) == 0:
		modRM |= 0xc0
	}
	if e.ModRM || e.Second >= 0 {
		b = append(b, modRM)
	}
	for len(b) < 15 {
		b = append(b, random())
	}
	return b
}

// Memory is memory of which each byte depends on its address alone until it is stored to. It implements x86.Bus.
type Memory struct {
	Code   []byte          // what is fetched, wherever
	Stored map[uint64]byte // what was stored; not nil
	// Change, when not nil, returns the byte that stands at an address in place of b.
	Change func(at uint64, b byte) byte
}

// Translate, Read, Write, Probe, Fetch and CodeID implement x86.Bus.
func (m *Memory) Translate(uint64, x86.Access) (*[4096]byte, bool) { return nil, false }

func (m *Memory) Read(a uint64, b []byte) x86.Fault {
	for i := range b {
		at := a + uint64(i)
		v, ok := m.Stored[at]
		if !ok {
			if v = byte(at * 0x9e3779b97f4a7c15 >> 56); m.Change != nil {
				v = m.Change(at, v)
			}
		}
		b[i] = v
	}
	return x86.Fault{}
}

func (m *Memory) Write(a uint64, b []byte) x86.Fault {
	for i, v := range b {
		m.Stored[a+uint64(i)] = v
	}
	return x86.Fault{}
}

func (m *Memory) Probe(uint64, int, x86.Access) x86.Fault   { return x86.Fault{} }
func (m *Memory) Fetch(_ uint64, b []byte) (int, x86.Fault) { return copy(b, m.Code), x86.Fault{} }
func (m *Memory) CodeID(uint64) uint64                      { return 0 }
