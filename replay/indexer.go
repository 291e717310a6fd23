package replay

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// While nobody asks for anything, the indexer goes through the recording, newest
// interval first, and leaves snapshots and segments, so that later movements begin near
// their goal and searches skip what cannot matter. It gives way at once to whatever
// is asked for, and goes on from where it was when that is done and some time has
// passed.

// indexer is the background work of a timeline. The zero indexer is none.
type indexer struct {
	wanted bool
	timer  *time.Timer
	known  func() // called once, when every interval is known

	mu      sync.Mutex
	cancel  context.CancelFunc // of the run under way
	running sync.WaitGroup
	moves   int // movements under way
}

// indexerDelay is how long the timeline must have been left alone.
const indexerDelay = 100 * time.Millisecond

// StartIndexer lets the timeline learn about the recording in the background, from
// now until Close, whenever it is not used. Errors it meets are left for the
// movement that meets them. known, when not nil, is called once, on another
// goroutine, when every interval is known; it must not move the timeline.
func (t *Timeline) StartIndexer(known func()) {
	s := &t.indexer
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted {
		return
	}
	s.wanted, s.known = true, known
	s.timer = time.AfterFunc(0, t.indexNow)
}

// indexNow begins or goes on with the indexer, unless a movement came first.
func (t *Timeline) indexNow() {
	s := &t.indexer
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moves > 0 || s.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	next := t.index.open()
	var mu sync.Mutex
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		s.running.Go(func() {
			for ctx.Err() == nil {
				mu.Lock()
				if len(next) == 0 {
					mu.Unlock()
					t.reportKnown()
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

// reportKnown calls known, if every interval is known and nobody did it before.
func (t *Timeline) reportKnown() {
	if len(t.index.open()) > 0 {
		return
	}
	s := &t.indexer
	s.mu.Lock()
	known := s.known
	s.known = nil
	s.mu.Unlock()
	if known != nil {
		known()
	}
}

// StopIndexer ends the indexer for good and waits for that. What is known stays.
func (t *Timeline) StopIndexer() { t.pause() }

// pause ends the indexer's run and waits for that, which takes a millisecond or so.
func (t *Timeline) pause() {
	s := &t.indexer
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

// resume lets the indexer go on after a while.
func (t *Timeline) resume() {
	s := &t.indexer
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moves--
	if s.wanted && s.moves == 0 {
		s.timer.Reset(indexerDelay)
	}
}

// open returns the intervals that segments do not cover wholly, newest first.
func (x *index) open() []uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []uint32
	for i := len(x.intervals) - 1; i >= 0; i-- {
		if !x.of(x.intervals[i]).done {
			out = append(out, x.intervals[i])
		}
	}
	return out
}

// BuildIndex waits until segments cover the whole recording, exploring what the background
// has not. The cursor stays. It returns early when ctx ends.
func (t *Timeline) BuildIndex(ctx context.Context) error {
	t.pause()
	defer t.resume()
	open := t.index.open()
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

// Progress returns how much of the recording segments cover. It may be called while
// the indexer runs.
func (t *Timeline) Progress() Progress {
	c := t.index
	c.mu.Lock()
	defer c.mu.Unlock()
	p := Progress{Of: len(c.intervals)}
	for _, in := range c.s.Rec.Intervals() {
		l := c.known[in.ID]
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
