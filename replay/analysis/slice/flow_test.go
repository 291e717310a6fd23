package slice

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// hashMemory is memory of which each byte depends on its address alone, and that notes what is
// stored.
type hashMemory struct {
	code   []byte
	stored map[uint64]byte
}

const codeAt = 0x10_0000_0000

// Translate, Read, Write, Probe, Fetch and CodeID implement x86.Bus.
func (m *hashMemory) Translate(uint64, x86.Access) (*[4096]byte, bool) { return nil, false }

func (m *hashMemory) Read(a uint64, b []byte) x86.Fault {
	for i := range b {
		at := a + uint64(i)
		v, ok := m.stored[at]
		if !ok {
			v = byte(at * 0x9e3779b97f4a7c15 >> 56)
		}
		b[i] = v
	}
	return x86.Fault{}
}

func (m *hashMemory) Write(a uint64, b []byte) x86.Fault {
	for i, v := range b {
		m.stored[a+uint64(i)] = v
	}
	return x86.Fault{}
}

func (m *hashMemory) Probe(uint64, int, x86.Access) x86.Fault   { return x86.Fault{} }
func (m *hashMemory) Fetch(_ uint64, b []byte) (int, x86.Fault) { return copy(b, m.code), x86.Fault{} }
func (m *hashMemory) CodeID(uint64) uint64                      { return 0 }

// reads returns the registers that flow f of k is made of, addresses included.
func (k *instruction) reads(f *dataflow.Flow) dataflow.RegSet {
	read := k.Address
	read.Add(f.Src)
	read.Add(dataflow.Ignored)
	if f.Copies {
		switch f.From.Kind {
		case dataflow.InGeneral:
			read.Add(dataflow.BytesOf(f.From.Reg, int(f.From.Off), min(int(f.N), 8-int(f.From.Off))))
		case dataflow.InVector:
			read.Add(dataflow.LanesOf(f.From.Reg, 0, 8))
		}
	}
	return read
}

// TestFlows: what a flow writes is a function of what it reads. Random instructions are executed
// twice, the second time with noise in all that a flow does not read; what it writes must be the
// same.
func TestFlows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	id := &x86.CPUIdentity{Vendor: x86.VendorAMD, XCR0: 7}
	s := &shadow{rand: r}
	tested, bad := map[uint16]bool{}, map[string]int{}
	for range 40_000 {
		code := randomCode(r)
		in, err := x86.DecodeInst(code, codeAt, id)
		if err != nil || in.Flags&x86.InstEVEX != 0 || x86.Rows()[in.Row].Attr("refuse") {
			continue
		}
		row := &x86.Rows()[in.Row]
		k := compile(codeAt, &in, false)
		if k.Repeats || strings.HasPrefix(row.Mnemonic, "XSAVE") || strings.HasPrefix(row.Mnemonic, "XRSTOR") {
			continue // they go on for as long as RCX says; they look at XINUSE
		}
		one := x86.New(&hashMemory{code, map[uint64]byte{}}, id)
		s.noise(&one.State)
		one.RIP, one.R[x86.RCX] = codeAt, one.R[x86.RCX]&0xffff
		start := one.State
		if one.Step() != x86.ExitNone {
			continue
		}
		for i := range k.Flows {
			f := &k.Flows[i]
			two := x86.New(&hashMemory{code, map[uint64]byte{}}, id)
			s.noise(&two.State)
			two.RIP = codeAt
			give(&two.State, &start, k.reads(f))
			if two.Step() != x86.ExitNone {
				continue
			}
			tested[in.Row] = true
			var want, got x86.State
			give(&want, &one.State, f.Dst)
			give(&got, &two.State, f.Dst)
			same := want == got
			if f.Store >= 0 || k.Spied {
				same = same && maps.Equal(one.Bus.(*hashMemory).stored, two.Bus.(*hashMemory).stored)
			}
			if !same {
				bad[row.Mnemonic]++
				if bad[row.Mnemonic] > 1 {
					continue
				}
				t.Errorf("%s %v % x: flow %d depends on more than it says", row.Mnemonic, row.Operands, code[:in.Len], i)
			}
		}
	}
	t.Logf("%d rows", len(tested))
	if len(tested) < 300 {
		t.Errorf("%d rows only", len(tested))
	}
}

// randomCode returns bytes that are an instruction more often than not.
func randomCode(r *rand.Rand) []byte {
	b := make([]byte, 15)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	switch r.IntN(4) {
	case 0: // VEX
		b[0] = 0xc5 - byte(r.IntN(2))
	case 1:
		b[0] = 0x0f
	case 2:
		b[0], b[1] = [...]byte{0x66, 0xf2, 0xf3, 0x48}[r.IntN(4)], 0x0f
	}
	return b
}
