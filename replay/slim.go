package replay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"vplay/checkpoint"
)

// Slimming makes a recording smaller by finding out what of it is needed
// (slimneeds.go): the fat intervals are replayed, a new file is written with what
// they used, and the new file is replayed before it takes the name of the old
// one. Whatever goes wrong on the way, the old file stays as it is.

// SlimOptions bound slimming.
type SlimOptions struct {
	// Time is how long it may take in all; 0 is no bound. What is not slim by
	// then stays fat.
	Time     time.Duration
	Workers  int // intervals replayed at once; 0: one per CPU
	Progress func(SlimProgress)
	Writer   checkpoint.WriterOptions
	Budget   *checkpoint.Budget // of reading the recording; nil has no bounds
	Engine   EngineMaker        // of the sessions; nil: the interpreter
	// FirstLoads keeps of pages only the bytes that replay and debuggers need.
	FirstLoads bool
	// Length, when not 0, joins neighbouring intervals up to so much CPU time; with FirstLoads.
	Length time.Duration
}

// SlimProgress says how far slimming is.
type SlimProgress struct {
	Checking      bool // what was written is replayed
	Done, Total   int  // intervals
	InsnPerSecond float64
}

// SlimResult says what slimming did.
type SlimResult struct {
	Processes     int      // of the recording, all of which are slimmed
	Slimmed, Left int      // intervals slimmed now, and intervals that are still fat
	Joined        int      // of those slimmed: they are part of others now
	Failed        []Result // of the intervals that do not replay: they stay fat
	Before, After int64    // bytes of the file; After is Before when it was not replaced
	// Larger is how many bytes the slim file would have had where it was not
	// smaller, so that the old one stayed; else 0.
	Larger int64
	// OutOfTime says that the time was not enough for all of it; with Slimmed 0,
	// not for anything.
	OutOfTime bool
	// IsMoment says that the recording holds one moment, in which nothing runs that
	// could tell what is needed: all of it stays.
	IsMoment bool
}

// ErrReplaced says that the recording was moved, deleted or replaced while it was
// slimmed. Nothing was written.
var ErrReplaced = errors.New("replay: the recording was moved, deleted or replaced while it was slimmed")

// SlimCheckError says that a slimmed recording does not replay, although the
// fat one did. It was thrown away.
type SlimCheckError struct {
	Path string
	Err  error // of the first interval that failed
}

func (e *SlimCheckError) Error() string {
	return fmt.Sprintf("replay: %s stays as it was: what slimming made of it does not replay: %v", e.Path, e.Err)
}

func (e *SlimCheckError) Unwrap() error { return e.Err }

// errLarger says that the new file is not smaller than the old one.
var errLarger = errors.New("replay: the slim recording is not smaller")

// errOutOfTime is the cause of the end of SlimOptions.Time.
var errOutOfTime = errors.New("replay: out of time")

// replayShare is the part of the time that finding out what is needed may take:
// writing it and replaying what was written comes after.
const replayShare = 0.4

// Slim replays the fat intervals of the recording at path, the newest first, and
// writes it again without the contents of pages that nothing needs. An interval
// that does not replay exactly stays fat and is no error. The file is replaced
// only by one that is smaller and whose slimmed intervals replay exactly too.
// Errors: those of opening, reading and writing the file, *SlimCheckError,
// ErrReplaced, and ctx's; then the file is as it was.
func Slim(ctx context.Context, path string, o SlimOptions) (*SlimResult, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	rec, err := checkpoint.OpenWithin(path, o.Budget)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	if rec.IsMoment() {
		n := rec.Sizes().File
		return &SlimResult{Processes: len(rec.Processes()), Before: n, After: n, IsMoment: true}, nil
	}
	was, err := rec.Stat()
	if err != nil {
		return nil, err
	}
	s, err := NewSession(rec)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	s.Engine = o.Engine
	if o.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Time, errOutOfTime)
		defer cancel()
	}
	sl := &slimmer{s: s, o: o, path: path, was: was, began: time.Now(), touched: map[uint32]*touched{}, bytes: map[uint32]*neededBytes{}}
	if err := sl.replay(ctx); err != nil {
		return nil, err
	}
	defer sl.giveBack()
	return sl.write(ctx)
}

