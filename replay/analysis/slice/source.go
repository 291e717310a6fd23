package slice

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/analysis/dataflow"
)

// Where traces come from: the stretches are made ahead of the walk, each on a machine of its
// own, and handed to it newest first. The walk knows nothing of machines.

// traces makes the stretches before a position.
type traces struct {
	ctx     context.Context
	t       *replay.Timeline
	p       *program
	o       *Options
	order   chan *job
	jobs    chan *job
	free    chan *stretch
	planned atomic.Uint64 // instructions of the intervals looked at
	running sync.WaitGroup
	idle    atomic.Pointer[[]uint64] // the pages that are live when nothing else is, see walker.idle
	late    *tracing                 // of stretches that were skipped too early
}

// tracing is a machine and who looks at it.
type tracing struct {
	*replay.Tracing
	t *tracer
}

// job is one stretch to be made.
type job struct {
	from, to checkpoint.Position
	seam     uint32 // the interval before, if this is the first of one behind a gap
	isSeam   bool
	done     chan made
}

type made struct {
	s   *stretch
	err error
}

// maxTracers bounds the machines, each of which has up to a stretch in memory: some 30 MB.
const maxTracers = 4

// newSource begins to make stretches. Preconditions: ctx is done before close is called.
func newSource(ctx context.Context, t *replay.Timeline, p *program, o *Options) *traces {
	n := min(runtime.GOMAXPROCS(0), maxTracers)
	x := &traces{ctx: ctx, t: t, p: p, o: o, order: make(chan *job, n), jobs: make(chan *job), free: make(chan *stretch, n+2)}
	x.running.Go(func() {
		defer close(x.order)
		defer close(x.jobs)
		x.plan()
	})
	for range n {
		x.running.Go(x.work)
	}
	return x
}

func (x *traces) close() {
	x.running.Wait()
	if x.late != nil {
		x.late.Close()
	}
}

// newTracing returns a machine for traces.
func (x *traces) newTracing() (*tracing, error) {
	t := &tracer{p: x.p, met: make([]met, 2), spy: &dataflow.Spy{Most: maxAccesses}}
	tr, err := x.t.NewTracing(t)
	if err != nil {
		return nil, err
	}
	return &tracing{tr, t}, nil
}

// make makes the trace of a stretch that was skipped.
func (x *traces) make(s *stretch) (err error) {
	if x.late == nil {
		if x.late, err = x.newTracing(); err != nil {
			return err
		}
	}
	seam := s.seam
	*s = stretch{from: s.from, to: s.to, seam: seam}
	return x.late.trace(x.ctx, s)
}

// next returns the stretch before the one returned last, nil when there is none.
func (x *traces) next() (*stretch, error) {
	j, ok := <-x.order
	if !ok {
		return nil, x.ctx.Err()
	}
	select {
	case m := <-j.done:
		return m.s, m.err
	case <-x.ctx.Done():
		return nil, x.ctx.Err()
	}
}

// recycle takes a stretch back for its memory.
func (x *traces) recycle(s *stretch) {
	select {
	case x.free <- s:
	default:
	}
}

// plan cuts the intervals into stretches, newest first.
func (x *traces) plan() {
	fail := func(err error) {
		j := &job{done: make(chan made, 1)}
		j.done <- made{err: err}
		x.send(x.order, j)
	}
	tr, err := x.t.NewTracing(nil)
	if err != nil {
		fail(err)
		return
	}
	defer tr.Close()
	ids := x.t.Intervals()
	n := x.o.length
	if n == 0 {
		n = stretchLength
	}
	for i := len(ids) - 1; i >= 0; i-- {
		if ids[i] > x.o.At.Interval || ids[i] < x.o.Oldest {
			continue
		}
		cuts, err := tr.Boundaries(x.ctx, ids[i], n)
		if err != nil {
			fail(err)
			return
		}
		if ids[i] == x.o.At.Interval {
			cuts = slices.DeleteFunc(cuts, func(p checkpoint.Position) bool { return p.Compare(x.o.At) >= 0 })
			cuts = append(cuts, x.o.At)
		}
		x.planned.Add(cuts[len(cuts)-1].Instr)
		for k := len(cuts) - 1; k > 0; k-- {
			j := &job{from: cuts[k-1], to: cuts[k], done: make(chan made, 1)}
			if k == 1 && i > 0 && x.t.EndsInGap(ids[i-1]) {
				j.isSeam, j.seam = true, ids[i-1]
			}
			if !x.send(x.order, j) || !x.send(x.jobs, j) {
				return
			}
		}
	}
}

func (x *traces) send(c chan *job, j *job) bool {
	select {
	case c <- j:
		return true
	case <-x.ctx.Done():
		return false
	}
}

// work makes stretches.
func (x *traces) work() {
	var tr *tracing
	var err error
	for j := range x.jobs {
		if tr == nil {
			if tr, err = x.newTracing(); err != nil {
				j.done <- made{err: err}
				continue
			}
			defer tr.Close()
		}
		s, err := x.do(tr, j)
		j.done <- made{s, err}
	}
}

// do makes the stretch of j, without a trace where that is not needed.
func (x *traces) do(tr *tracing, j *job) (*stretch, error) {
	s := x.empty()
	s.from, s.to = j.from, j.to
	var err error
	if j.isSeam {
		if s.seam, err = newSeam(x.ctx, tr.Tracing, j.seam, j.from.Interval); err != nil {
			return nil, err
		}
	}
	if pages := x.idle.Load(); pages != nil && untouched(x.t, *pages, j.from, j.to) {
		s.skipped, s.retired = true, j.to.Instr
		return s, nil
	}
	return s, tr.trace(x.ctx, s)
}

// trace makes the trace of s.
func (tr *tracing) trace(ctx context.Context, s *stretch) error {
	t := tr.t
	t.s, t.m, t.shared, t.spy.Count = s, nil, false, 0
	return tr.Run(ctx, replay.Stretch{
		From: s.from, To: s.to,
		Begin:  t.begin,
		Before: t.instruction, After: t.executed, Pending: &t.pending,
		Event: t.event,
		End: func(m *replay.Machine) {
			s.retired, s.tid = m.CPU.Retired, m.TID()
		},
	})
}

// empty returns a stretch with nothing in it.
func (x *traces) empty() *stretch {
	select {
	case s := <-x.free:
		*s = stretch{ids: s.ids[:0], words: s.words[:0]}
		return s
	default:
		return &stretch{ids: make([]uint32, 0, stretchLength), words: make([]uint64, 0, stretchLength)}
	}
}
