package replay

import (
	"maps"
	"slices"
	"sync"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// An open recording, ready to be replayed. Its intervals are in interval.go, the processor
// that it is replayed on in identity.go. Whatever runs is a Machine (machine.go).

// Session is an open recording and what has been learnt of it. It is safe for
// concurrent use; the machines it makes are not.
type Session struct {
	Rec  *checkpoint.Recording
	Pool *mem.Pool
	// Engine makes what executes the instructions of each machine; nil means the
	// interpreter. It must be set before the first machine is made.
	Engine EngineMaker
	// EngineText, when set, says what Engine makes and what that takes, in a line for people.
	EngineText func() string

	objects map[uint32]checkpoint.Object
	cpu     *x86.CPUIdentity
	layout  *x86.XLayout

	mu        sync.Mutex
	intervals map[uint32]*interval
	summaries map[uint32]eventSummary // of those that were read
}

// EngineMaker returns an engine for the processor of a new machine, and what is called when the
// machine is closed; a nil engine means the interpreter. It is called concurrently.
type EngineMaker func(*x86.CPU) (e x86.Engine, release func())

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
		intervals: map[uint32]*interval{}, summaries: map[uint32]eventSummary{},
	}
	s.Pool.SetLimit(rec.Budget().Memory())
	s.Pool.Reserve(slices.Sorted(maps.Keys(s.objects)))
	return s, nil
}

// Close gives the session's guest memory back. The error is the system's.
func (s *Session) Close() error { return s.Pool.Close() }
