package slice

import "vplay/replay/analysis/dataflow"

// String instructions in the walk. One with REP is one instruction that moves up to the whole
// of memory: what it copied is followed byte by byte.

// span is a part of a copy whose bytes are live at its destination.
type span struct {
	off  uint64
	mask uint64
}

// repeated explains what a string instruction wrote: words are where its source and its
// destination begin, and how many bytes it went over.
func (w *walker) repeated(k *instruction, ws []uint64) func(*node) {
	src, dst, n := ws[0], ws[1], ws[2]
	if n == 0 {
		return nil
	}
	var spans []span
	data, steps := &k.Flows[0], &k.Flows[len(k.Flows)-1]
	switch {
	case data.Store >= 0 && data.Copies && distance(src, dst) < n:
		// It copies what it wrote itself, or writes over what it copies later: all that it wrote
		// counts as made of all that it read.
		w.takeMemory(dst, n)
		if w.isHit {
			spans = whole(n)
		}
	case data.Store >= 0 && data.Copies:
		spans = w.takeCopy(dst, n)
	case data.Store >= 0:
		w.takeMemory(dst, n)
	}
	isData := w.isHit
	isData = w.takePieces(data.Writes) || isData
	isStep := w.takePieces(steps.Writes)
	return func(v *node) {
		need := v.need[ForValue]
		for _, s := range spans {
			w.over = !w.mem.put(src+s.off, s.mask, need, w.sets) || w.over
		}
		if w.only {
			return
		}
		if isData {
			w.putPieces(data.Reads, need)
			if !data.Copies {
				w.putLoads(data, src, dst, n, need)
			}
		}
		if isStep {
			w.putPieces(steps.Reads, need)
			w.putLoads(steps, src, dst, n, need)
		}
		w.putAddress(k, v)
	}
}

// distance is how far apart two addresses are.
func distance(a, b uint64) uint64 { return max(a, b) - min(a, b) }

// whole is n bytes, all of them.
func whole(n uint64) (out []span) {
	for off := uint64(0); off < n; off += 64 {
		out = append(out, span{off, 1<<min(n-off, 64) - 1})
	}
	return out
}

// takeCopy takes what is live of the destination of a copy, and returns which bytes of the
// source that were.
func (w *walker) takeCopy(dst, n uint64) (spans []span) {
	for off := uint64(0); off < n; off += 64 {
		if live := w.mem.window(dst+off, int(min(n-off, 64))); live != 0 {
			w.mem.take(dst+off, live, w.needed)
			spans = append(spans, span{off, live})
		}
	}
	return spans
}

// putLoads makes live what a string instruction read.
func (w *walker) putLoads(f *dataflow.Flow, src, dst, n uint64, need uint32) {
	for _, l := range f.Loads {
		a := src
		if l == 1 {
			a = dst
		}
		for off := uint64(0); off < n; off += 64 {
			w.putMemory(a+off, int(min(n-off, 64)), need)
		}
	}
}
