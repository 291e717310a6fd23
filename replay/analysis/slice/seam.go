package slice

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/bits"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/analysis/dataflow"
	"vplay/replay/mem"
)

// The seam between two intervals behind a call whose effects were not recorded: the next
// interval has an image of its own. What is the same on both sides counts as unchanged; what
// differs came from that call.

// seam is both sides of a gap.
type seam struct {
	gap           checkpoint.Event
	at            checkpoint.Position
	before, after *replay.Side
}

// newSeam returns the seam between two intervals.
func newSeam(ctx context.Context, tr *replay.Tracing, prev, next uint32) (*seam, error) {
	before, after, gap, err := tr.Seam(ctx, prev, next)
	if err != nil {
		return nil, err
	}
	return &seam{gap: gap, at: before.Pos, before: before, after: after}, nil
}

// seam explains what differs between the sides of a gap.
func (w *walker) seam(s *seam) {
	defer s.before.Close()
	defer s.after.Close()
	w.isHit = false
	w.mem.within(0, mem.MaxUser, func(a, mask uint64) {
		if changed := mask & differing(s, a); changed != 0 {
			w.mem.take(a, changed, w.needed)
		}
	})
	for tid, r := range w.regs {
		if live := r.live().And(s.registers(tid)); !live.IsEmpty() {
			r.take(live, w.needed)
		}
	}
	if w.isHit {
		w.graph.outside(callSource(Gap, &s.gap, &s.gap.Args, "memory"), w.need, here(s.at))
	}
}

// differing returns which of the 64 bytes at a are not the same on both sides, a bit each.
func differing(s *seam, a uint64) (mask uint64) {
	var b, c [64]byte
	n, _ := s.before.Mem.Peek(a, b[:])
	m, _ := s.after.Mem.Peek(a, c[:])
	if n == m && bytes.Equal(b[:n], c[:n]) && n == len(b) {
		return 0
	}
	for i := range b {
		if i >= n || i >= m || b[i] != c[i] {
			mask |= 1 << i
		}
	}
	return mask
}

// registers returns the bytes of a thread's general registers that differ; all of them where
// a side does not have the thread.
func (s *seam) registers(tid checkpoint.TID) (out dataflow.RegSet) {
	b, ok := s.before.Regs[tid]
	a, also := s.after.Regs[tid]
	for r := range uint8(16) {
		x := b[r] ^ a[r]
		if !ok || !also {
			x = ^uint64(0)
		}
		var bs [8]byte
		binary.LittleEndian.PutUint64(bs[:], x)
		for i, v := range bs {
			if bits.OnesCount8(v) > 0 {
				out.Add(dataflow.BytesOf(r, i, 1))
			}
		}
	}
	return out
}
