package observe

import (
	"context"
	"runtime"
	"sync"

	"vplay/replay"
)

// Options says what is replayed, and how what is observed comes together.
type Options struct {
	// Intervals are those to replay, in the order of recording; nil means all that the recording has.
	Intervals []uint32
	// Workers is how many are replayed at once; 0 means one for each CPU.
	Workers int
	// Begin returns the observer of an interval, at whose start v is; nil means that the
	// interval need not be replayed. It is called from several goroutines at once.
	Begin func(v *View) (*Observer, error)
	// End, when set, is called when an interval has been replayed: in the order of Intervals, one
	// call at a time, behind all callbacks of that interval.
	End func(id uint32) error
	// Ordered has the callbacks of all intervals come in the order of Intervals, one at a
	// time. The views of some are then snapshots. Observers that look at every
	// instruction or access are replayed one after the other.
	Ordered bool
	// Progress, when set, is called now and then, from several goroutines, with the
	// instructions retired since its last call.
	Progress func(n uint64)
}

// Run replays intervals and calls their observers. It returns the first error in the order of intervals: of
// a callback (View.Stop), of Begin or End, or of the replay, as Machine.RunToEnd has them; ctx's
// when that ended it. What came before the error has been told.
func Run(ctx context.Context, s *replay.Session, o Options) error {
	if o.Intervals == nil {
		for _, i := range s.Rec.Intervals() {
			o.Intervals = append(o.Intervals, i.ID)
		}
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &turns{cancel: cancel}
	t.moved.L = &t.mu
	defer context.AfterFunc(inner, t.wake)()
	var wg sync.WaitGroup
	for range min(o.Workers, len(o.Intervals)) {
		wg.Go(func() {
			for {
				i, ok := t.take(len(o.Intervals))
				if !ok {
					return
				}
				w := &worker{ctx: inner, s: s, o: &o, turns: t, index: i, id: o.Intervals[i]}
				t.done(i, w.observe())
			}
		})
	}
	wg.Wait()
	if t.err != nil || t.stopped {
		return t.err
	}
	return ctx.Err()
}

// turns is the order in which intervals are told of.
type turns struct {
	cancel func()

	mu      sync.Mutex
	moved   sync.Cond // head has moved, or it is over
	next    int       // the first interval that nobody has taken
	head    int       // the interval whose turn it is
	over    bool      // no more turns
	stopped bool      // a callback wanted that
	err     error     // why it ended, of the interval that was first
}

// take returns the next interval to replay.
func (t *turns) take(n int) (i int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.next == n {
		return 0, false
	}
	t.next++
	return t.next - 1, true
}

// wake has all who wait for their turn look again, because it is over.
func (t *turns) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	t.moved.Broadcast()
}

// isHead reports whether it is the turn of interval i.
func (t *turns) isHead(i int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head == i && !t.over
}

// await waits for the turn of interval i; false says that it will not come.
func (t *turns) await(i int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.head != i && !t.over {
		t.moved.Wait()
	}
	return !t.over
}

// done ends the turn of interval i, which it was unless it is over.
func (t *turns) done(i int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over || t.head != i: // an interval before it has ended all
	case err != nil:
		if err != errStopped { //nolint:errorlint // it is never wrapped
			t.err = err
		}
		t.stopped, t.over = true, true
		t.cancel()
	default:
		t.head++
	}
	t.moved.Broadcast()
}

// budgetShare is the part of the memory that a recording may take, as 1/budgetShare, beyond which no
// snapshot is kept for a callback whose turn has not come.
const budgetShare = 2

// hasRoom reports whether there is memory for another snapshot.
func hasRoom(s *replay.Session) bool {
	limit := s.Rec.Budget().Memory()
	return limit <= 0 || s.Pool.InUse() < limit/budgetShare
}
