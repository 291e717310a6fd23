package replay

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"vplay/replay/mem"
	"vplay/replay/x86"
)

// Verifying: each interval is replayed and compared with the recording. What is compared at an
// event is in event.go, at an end in end.go. The verb's output is in cmd/vplayd.

// Result is what replaying one interval gave.
type Result struct {
	Interval     uint32
	PID          int32 // whose interval it is
	Instructions uint64
	Events       int
	// Executed is how many instructions were executed for it: more than Instructions
	// where the interval, or a part of it, had to be replayed again to find out which
	// state components the CPU counted as in use.
	Executed uint64
	Took     time.Duration
	// Err is nil when the replay was exact: every register hash, the end, and
	// every page written.
	Err error
	// Touched are the pages that replay read, wrote or executed; nil unless
	// asked for, and once Done has had them.
	Touched *mem.Sets
	// Compared are the addresses of pages of the interval's start that the check of
	// its end looks at, touched or not; nil unless Touched was asked for.
	Compared []uint64
}

// VerifyOptions says what to replay and how.
type VerifyOptions struct {
	Intervals []uint32     // nil: all
	Workers   int          // at once; 0: one per CPU
	Touch     bool         // collect the pages touched
	Done      func(Result) // called after each interval, from several goroutines
	// Progress is called now and then with the instructions retired since the
	// last call.
	Progress func(n uint64)

	// Of slimming to first loads: begin, when set, returns what is replayed instead of an interval,
	// prepare sees the machine before it runs, and check compares its end in the place of CheckEnd.
	begin   func(*interval) *interval
	prepare func(*Machine)
	check   func(*Machine) error
}

// Verify replays intervals, of whatever process, each by itself and several at once, and compares
// everything the recorder noted. The results are in the order of Intervals. The
// error is the context's, or one that concerns no single interval.
func Verify(ctx context.Context, s *Session, o VerifyOptions) ([]Result, error) {
	ids := o.Intervals
	of, sizes := map[uint32]int32{}, map[uint32]int64{}
	for _, i := range s.Rec.Intervals() {
		of[i.ID], sizes[i.ID] = i.PID, i.DecodedSize()
		if o.Intervals == nil {
			ids = append(ids, i.ID)
		}
	}
	n := o.Workers
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	results := make([]Result, len(ids))
	work := make(chan int)
	fits := newRoom(0)
	if !o.Touch { // slimming leaves an interval as it is that does not fit beside others
		fits.limit = s.Rec.Budget().Decoded()
	}
	var wg sync.WaitGroup
	for range min(n, len(ids)) {
		wg.Go(func() {
			v := verifier{s: s, o: &o}
			for i := range work {
				size := sizes[ids[i]]
				fits.enter(size)
				results[i] = v.interval(ctx, ids[i])
				if fits.isLarge(size) {
					v.cpu = nil // it refers to the interval
				}
				fits.leave(size)
				if results[i].Err == nil {
					// Seconds of a program that reads all the time are a log of gigabytes, in a file of some megabytes.
					s.Rec.Budget().Earn(int64(results[i].Executed)) //nolint:gosec // no interval has so many
				}
				results[i].PID = of[ids[i]]
				if o.Done != nil {
					o.Done(results[i])
					results[i].Touched, results[i].Compared = nil, nil // who asked for them has them
				}
			}
		})
	}
	for i := range ids {
		if ctx.Err() != nil {
			break
		}
		work <- i
	}
	close(work)
	wg.Wait()
	return results, ctx.Err()
}

// verifier is one of those that replay intervals at the same time.
type verifier struct {
	s   *Session
	o   *VerifyOptions
	cpu *x86.CPU // of the interval before, for the next; nil: there is none
}

// interval replays one interval from start to end.
func (v *verifier) interval(ctx context.Context, id uint32) Result {
	s, o := v.s, v.o
	began := time.Now()
	r := Result{Interval: id}
	defer s.Forget(id)
	for guess := true; ; guess = false {
		iv, err := s.interval(id)
		if err != nil {
			r.Err = err
			return r
		}
		if o.begin != nil {
			iv = o.begin(iv)
		}
		m := s.machine(iv, s.Engine, v.cpu)
		m.Mem.AllowMapping()
		m.guess = guess && iv.mayGuess() // without looking for answers first
		m.endOnly = !o.Touch && o.check == nil
		if o.prepare != nil {
			o.prepare(m)
		}
		if o.Touch {
			r.Touched = mem.NewSets()
			m.CPU.OnCode = func(uint64, uint64) {} // has every engine note the pages that it executes
			m.Mem.Track(r.Touched)
		}
		check := m.CheckEnd
		if o.check != nil {
			check = func() error { return o.check(m) }
		}
		r.Err = m.runTo(ctx, o.Progress, check)
		if o.Touch {
			r.Compared = m.compared()
		}
		r.Executed += m.executed
		r.Instructions, r.Events, r.Took = m.CPU.Retired, m.next, time.Since(began)
		again := m.guessed(r.Err)
		m.Close()
		if o.begin != nil {
			iv.start.Release()
		}
		if v.cpu = m.CPU; ctx.Err() != nil {
			v.cpu = nil // RunToEnd's interrupt may be on its way to it
		}
		if !again {
			return r
		}
	}
}

// RunToEnd runs to the end of the interval, through signals, and checks it.
// progress, when not nil, is called with the instructions retired since its last call.
// Errors: *DivergenceError, *NotCapturedError, *UnsupportedError, and ctx's.
func (m *Machine) RunToEnd(ctx context.Context, progress func(n uint64)) error {
	return m.runTo(ctx, progress, m.CheckEnd)
}

// runTo is RunToEnd with another check of the end.
func (m *Machine) runTo(ctx context.Context, progress func(n uint64), check func() error) error {
	stop := context.AfterFunc(ctx, m.CPU.Interrupt)
	defer stop()
	const slice = 20_000_000
	for {
		before := m.CPU.Retired
		r, err := m.Run(Target{Instr: before + slice}, true)
		m.executed += m.CPU.Retired - before
		if progress != nil {
			progress(m.CPU.Retired - before)
		}
		switch {
		case errors.Is(err, errInterrupted):
			return ctx.Err()
		case err != nil:
			return err
		case r == StopEnd:
			return check()
		case ctx.Err() != nil:
			return ctx.Err()
		case r == StopSignal:
			if err := m.Apply(); err != nil {
				return err
			}
		}
	}
}

// Unmatched reports the kinds of failure that are about recording and replay
// rather than about the file or this machine.
func Unmatched(err error) bool {
	var (
		diverged    *DivergenceError
		notCaptured *NotCapturedError
		unsupported *UnsupportedError
	)
	return errors.As(err, &diverged) || errors.As(err, &notCaptured) || errors.As(err, &unsupported)
}
