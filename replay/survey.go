package replay

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"vplay/checkpoint"
)

// While nobody asks for anything, the survey goes through the recording, newest
// interval first, and leaves marks and spans, so that later movements begin near
// their goal and searches skip what cannot matter. It gives way at once to whatever
// is asked for, and goes on from where it was when that is done and some time has
// passed.

// survey is the background work of a timeline. The zero survey is none.
type survey struct {
	wanted bool
	timer  *time.Timer
	known  func() // called once, when every interval is known

	mu      sync.Mutex
	cancel  context.CancelFunc // of the run under way
	running sync.WaitGroup
	moves   int // movements under way
	closed  bool
}

// surveyDelay is how long the timeline must have been left alone.
const surveyDelay = 100 * time.Millisecond

// StartSurvey lets the timeline learn about the recording in the background, from
// now until Close, whenever it is not used. Errors it meets are left for the
// movement that meets them. known, when not nil, is called once, on another
// goroutine, when every interval is known; it must not move the timeline.
func (t *Timeline) StartSurvey(known func()) {
	s := &t.survey
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted || s.closed {
		return
	}
	s.wanted, s.known = true, known
	s.timer = time.AfterFunc(0, t.surveyNow)
}

// surveyNow begins or goes on with the survey, unless a movement came first.
func (t *Timeline) surveyNow() {
	s := &t.survey
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moves > 0 || s.closed || s.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	next := t.chart.open()
	var mu sync.Mutex
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		s.running.Go(func() {
			for ctx.Err() == nil {
				mu.Lock()
				if len(next) == 0 {
					mu.Unlock()
					t.tellKnown()
					return
				}
				id := next[0]
				next = next[1:]
				mu.Unlock()
				_ = t.explore(ctx, id)
			}
		})
	}
}

// tellKnown calls known, if every interval is known and nobody did it before.
func (t *Timeline) tellKnown() {
	if len(t.chart.open()) > 0 {
		return
	}
	s := &t.survey
	s.mu.Lock()
	known := s.known
	s.known = nil
	s.mu.Unlock()
	if known != nil {
		known()
	}
}

// move says that a movement begins; what it returns is called at its end.
func (t *Timeline) move(ctx context.Context) func() {
	t.pause()
	unguard := t.guard(ctx)
	return func() {
		unguard()
		t.resume()
	}
}

// guard interrupts the machine when ctx ends, until what it returns is called.
func (t *Timeline) guard(ctx context.Context) func() {
	if ctx.Done() == nil {
		return func() {}
	}
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		t.m.CPU.Interrupt()
		close(told)
	})
	return func() {
		if !stop() {
			<-told
			t.m.CPU.Interrupted()
		}
	}
}

// Pause ends the survey for good and waits for that. What is known stays.
func (t *Timeline) Pause() { t.pause() }

// pause ends the survey's run and waits for that, which takes a millisecond or so.
func (t *Timeline) pause() {
	s := &t.survey
	s.mu.Lock()
	s.moves++
	if s.timer != nil {
		s.timer.Stop()
	}
	cancel := s.cancel
	s.cancel = nil
	s.mu.Unlock()
	if cancel != nil {
		cancel()
		s.running.Wait()
	}
}

// resume lets the survey go on after a while.
func (t *Timeline) resume() {
	t.chart.moved(t.m.Position())
	s := &t.survey
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moves--
	if s.wanted && s.moves == 0 {
		s.timer.Reset(surveyDelay)
	}
}

// open returns the intervals that spans do not cover wholly, newest first.
func (c *chart) open() []uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []uint32
	for i := len(c.intervals) - 1; i >= 0; i-- {
		if !c.leg(c.intervals[i]).done {
			out = append(out, c.intervals[i])
		}
	}
	return out
}

// explore carries the spans of interval id on to its end.
func (t *Timeline) explore(ctx context.Context, id uint32) error {
	w, err := t.aside(id, stops{deaf: true})
	if err != nil {
		return err
	}
	defer w.m.Close()
	defer w.guard(ctx)()
	t.chart.mu.Lock()
	l := t.chart.leg(id)
	lo, done := l.frontier(id), l.done
	t.chart.mu.Unlock()
	if done {
		return nil
	}
	_, err = w.sweep(ctx, task{lo: lo, hi: checkpoint.Position{Interval: id, Instr: ^uint64(0)}, fresh: true}, newest, 1)
	return err
}

// Survey waits until spans cover the whole recording, exploring what the background
// has not. The cursor stays. It returns early when ctx ends.
func (t *Timeline) Survey(ctx context.Context) error {
	defer t.move(ctx)()
	open := t.chart.open()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				mu.Lock()
				if len(open) == 0 || ctx.Err() != nil {
					mu.Unlock()
					return
				}
				id := open[0]
				open = open[1:]
				mu.Unlock()
				err := t.explore(ctx, id)
				mu.Lock()
				if first == nil {
					first = err
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if first == nil {
		first = ctx.Err()
	}
	return first
}

// Progress is how far a recording is known.
type Progress struct {
	Intervals int    // that are known from end to end
	Of        int    // intervals of the timeline
	Instr     uint64 // instructions known
	// CPU and OfCPU are the processor time that the known intervals, and all of
	// them, took when they were recorded: how much of the work is done.
	CPU, OfCPU time.Duration
}

// Progress returns how much of the recording spans cover. It may be called while
// the survey runs.
func (t *Timeline) Progress() Progress {
	c := t.chart
	c.mu.Lock()
	defer c.mu.Unlock()
	p := Progress{Of: len(c.intervals)}
	for _, in := range c.s.Rec.Intervals() {
		l := c.legs[in.ID]
		if _, ours := slices.BinarySearch(c.intervals, in.ID); !ours {
			continue
		}
		p.OfCPU += in.CPUTime
		if l == nil {
			continue
		}
		p.Instr += l.frontier(in.ID).Instr
		if l.done {
			p.Intervals++
			p.CPU += in.CPUTime
		}
	}
	return p
}
