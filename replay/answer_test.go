package replay

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"vplay/checkpoint"
	"vplay/replay/x86"
)

// What happens between a question, or its cancellation, and the answer.

// TestAnswerBeforeClosing: a search answers, and the indexer gives way, before their machines are closed, which may take
// long. The timeline is closed behind them.
func TestAnswerBeforeClosing(t *testing.T) {
	for _, x := range []struct {
		name string
		ask  func(ctx context.Context, tl *Timeline) error
	}{
		{"search", func(ctx context.Context, tl *Timeline) error {
			at, err := tl.Execs(ctx, []uint64{callCode}, nil, future, 9)
			if err == nil && len(at) != 3 {
				err = fmt.Errorf("%d calls", len(at))
			}
			return err
		}},
		{"indexer", func(ctx context.Context, tl *Timeline) error { return tl.explore(ctx, 0) }},
	} {
		t.Run(x.name, func(t *testing.T) { answersFirst(t, x.ask) })
	}
}

// answersFirst is TestAnswerBeforeClosing for one question.
func answersFirst(t *testing.T, ask func(context.Context, *Timeline) error) {
	s := counting(t, 3)
	answered := make(chan struct{})
	var asking atomic.Bool
	var made, released atomic.Int32
	s.Engine = func(*x86.CPU) (x86.Engine, func()) {
		made.Add(1)
		return x86.BlockEngine{}, func() {
			if asking.Load() {
				select {
				case <-answered:
				case <-time.After(time.Minute):
					t.Error("the answer waits for a machine to be closed")
				}
			}
			released.Add(1)
		}
	}
	tl, err := NewTimeline(s, 1<<24)
	if err != nil {
		t.Fatal(err)
	}
	before := made.Load()
	asking.Store(true)
	err = ask(t.Context(), tl)
	close(answered)
	if err != nil {
		t.Error(err)
	}
	tl.Close()
	if made.Load() == before || released.Load() != made.Load() {
		t.Errorf("%d engines were made, %d given back", made.Load(), released.Load())
	}
}

// endsAfter is a context that ends when it was looked at n times.
type endsAfter struct {
	context.Context
	n *int
}

func (c endsAfter) Err() error {
	if *c.n--; *c.n < 0 {
		return context.Canceled
	}
	return nil
}

// TestTasksGiveUp: between two looks at the context a search reads at most one interval, or looks at one segment.
func TestTasksGiveUp(t *testing.T) {
	s := counting(t, 8)
	tl, err := NewTimeline(s, 1<<24)
	if err != nil {
		t.Fatal(err)
	}
	defer tl.Close()
	q := executing([]uint64{callCode}, nil)
	looks := 3
	if _, err := tl.index.tasks(endsAfter{t.Context(), &looks}, &q, tl.index.begin, future); err != nil || len(s.intervals) > 3 {
		t.Errorf("%d intervals were read: %v", len(s.intervals), err)
	}
	tl.SetSpacing(1000)
	if err := tl.BuildIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	looks = 5
	events := s.intervals[7].Events
	end := checkpoint.Position{Interval: 7, Instr: ^uint64(0)}
	if got := tl.index.tasksIn(endsAfter{t.Context(), &looks}, 7, &q, events, tl.index.begin, end); got != nil || looks != -1 {
		t.Errorf("%d tasks, looked %d times too often", len(got), -1-looks)
	}
	if got := tl.index.tasksIn(t.Context(), 7, &q, events, tl.index.begin, end); len(got) == 0 {
		t.Error("no tasks without an end")
	}
}

// TestStartHasNoEngine: to take a snapshot of an interval's start executes nothing.
func TestStartHasNoEngine(t *testing.T) {
	s := counting(t, 1)
	s.Engine = func(*x86.CPU) (x86.Engine, func()) {
		t.Error("an engine was made")
		return nil, nil
	}
	k, err := s.Start(0)
	if err != nil {
		t.Fatal(err)
	}
	k.Release()
}

// TestArrival: a cursor that has come to a place by a seek has left snapshots before it, so
// that the first step back from there replays no more than those that follow. A short way forward is not made longer.
func TestArrival(t *testing.T) {
	for _, memory := range []int64{1 << 24, 32 << 10} {
		t.Run(fmt.Sprint(memory), func(t *testing.T) { arrives(t, memory) })
	}
}

// arrives is TestArrival with so many bytes for snapshots.
func arrives(t *testing.T, memory int64) {
	tl, err := NewTimeline(counting(t, 2), memory)
	if err != nil {
		t.Fatal(err)
	}
	defer tl.Close()
	tl.SetSpacing(700)
	if err := tl.BuildIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := tl.NewCursor()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const most = 1 << 7 // instructions from a snapshot to a place: two of the shortest distance
	replays := func() uint64 {
		p := c.Position()
		p.Instr--
		k := tl.index.before(p)
		defer k.Release()
		return p.Instr - k.Pos.Instr
	}
	seek := func(instr uint64) {
		t.Helper()
		if err := c.Seek(t.Context(), checkpoint.Position{Interval: 1, Instr: instr}); err != nil || c.Position().Instr != instr {
			t.Fatalf("at %s: %v", c.Position(), err)
		}
	}
	seek(20_000)
	if n := replays(); n > most {
		t.Errorf("a step back behind a seek replays %d instructions", n)
	}
	before := tl.index.snapshots
	seek(20_040)
	if n := tl.index.snapshots - before; n != 0 {
		t.Errorf("40 instructions forward left %d snapshots", n)
	}
}

// TestTasksReadLittle: to say where a stop may be takes the logs of those intervals alone that are known, and that have events of a kind that
// is asked for.
func TestTasksReadLittle(t *testing.T) {
	const n = 8
	s := counting(t, n)
	tl, err := NewTimeline(s, 1<<24)
	if err != nil {
		t.Fatal(err)
	}
	defer tl.Close()
	tasks := func(q stops, want, read int) {
		t.Helper()
		for id := range uint32(n) {
			s.Forget(id)
		}
		if got, err := tl.index.tasks(t.Context(), &q, tl.index.begin, future); err != nil || len(got) < want || len(s.intervals) != read {
			t.Errorf("%d tasks, of which %d are wanted at least; %d intervals were read, not %d; %v", len(got), want, len(s.intervals), read, err)
		}
	}
	tasks(executing([]uint64{callCode}, nil), n, 0)
	tl.SetSpacing(1000)
	if err := tl.BuildIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	code := executing([]uint64{callCode}, nil)
	tasks(code, n, 0)
	code.calls = func(int64) bool { return false } // whatever calls there are
	tasks(code, n, n)
	clear(s.summaries) // as with an index that was read from a file
	tasks(executing([]uint64{callCode}, nil), n, n)
	tasks(executing([]uint64{callCode}, nil), n, 0)
}