// slimmer is one run of Slim.
type slimmer struct {
	s     *Session
	o     SlimOptions
	path  string
	was   os.FileInfo // of the file that is slimmed
	began time.Time
	late  bool // the time did not suffice for every interval

	mu      sync.Mutex
	touched map[uint32]*touched     // of the intervals that replay exactly
	bytes   map[uint32]*neededBytes // of the same, to first loads
	taken   atomic.Int64            // of the budget, for them
	learnt  map[uint32]*learnt      // of joining, slimjoin.go
	joined  map[uint32][]uint32     // what becomes one interval, by its first
	away    map[uint32]uint32       // the first, by those that become part of it
	failed  []Result
	err     error // the first of finding out what is needed
}

// outOfTime reports whether ctx ended because the time given is over.
func outOfTime(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errOutOfTime) }

// replay runs the fat intervals, the newest first, while time lasts.
func (sl *slimmer) replay(ctx context.Context) error {
	infos := sl.s.Rec.Intervals()
	var ids, slim []uint32
	for i := len(infos) - 1; i >= 0; i-- {
		if sl.isDone(&infos[i]) {
			slim = append(slim, infos[i].ID)
		} else {
			ids = append(ids, infos[i].ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	// Only when the needs of every interval are known can pages of files be
	// dropped, so those that are slim already run last.
	ids = append(ids, slim...)
	if sl.o.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(float64(sl.o.Time)*replayShare), errOutOfTime)
		defer cancel()
	}
	err := sl.replayAll(ctx, ids)
	if err != nil && outOfTime(ctx) {
		sl.late = true
		return nil // what is done is done
	}
	if err == nil {
		err = sl.err
	}
	return err
}

// isDone reports whether an interval is as slim as it shall be.
func (sl *slimmer) isDone(i *checkpoint.IntervalInfo) bool {
	return i.Slim && (i.FirstLoads || !sl.o.FirstLoads)
}

// replayAll replays intervals and notes what they need.
func (sl *slimmer) replayAll(ctx context.Context, ids []uint32) error {
	switch {
	case sl.o.FirstLoads && sl.o.Length > 0:
		if err := sl.learn(ctx, ids); err != nil {
			return err
		}
		return sl.replayJoined(ctx, ids)
	case sl.o.FirstLoads:
		return sl.replayNoting(ctx, ids)
	}
	return sl.verify(ctx, sl.s, ids, false, func(r Result) {
		needs, err := sl.needs(&r)
		sl.mu.Lock()
		defer sl.mu.Unlock()
		if sl.err == nil {
			sl.err = err
		}
		if r.Err == nil && err == nil && needs != nil {
			sl.touched[r.Interval] = needs
		} else if r.Err != nil && Unmatched(r.Err) {
			sl.failed = append(sl.failed, r)
		}
	})
}

// verify replays intervals of a session and shows how far it is. done is called
// for each, from several goroutines.
func (sl *slimmer) verify(ctx context.Context, s *Session, ids []uint32, checking bool, done func(Result)) error {
	return sl.verifyWith(ctx, s, ids, checking, VerifyOptions{Touch: !checking}, done)
}

// verifyWith is verify with options that say what is done at each interval.
func (sl *slimmer) verifyWith(ctx context.Context, s *Session, ids []uint32, checking bool, o VerifyOptions, done func(Result)) error {
	var mu sync.Mutex
	var insns uint64
	n, began := 0, time.Now()
	show := func(retired uint64, ended int) {
		mu.Lock()
		defer mu.Unlock()
		insns += retired
		n += ended
		if sl.o.Progress != nil {
			sl.o.Progress(SlimProgress{checking, n, len(ids), float64(insns) / max(time.Since(began).Seconds(), 1e-3)})
		}
	}
	o.Intervals, o.Workers = ids, sl.o.Workers
	o.Progress = func(n uint64) { show(n, 0) }
	o.Done = func(r Result) {
		done(r)
		if r.Err == nil { // there is progress, which is shown: the next ones may take as much work
			s.Rec.Budget().Renew()
		}
		show(0, 1)
	}
	_, err := Verify(ctx, s, o)
	return err
}

// write writes the recording again.
func (sl *slimmer) write(ctx context.Context) (*SlimResult, error) {
	res := &SlimResult{Processes: len(sl.s.Rec.Processes()), Failed: sl.failed, Before: sl.s.Rec.Sizes().File, OutOfTime: sl.late}
	res.After = res.Before
	fat := 0
	for _, i := range sl.s.Rec.Intervals() {
		if !sl.isDone(&i) {
			fat++
			if sl.touched[sl.head(i.ID)] != nil {
				res.Slimmed++
			}
			if sl.isAway(i.ID) && sl.touched[sl.head(i.ID)] != nil {
				res.Joined++
			}
		}
	}
	res.Left = fat - res.Slimmed
	if res.Slimmed == 0 {
		return res, nil
	}
	o, err := sl.rewriting(ctx)
	if err == nil {
		o.Overwrite, o.Budget = true, sl.o.Budget
		o.Check = func(r *checkpoint.Recording) error {
			res.After = r.Sizes().File
			return sl.check(ctx, r)
		}
		err = checkpoint.Rewrite(sl.s.Rec, sl.path, o)
	}
	var bad *SlimCheckError
	switch {
	case err == nil:
		return res, nil
	case errors.Is(err, errLarger):
		res.Larger = res.After
	case outOfTime(ctx):
		res.OutOfTime = true
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &bad), errors.Is(err, ErrReplaced):
		return nil, err
	default:
		return nil, fmt.Errorf("replay: slimming %s: %w", sl.path, err)
	}
	res.Slimmed, res.Joined, res.Left, res.After = 0, 0, fat, res.Before
	return res, nil
}

