package slice

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"vplay/replay/analysis/dataflow"
	"vplay/replay/analysis/internal/randomcode"
	"vplay/replay/x86"
)

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
		code := randomcode.Bytes(r, 4)
		in, err := x86.DecodeInst(code, randomcode.At, id)
		if err != nil || in.Flags&x86.InstEVEX != 0 || x86.Rows()[in.Row].Attr("refuse") {
			continue
		}
		row := &x86.Rows()[in.Row]
		k := compile(randomcode.At, &in, false)
		if k.Repeats || strings.HasPrefix(row.Mnemonic, "XSAVE") || strings.HasPrefix(row.Mnemonic, "XRSTOR") {
			continue // they go on for as long as RCX says; they look at XINUSE
		}
		one := x86.New(&randomcode.Memory{Code: code, Stored: map[uint64]byte{}}, id)
		s.noise(&one.State)
		one.RIP, one.R[x86.RCX] = randomcode.At, one.R[x86.RCX]&0xffff
		start := one.State
		if one.Step() != x86.ExitNone {
			continue
		}
		for i := range k.Flows {
			f := &k.Flows[i]
			two := x86.New(&randomcode.Memory{Code: code, Stored: map[uint64]byte{}}, id)
			s.noise(&two.State)
			two.RIP = randomcode.At
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
				same = same && maps.Equal(one.Bus.(*randomcode.Memory).Stored, two.Bus.(*randomcode.Memory).Stored)
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
