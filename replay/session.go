package replay

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// An open recording, ready to be replayed: the emulated CPU's identity, and its
// intervals, read and checked when they are first asked for, with a bound on how long
// each may run. Whatever runs is a Machine (machine.go).

// Session is an open recording and what has been learnt of it. It is safe for
// concurrent use; the machines it makes are not.
type Session struct {
	Rec  *checkpoint.Recording
	Pool *mem.Pool

	objects map[uint32]checkpoint.Object
	cpu     *x86.CPUIdentity
	layout  *x86.XLayout

	mu        sync.Mutex
	intervals map[uint32]*interval
}

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

// NewSession opens the machine side of a recording. Close releases its memory;
// the recording stays open.
func NewSession(rec *checkpoint.Recording) (*Session, error) {
	m := rec.Manifest()
	cpu := identity(&m.CPU)
	s := &Session{
		Rec:       rec,
		Pool:      mem.NewPool(),
		objects:   loader.ObjectTable(rec),
		cpu:       cpu,
		layout:    &cpu.Layout,
		intervals: map[uint32]*interval{},
	}
	s.Pool.SetLimit(rec.Budget().Memory())
	s.Pool.Reserve(slices.Sorted(maps.Keys(s.objects)))
	return s, nil
}

// Close gives the session's guest memory back. The error is the system's.
func (s *Session) Close() error { return s.Pool.Close() }

// identity converts the recorded CPU's description for the processor.
func identity(id *checkpoint.Identity) *x86.CPUIdentity {
	v := x86.VendorIntel
	if id.Vendor == "AuthenticAMD" || id.Vendor == "HygonGenuine" {
		v = x86.VendorAMD
	}
	cpu := &x86.CPUIdentity{
		Vendor: v, Family: id.Family, Model: id.Model, Stepping: id.Stepping, XCR0: id.XCR0,
		TSCAux: id.TSCAux, Leaves: leaves(id.CPUID), Real: leaves(id.CPUIDReal), Edited: id.Faulting,
	}
	cpu.Layout = x86.LayoutFromCPUID(v, id.XCR0, func(leaf, subleaf uint32) (uint32, uint32, uint32, uint32) {
		r := cpu.Own(leaf, subleaf)
		return r[0], r[1], r[2], r[3]
	})
	if id.Faulting && len(id.CPUIDReal) == 0 {
		// Recorded by a version that did not keep what it edited away in leaf 7.
		d := x86.DefaultLayout(v, id.XCR0)
		cpu.Layout.NoSelectors, cpu.Layout.DataOnException = d.NoSelectors, d.DataOnException
	}
	return cpu
}

func leaves(l []checkpoint.CPUIDLeaf) []x86.CPUIDLeaf {
	var out []x86.CPUIDLeaf
	for _, l := range l {
		out = append(out, x86.CPUIDLeaf{Leaf: l.Leaf, Subleaf: l.Subleaf, EAX: l.EAX, EBX: l.EBX, ECX: l.ECX, EDX: l.EDX})
	}
	return out
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
		return nil, s.damaged(id, err.Error())
	}
	space := loader.Space(s.Pool, s.Rec, raw, src)
	iv.start = space.Snapshot()
	space.Close()
	s.intervals[id] = iv
	return iv, nil
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
	check := func(where string, img []byte) error {
		if len(img) == 0 {
			return nil
		}
		var st x86.State
		if err := st.SetXState(img, s.layout); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		return nil
	}
	for i := range iv.Start {
		if err := check("the start", iv.Start[i].XState); err != nil {
			return err
		}
	}
	for i := range iv.End.Contexts {
		if err := check("the end", iv.End.Contexts[i].XState); err != nil {
			return err
		}
	}
	for i := range iv.Events {
		if err := check(fmt.Sprintf("event %d", i), iv.Events[i].XState); err != nil {
			return err
		}
	}
	return nil
}

// read reads interval id. Where the budget has no room for it, the intervals that
// are kept make room and are read again when they are wanted. Their snapshots are
// left to the collector: somebody may be about to begin at one.
func (s *Session) read(id uint32) (raw *checkpoint.Interval, src *loader.Source, err error) {
	for try := range 2 {
		if raw, err = s.Rec.Interval(id); err == nil {
			src, err = loader.NewSource(s.Rec, id)
		}
		var limit *checkpoint.LimitError
		if try > 0 || len(s.intervals) == 0 || !errors.As(err, &limit) || limit.Work {
			break
		}
		clear(s.intervals)
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

// maxRate is how many instructions a CPU may retire in a nanosecond: a Zen 5
// does 12 in a loop of stack operations that it forwards in registers.
const maxRate = 32

// limitOf is how many instructions an interval may have at most, so that a
// program gone astray is noticed: by its CPU time, and no fewer than a million.
func limitOf(cpu time.Duration) uint64 {
	return uint64(max(cpu, 0))*maxRate + 1_000_000
}
