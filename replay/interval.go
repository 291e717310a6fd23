package replay

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// The intervals of a session: read and checked when they are first asked for, kept until
// room is needed, with a bound on how long each may run.

// interval is one interval made ready to run.
type interval struct {
	*checkpoint.Interval
	src   *loader.Source
	start *mem.Snapshot

	first  *thread // that runs at the start
	others threads

	charged int     // how many events' changes of the map the budget knows; see spendOnMaps
	answers answers // about state components in use

	mu  sync.Mutex
	end *endPoint // where a forced end was found
}

// endPoint is the place of a forced end: a count and REP iterations beyond it.
type endPoint struct {
	instr, rep uint64
}

// interval returns interval id, decoded and with its start image ready.
func (s *Session) interval(id uint32) (*interval, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if iv := s.intervals[id]; iv != nil {
		return iv, nil
	}
	raw, src, err := s.read(id)
	if err != nil {
		return nil, err
	}
	iv := &interval{Interval: raw, src: src}
	if len(raw.Start) == 0 {
		return nil, s.damaged(id, "it has no thread")
	}
	if raw.End.Kind == checkpoint.EndForced && len(raw.End.Contexts) == 0 {
		return nil, s.damaged(id, "its end has no thread")
	}
	if err := s.checkXStates(raw); err != nil {
		return nil, s.damaged(id, err.Error())
	}
	if iv.first, iv.others, err = s.startThreads(raw); err != nil {
		var limit *checkpoint.LimitError
		if errors.As(err, &limit) {
			limit.File = s.Rec.File()
			return nil, limit
		}
		return nil, s.damaged(id, err.Error())
	}
	space := loader.Space(s.Pool, s.Rec, raw, src)
	iv.start = space.Snapshot()
	space.Close()
	s.intervals[id] = iv
	if _, known := s.summaries[id]; !known {
		s.summaries[id] = summarize(raw.Events)
	}
	return iv, nil
}

// summary returns which kinds of events interval id has; known says that it was read once.
func (s *Session) summary(id uint32) (sum eventSummary, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum, known = s.summaries[id]
	return sum, known
}

// Events returns the log of interval id. The caller must not change it. Errors: as
// Machine.
func (s *Session) Events(id uint32) ([]checkpoint.Event, error) {
	iv, err := s.interval(id)
	if err != nil {
		return nil, err
	}
	return iv.Events, nil
}

// damaged is the error of an interval that was read and makes no sense.
func (s *Session) damaged(id uint32, what string) error {
	return &checkpoint.FormatError{File: s.Rec.File(), Member: fmt.Sprintf("interval %d", id), Offset: -1, What: what}
}

// checkXStates looks at all extended states of an interval, so that a bad one is not
// taken for a difference of the replay.
func (s *Session) checkXStates(iv *checkpoint.Interval) error {
	check := func(img []byte) error {
		if len(img) == 0 { // of nearly all events
			return nil
		}
		var st x86.State
		return st.SetXState(img, s.layout)
	}
	for i := range iv.Start {
		if err := check(iv.Start[i].XState); err != nil {
			return fmt.Errorf("the start: %w", err)
		}
	}
	for i := range iv.End.Contexts {
		if err := check(iv.End.Contexts[i].XState); err != nil {
			return fmt.Errorf("the end: %w", err)
		}
	}
	for i := range iv.Events {
		if err := check(iv.Events[i].XState); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
	}
	return nil
}

// intervalWork is what it takes to begin to replay an interval, however short, in bytes of
// work: a hundred microseconds.
const intervalWork = 224 << 10

// vainShare is the part of the limit of memory that is work where an interval does not fit.
const vainShare = 2

// read reads interval id. Where the budget has no room for it, the intervals that
// are kept make room and are read again when they are wanted. Their snapshots are
// left to the collector: somebody may be about to begin at one.
func (s *Session) read(id uint32) (raw *checkpoint.Interval, src *loader.Source, err error) {
	if err := s.Rec.Spend(intervalWork, fmt.Sprintf("interval %d: begun", id)); err != nil {
		return nil, nil, err
	}
	var limit *checkpoint.LimitError
	for try := range 2 {
		if raw, err = s.Rec.Interval(id); err == nil {
			src, err = loader.NewSource(s.Rec, id)
		}
		if try > 0 || len(s.intervals) == 0 || !errors.As(err, &limit) || limit.Work {
			break
		}
		clear(s.intervals)
	}
	if errors.As(err, &limit) && !limit.Work {
		// It was read in vain, up to the limit. A file can have thousands of intervals that do not
		// fit, each of which would be tried: behind a few no other begins.
		_ = s.Rec.Budget().Spend(limit.Limit/vainShare, "intervals that do not fit")
	}
	return raw, src, err
}

// Forget drops what is kept of interval id, to bound memory on long walks over
// a recording. Machines that are inside it stay usable.
func (s *Session) Forget(id uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if iv := s.intervals[id]; iv != nil {
		iv.start.Release()
		delete(s.intervals, id)
	}
}

// maxRate is how many instructions a CPU may retire in a nanosecond. A Zen 4 was measured to do 44 NOPs: it takes two
// as one, and six such pairs a cycle. A Zen 5 takes eight operations a cycle, at up to 5.7 GHz: 91 in pairs.
const maxRate = 128

// limitOf is how many instructions an interval may have at most, so that a
// program gone astray is noticed: by its CPU time, and no fewer than a million.
func limitOf(cpu time.Duration) uint64 {
	return uint64(max(cpu, 0))*maxRate + 1_000_000
}
