package deviate

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/analysis/controlflow"
	"vplay/replay/analysis/slice"
	"vplay/replay/debug"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// The runs that are compared, from the cursors on them to what was seen in them.

// Run is one recording.
type Run struct {
	Name string
	// Cursor stands at the end of what is looked at. It is moved.
	Cursor *debug.Cursor
}

// run is a run under way.
type run struct {
	Run
	end     checkpoint.Position
	o       slice.Options // of the end, without Want where there is none
	what    string
	names   *names
	code    *controlflow.Code
	t       *tracer
	space   *mem.Space // at the end
	here    uint64     // the instruction at the end
	crashed bool
}

// ErrNoFault says that it is not known what is wrong in the bad run.
var ErrNoFault = errors.New("the bad run did not crash")

// open looks at the end of a run. What is asked of the bad one is q.
func open(ctx context.Context, r Run, q debug.SliceQuery) (*run, error) {
	x := &run{Run: r}
	var err error
	x.o, x.what, err = r.Cursor.Criterion(ctx, q)
	if err != nil && !errors.Is(err, debug.ErrNoCriterion) {
		return nil, err
	}
	x.end = r.Cursor.At()
	m := r.Cursor.Machine()
	x.space, x.here = m.Mem, m.CPU.RIP
	if e := m.Pending(); e != nil && (e.Kind == checkpoint.EventFault || e.Kind == checkpoint.EventSignal) {
		x.crashed = true
	}
	end := r.Cursor.Recording().Ending(r.Cursor.Timeline().PID())
	x.crashed = x.crashed || end.Kind == checkpoint.EndCrash && r.Cursor.AtEnd()
	if x.what == "" && x.crashed {
		x.what = "the crash"
	}
	x.names = newNames(r.Cursor)
	x.code = controlflow.New(controlflow.Options{Fetch: controlflow.Fetch(x.space), ID: m.CPU.ID})
	return x, nil
}

// alike finds the modules that are not the same file in all runs.
func alike(runs []*run) {
	first := map[string]string{}
	other := map[string]bool{}
	for _, r := range runs {
		for name, build := range r.names.builds() {
			if b, ok := first[name]; ok && b != build {
				other[name] = true
			}
			first[name] = build
		}
	}
	for _, r := range runs {
		r.names.other = other
	}
}

// trace traces a run.
func (r *run) trace(ctx context.Context, j judge, progress func(done uint64)) error {
	r.t = newTracer(j)
	return r.t.run(ctx, r.Cursor.Timeline(), r.end, progress)
}

// traceAll traces the good runs, and behind them the bad one, which is held to them.
func traceAll(ctx context.Context, good []*run, bad *run, progress func(string)) (*seen, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, len(good))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, g := range good {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = g.trace(ctx, nil, func(done uint64) {
				progress(fmt.Sprintf("%s: %.1f million instructions", g.Name, float64(done)/1e6))
			})
			if errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", g.Name, errs[i])
				cancel()
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := newSeen(good, bad)
	err := bad.trace(ctx, s, func(done uint64) {
		progress(fmt.Sprintf("%s: %.1f million instructions", bad.Name, float64(done)/1e6))
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", bad.Name, err)
	}
	share(append(slices.Clone(good), bad))
	return s, nil
}

// share tells the code of each run where the jumps of all of them have led to.
func share(runs []*run) {
	type to map[place]bool
	all := map[place]to{}
	for _, r := range runs {
		for e := range r.t.depths {
			r.code.AddEntry(e)
		}
		for w := range r.t.ways {
			from := r.names.place(w.from)
			if r.names.isOther(w.from) {
				r.code.AddTarget(w.from, w.to)
				continue
			}
			if all[from] == nil {
				all[from] = to{}
			}
			all[from][r.names.place(w.to)] = true
		}
	}
	for _, r := range runs {
		for from, list := range all {
			a, ok := r.names.address(from)
			if !ok {
				continue
			}
			for p := range list {
				if b, ok := r.names.address(p); ok {
					r.code.AddTarget(a, b)
				}
			}
		}
	}
}

// slice returns the slice of a moment of a run, with what led there.
func (r *run) slice(ctx context.Context, o slice.Options, progress func(string)) (*slice.Slice, error) {
	o.Controls = r.code.Controls
	o.Progress = func(done, _ uint64) {
		progress(fmt.Sprintf("%s: slicing, %.1f million instructions", r.Name, float64(done)/1e6))
	}
	return slice.Of(ctx, r.Cursor.Timeline(), o)
}

// instructionAt decodes the instruction at which m stands.
func instructionAt(m *replay.Machine) (in x86.Inst, ok bool) {
	var b [15]byte
	n, _ := m.Mem.Peek(m.CPU.RIP, b[:])
	in, err := x86.DecodeInst(b[:n], m.CPU.RIP, m.CPU.ID)
	return in, err == nil
}
