package slice

import (
	"path/filepath"
	"slices"
	"testing"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86/jit"
)

// TestUnits makes traces by generated code, of all code and of what is hot, and by the interpreter. They are the same.
func TestUnits(t *testing.T) {
	files := []string{demo}
	if *checkFiles != "" {
		var err error
		if files, err = filepath.Glob(*checkFiles); err != nil || len(files) == 0 {
			t.Fatalf("no recordings %s: %v", *checkFiles, err)
		}
	}
	_, err := jit.Open()
	if err != nil {
		t.Logf("no generated code here: %v", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			p := newProgram()
			plain, usual, eager := tracingOf(t, path, p, nil, true), tracingOf(t, path, p, nil, false), tracingOf(t, path, p, engines(t, true), false)
			executed := uint64(0)
			for _, id := range plain.tl.Intervals() {
				cuts, err := plain.tr.Boundaries(t.Context(), id, *checkLength)
				if err != nil {
					t.Fatal(err)
				}
				for i := 1; i < min(len(cuts), 9); i++ {
					want := plain.stretch(t, cuts[i-1], cuts[i])
					usual.compare(t, want)
					eager.compare(t, want)
					executed += uint64(len(want.ids))
				}
			}
			if *checkFiles == "" && executed < 1000 {
				t.Errorf("only %d instructions and events are compared", executed)
			}
			t.Logf("%d instructions and events, %d in units when they are hot, %d in eager ones", executed, usual.ran, eager.ran)
			if err == nil && *checkFiles == "" && (eager.ran < executed/2 || usual.ran == 0) {
				t.Errorf("of %d instructions and events only %d and %d are told by units", executed, usual.ran, eager.ran)
			}
		})
	}
}

// engines returns what makes engines that translate what is hot, or all code at first sight; nil where this machine has none.
func engines(t testing.TB, all bool) replay.EngineMaker {
	pool, err := jit.Open()
	if err != nil {
		return nil
	}
	return pool.Maker(all, func(e *jit.Engine) {
		for _, f := range e.Faults {
			t.Errorf("generated code faulted at %#x: % x", f.PC, f.Bytes)
		}
	})
}

// testTracing is a tracer that counts what is told by units.
type testTracing struct {
	*tracer
	tl  *replay.Timeline
	tr  *replay.Tracing
	ran uint64
}

func (x *testTracing) Ran(id, n int, before uint64, words []uint64) {
	x.ran += uint64(n)
	x.tracer.Ran(id, n, before, words)
}

// tracingOf returns a tracing of a recording by the engines of maker, or those of tests; isPlain: by the interpreter.
func tracingOf(t *testing.T, path string, p *program, maker replay.EngineMaker, isPlain bool) *testTracing {
	t.Helper()
	s, tl := open(t, path)
	if maker != nil {
		s.Engine = maker
	}
	x := &testTracing{tracer: &tracer{p: p, met: make([]met, 2), spy: &dataflow.Spy{Most: maxAccesses}}, tl: tl}
	var err error
	if isPlain {
		x.tr, err = tl.NewTracing(nil)
	} else {
		x.tr, err = tl.NewTracing(x)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.tr.Close)
	return x
}

// stretch makes the trace of a stretch.
func (x *testTracing) stretch(t *testing.T, from, to checkpoint.Position) *stretch {
	t.Helper()
	s := &stretch{from: from, to: to}
	if err := (&tracing{x.tr, x.tracer}).trace(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// compare makes the trace of a stretch, and compares it with want.
func (x *testTracing) compare(t *testing.T, want *stretch) {
	t.Helper()
	s := x.stretch(t, want.from, want.to)
	for i, id := range want.ids {
		if i >= len(s.ids) || s.ids[i] != id {
			t.Fatalf("from %v on, number %d of %d is %d, not %d", want.from, i, len(want.ids), s.ids[min(i, len(s.ids)-1)], id)
		}
	}
	if len(s.ids) != len(want.ids) || s.retired != want.retired || s.tid != want.tid || len(s.events) != len(want.events) {
		t.Fatalf("from %v on: %d instructions and events, retired %d, not %d, %d", want.from, len(s.ids), s.retired, len(want.ids), want.retired)
	}
	if !slices.Equal(s.words, want.words) || !slices.EqualFunc(s.spied, want.spied, slices.Equal) {
		t.Fatalf("from %v on: other addresses", want.from)
	}
}
