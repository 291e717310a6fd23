//go:build linux && amd64

package differential

import (
	"math/rand/v2"
	"testing"

	"vplay/replay/x86"
)

// TestSelfModifyingAgainstCPU runs loops whose instructions change the
// immediates of others, ahead and behind: the CPU executes the new bytes at
// once, and so must blocks that were decoded before.
func TestSelfModifyingAgainstCPU(t *testing.T) {
	s := newSession(t)
	n := 5000
	if testing.Short() {
		n = 500
	}
	r := rand.New(rand.NewPCG(*seedFlag, 5))
	for range n / 100 {
		var batch []*Case
		for range 100 {
			batch = append(batch, selfModifying(r))
		}
		l, err := s.Check(batch)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range l {
			t.Fatalf("%s\n\t%s", f.Case.Line(&f.Want), f.Diff)
		}
	}
}

// selfModifying makes a loop of ALU instructions with byte immediates and of
// stores to those immediates.
func selfModifying(r *rand.Rand) *Case {
	k := &Case{Row: -1, In: DefaultRegs(), WritableCode: true, Offset: 0x800}
	if r.IntN(3) == 0 {
		k.Offset = uint32(pageSize - r.IntN(60)) // stores and targets on two pages
	}
	k.In.RIP = CodeBase + uint64(k.Offset)
	var immediates []int // offsets of bytes that may be changed
	type store struct{ dispAt, end int }
	var stores []store
	n := 3 + r.IntN(4)
	for range n {
		if r.IntN(2) == 0 && len(stores) < 3 {
			switch r.IntN(3) {
			case 0: // mov byte [rip+d], imm8
				k.Code = append(k.Code, 0xc6, 0x05, 0, 0, 0, 0, byte(r.Uint32()))
				stores = append(stores, store{len(k.Code) - 5, len(k.Code)})
			case 1: // add byte [rip+d], imm8
				k.Code = append(k.Code, 0x80, 0x05, 0, 0, 0, 0, byte(r.Uint32()))
				stores = append(stores, store{len(k.Code) - 5, len(k.Code)})
			case 2: // mov [rip+d], bl
				k.Code = append(k.Code, 0x88, 0x1d, 0, 0, 0, 0)
				stores = append(stores, store{len(k.Code) - 4, len(k.Code)})
			}
			continue
		}
		reg := []byte{0, 2, 3, 6, 7}[r.IntN(5)] // not rcx, which counts
		k.Code = append(k.Code, 0x48, 0x83, 0xc0|byte(r.IntN(8))<<3|reg, byte(r.Uint32()))
		immediates = append(immediates, len(k.Code)-1)
	}
	k.Code = append(k.Code, 0x48, 0x83, 0xc3, 0x11) // add rbx, 11h
	immediates = append(immediates, len(k.Code)-1)
	k.Code = append(k.Code, 0xe2, byte(-2-len(k.Code))) // loop
	for _, s := range stores {
		appendLE(k.Code[:s.dispAt], uint64(immediates[r.IntN(len(immediates))]-s.end), 4)
	}
	times := 1 + r.IntN(6)
	k.In.R[x86.RCX] = uint64(times)
	k.Steps = times * (n + 2)
	return k
}
