package checkpoint

import "fmt"

// Positions: how a place in a recording is named, and their order. Whoever stands at a
// position is package replay's.

// Position names a moment of a recording: I:N.S. Positions are totally
// ordered. Instr counts the instructions retired since the interval's start;
// Step counts what happened at that count without retiring an instruction
// (applied events, signal frames, then REP iterations). The end of an interval
// and the start of the next are one moment; the later name is canonical.
type Position struct {
	Interval uint32
	Instr    uint64
	Step     uint32
}

// MarshalText implements encoding.TextMarshaler: the text form I:N.S.
func (p Position) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// String returns the text form I:N.S.
func (p Position) String() string {
	return fmt.Sprintf("%d:%d.%d", p.Interval, p.Instr, p.Step)
}

// Compare returns -1, 0 or +1 as p is before, at or after q.
func (p Position) Compare(q Position) int {
	switch {
	case p.Interval != q.Interval:
		return cmpU64(uint64(p.Interval), uint64(q.Interval))
	case p.Instr != q.Instr:
		return cmpU64(p.Instr, q.Instr)
	default:
		return cmpU64(uint64(p.Step), uint64(q.Step))
	}
}

func cmpU64(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
