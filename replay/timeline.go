package replay

import (
	"errors"
	"fmt"

	"vplay/checkpoint"
)

// A timeline, from its making to its closing, and its plain properties. Movements are
// in cursor.go, queries in query.go, what is learnt in index.go and indexer.go.

// Timeline is what is known of one program's execution, from its execve (or the
// beginning of the recording) to its end (or the next execve). [Cursor] moves along
// it; queries look into it without a cursor; an indexer in the background learns
// about it while nobody asks. All of them draw on one index and add to it.
//
// It is safe for concurrent use. Methods that replay return *DivergenceError,
// *NotCapturedError or *UnsupportedError where the recording does not replay, and
// *checkpoint.FormatError where the file is damaged.
type Timeline struct {
	index   *index
	indexer indexer
}

// snapshotSpacing is the distance, in instructions, of the snapshots that a run
// leaves behind, unless told otherwise; near a backward goal they are denser. It
// is the length of segments as well.
const snapshotSpacing = 2_000_000

// NewTimeline returns a timeline over the intervals of the process that the recording is
// about, since its last execve. memory bounds what its snapshots keep, in bytes. A recording
// without intervals is an error.
func NewTimeline(s *Session, memory int64) (*Timeline, error) {
	return NewImageTimeline(s, s.Rec.LastImage(), memory)
}

// NewProcessTimeline is NewTimeline for any process of the recording. The error
// wraps checkpoint.ErrNoProcess for one that has no interval.
func NewProcessTimeline(s *Session, pid int32, memory int64) (*Timeline, error) {
	infos := s.Rec.LastImageOf(pid)
	if len(infos) == 0 {
		return nil, fmt.Errorf("%w: %d in %s", checkpoint.ErrNoProcess, pid, s.Rec.File())
	}
	return NewImageTimeline(s, infos, memory)
}

// NewImageTimeline is NewTimeline for one of Recording.ImagesOf.
func NewImageTimeline(s *Session, infos []checkpoint.IntervalInfo, memory int64) (*Timeline, error) {
	if len(infos) == 0 {
		return nil, errors.New("replay: the recording holds no interval")
	}
	x := &index{s: s, infos: infos, budget: memory, spacing: snapshotSpacing, known: map[uint32]*intervalIndex{}, cursors: map[*runner]checkpoint.Position{}}
	for _, i := range infos {
		x.intervals = append(x.intervals, i.ID)
	}
	r, err := newRunner(x, x.intervals[0], stops{})
	if err != nil {
		return nil, err
	}
	defer r.m.Close()
	r.keep()
	if _, err := r.settle(); err != nil {
		x.close()
		return nil, err
	}
	x.begin = r.m.Position()
	return &Timeline{index: x}, nil
}

// Close ends the indexer and gives all snapshots back. Cursors are closed before.
func (t *Timeline) Close() {
	t.StopIndexer()
	t.index.close()
}

// PID returns the process whose execution it is.
func (t *Timeline) PID() int32 { return t.index.infos[0].PID }

// Begin returns the first position.
func (t *Timeline) Begin() checkpoint.Position { return t.index.begin }

// future is a position behind all others.
var future = checkpoint.Position{Interval: ^uint32(0), Instr: ^uint64(0)}

// End returns a position behind all others, for the queries that want one to search
// before.
func (t *Timeline) End() checkpoint.Position { return future }

// Intervals returns the IDs of the intervals, in order.
func (t *Timeline) Intervals() []uint32 { return t.index.intervals }

// SetSpacing sets the distance, in instructions, of the snapshots that runs will leave
// behind, and with it the length of the segments that searches tell apart. It is
// for recordings of unusual length.
// Preconditions: n is above 0, and nothing has been replayed yet.
func (t *Timeline) SetSpacing(n uint64) { t.index.spacing = n }
