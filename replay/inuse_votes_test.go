package replay

import (
	"testing"

	"vplay/replay/x86"
)

// TestVotes: the recorded end says what was in use, where the program has not stored over it.
func TestVotes(t *testing.T) {
	const avx, wide = 4, 0x40
	v := &solver{saves: []save{{InUse: x86.InUse{Maybe: avx | wide}}, {InUse: x86.InUse{Maybe: avx | wide}}}}
	fill := func(b byte) (l []byte) {
		for range 64 {
			l = append(l, b)
		}
		return l
	}
	// The first save's AVX area, where the second one's is from byte 32 on, and the first one's ZMM area.
	first, second, other := &piece{save: 0, component: avx, bytes: fill(1)}, &piece{save: 1, component: avx, off: 32, bytes: fill(2)}, &piece{save: 0, component: wide, off: 128, bytes: fill(3)}
	end := map[int]byte{}
	for i := range 32 {
		end[i], end[32+i] = 1, 9 // the first save's; then what the program has stored
		end[64+i] = 2            // the second's
		end[128+i] = 0           // what was there before
	}
	out := make([]vote, len(v.saves))
	for off, b := range end {
		var cover []*piece
		for _, p := range []*piece{first, second, other} {
			if off >= p.off && off < p.off+len(p.bytes) {
				cover = append(cover, p)
			}
		}
		v.count(out, &openByte{off: off, cover: cover}, b)
	}
	for i, want := range []uint64{avx, avx | wide} {
		if got := out[i].bits(avx|wide, wide); got != want {
			t.Errorf("save %d: %#x was in use, want %#x (%+v)", i, got, want, out[i])
		}
	}
	// The byte that shows the components is the best witness.
	out = make([]vote, len(v.saves))
	v.count(out, &openByte{raw: 0x82, cover: []*piece{{save: 1, bytes: []byte{0}}}}, 0x82|wide)
	if got := out[1].bits(avx|wide, 0); got != wide {
		t.Errorf("by the header %#x was in use, want %#x", got, wide)
	}
}

// TestVotesOfZeros: zeros are what XSAVE stores of a component in its initial state, and what half a stack is made of. A compiler's stack,
// 15*10^9 instructions later, had the counts of the first two.
func TestVotesOfZeros(t *testing.T) {
	const avx = 4
	for _, c := range []struct {
		zeros, no    int
		likely, want uint64
	}{
		{49, 56, 0, 0}, {49, 56, avx, avx}, {21, 64, 0, 0},
		{49, 5, 0, avx}, {3, 60, avx, 0}, {0, 1, avx, 0}, {0, 0, avx, avx}, {1, 0, 0, avx},
	} {
		var x vote
		x.zeros.add(avx, c.zeros)
		x.no.add(avx, c.no)
		if got := x.bits(avx, c.likely); got != c.want {
			t.Errorf("%d zeros, %d others, likely %#x: %#x, want %#x", c.zeros, c.no, c.likely, got, c.want)
		}
	}
}
