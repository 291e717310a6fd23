package abi

import (
	"encoding/binary"
	"errors"
	"testing"
)

// fuzzMemory has content at every other page, made from a seed: pointers into
// itself, lengths and small numbers, so that the irregular rows go deep.
type fuzzMemory struct{ seed []byte }

func (f fuzzMemory) ReadAt(addr uint64, b []byte) int {
	for i := range b {
		at := addr + uint64(i)
		if at/PageSize%4 == 3 || len(f.seed) == 0 || at >= TaskSize {
			return i
		}
		b[i] = f.seed[at%uint64(len(f.seed))]
	}
	return len(b)
}

func FuzzOutputsAndFormat(f *testing.F) {
	seed := binary.LittleEndian.AppendUint64(nil, 0x10000)
	seed = binary.LittleEndian.AppendUint64(seed, 64)
	for _, s := range Table() {
		f.Add(s.NR, uint64(3), uint64(0x10000), uint64(0x20000), uint64(16), uint64(0x10008), uint64(8), int64(5), seed)
	}
	f.Add(int64(16), uint64(1), uint64(0xc020660b), uint64(0x10000), uint64(0), uint64(0), uint64(0), int64(-14), []byte{0xff})
	f.Fuzz(func(t *testing.T, nr int64, a0, a1, a2, a3, a4, a5 uint64, ret int64, seed []byte) {
		m := fuzzMemory{seed}
		args := [6]uint64{a0, a1, a2, a3, a4, a5}
		kept := Range{1, 2}
		got, err := Outputs([]Range{kept}, m, nr, args, ret)
		if err != nil && !errors.Is(err, ErrOpaque) {
			t.Fatalf("error %v", err)
		}
		if len(got) == 0 || got[0] != kept {
			t.Fatal("what was in the slice is gone")
		}
		if err != nil && len(got) != 1 {
			t.Fatal("ranges beside an error")
		}
		total := uint64(0)
		for _, r := range got[1:] {
			if r.Len == 0 || r.Addr == 0 || r.Addr+r.Len < r.Addr || r.Addr+r.Len > TaskSize {
				t.Fatalf("bad range %x", r)
			}
			total += r.Len
		}
		if total > MaxOutput {
			t.Fatalf("%d bytes listed", total)
		}
		if text := Format(m, nr, args); len(text) > 1<<17 {
			t.Fatalf("%d bytes of text", len(text))
		}
		if text := FormatCall(m, nr, args, ret); len(text) > 1<<17 {
			t.Fatalf("%d bytes of text", len(text))
		}
		EffectOf(nr, args)
	})
}

func FuzzSiginfoAndSockaddr(f *testing.F) {
	f.Add([]byte{11, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Add([]byte{2, 0, 0, 80, 127, 0, 0, 1})
	f.Fuzz(func(_ *testing.T, b []byte) {
		_ = Siginfo(b).String()
		_ = FormatSockaddr(b)
		ParseAuxv(b)
	})
}