// rewriting says how the recording is written again.
func (sl *slimmer) rewriting(ctx context.Context) (checkpoint.RewriteOptions, error) {
	o := checkpoint.RewriteOptions{WriterOptions: sl.o.Writer, Interrupt: ctx.Err}
	if sl.o.FirstLoads {
		k, err := sl.keepBytes(ctx)
		if err == nil {
			o.FirstLoads, o.Interval, o.Final, o.ObjectPage = true, k.interval, k.final, k.objectPage
		}
		return o, err
	}
	k, err := sl.keep(ctx)
	if err == nil {
		o.Interval, o.ObjectPage = k.interval, k.objectPage
	}
	return o, err
}

// check says whether the new recording may take the place of the old one.
func (sl *slimmer) check(ctx context.Context, r *checkpoint.Recording) error {
	if r.Sizes().File >= sl.s.Rec.Sizes().File {
		return errLarger
	}
	s, err := NewSession(r)
	if err != nil {
		return err
	}
	defer s.Close()
	s.Engine = sl.o.Engine
	// Every interval may have lost contents that another one did not need; those
	// that do not replay as they are have nothing to prove.
	var ids []uint32
	for _, i := range r.Intervals() {
		if sl.touched[i.ID] != nil {
			ids = append(ids, i.ID)
		}
	}
	var mu sync.Mutex
	var first *Result
	err = sl.verify(ctx, s, ids, true, func(res Result) {
		mu.Lock()
		defer mu.Unlock()
		if n := sl.bytes[res.Interval]; res.Err == nil && n != nil && res.Instructions != n.insns {
			res.Err = fmt.Errorf("it ends behind %d instructions and not behind %d", res.Instructions, n.insns)
		}
		if res.Err != nil && ctx.Err() == nil && (first == nil || res.Interval < first.Interval) {
			first = &res
		}
	})
	switch {
	case err != nil:
		return err
	case first != nil:
		return &SlimCheckError{sl.path, fmt.Errorf("interval %d: %w", first.Interval, first.Err)}
	}
	if now, err := os.Stat(sl.path); err != nil || !os.SameFile(sl.was, now) {
		return ErrReplaced
	}
	return nil
}
