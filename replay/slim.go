package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay/mem"
)

// SlimOptions bound slimming.
type SlimOptions struct {
	// Time is how long it may take in all; 0 is no bound. An interval is
	// taken only when its CPU time times the measured replay rate fits what is
	// left.
	Time     time.Duration
	Workers  int
	Progress func(done, total int, insnPerSecond float64)
	Writer   checkpoint.WriterOptions
	Budget   *checkpoint.Budget // of reading the recording; nil has no bounds
}

// SlimResult says what slimming did.
type SlimResult struct {
	Slimmed, Left int // intervals slimmed now, and intervals that are still fat
	Failed        []Result
	Before, After int64 // bytes of the file
}

// Slim replays the fat intervals of the recording at path and writes it again
// with only the pages that replay touched and what debuggers read. An interval
// that does not replay exactly stays fat and is no error. The file is replaced only
// when it is whole. Errors: those of opening, reading and writing the file.
func Slim(ctx context.Context, path string, o SlimOptions) (*SlimResult, error) {
	rec, err := checkpoint.OpenWithin(path, o.Budget)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	s, err := NewSession(rec)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	sl := &slimmer{s: s, o: o, began: time.Now(), keep: map[uint32]*touched{}}
	if err := sl.replay(ctx); err != nil {
		return nil, err
	}
	return sl.write(path)
}

// slimmer is one run of Slim.
type slimmer struct {
	s     *Session
	o     SlimOptions
	began time.Time

	mu     sync.Mutex
	keep   map[uint32]*touched
	failed []Result
}

// touched are the pages an interval needs: by address at its start, and of
// objects.
type touched struct {
	pages   map[uint64]bool
	objects map[mem.ObjectPage]bool
}

// replay runs the fat intervals, the newest first, while time lasts.
func (sl *slimmer) replay(ctx context.Context) error {
	infos := sl.s.Rec.Intervals()
	var ids, slim []uint32
	for i := len(infos) - 1; i >= 0; i-- {
		if infos[i].Slim {
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
		ctx, cancel = context.WithTimeout(ctx, sl.o.Time)
		defer cancel()
	}
	var insns uint64
	done := 0
	_, err := Verify(ctx, sl.s, VerifyOptions{
		Intervals: ids, Workers: sl.o.Workers, Touch: true,
		Progress: func(n uint64) {
			sl.mu.Lock()
			defer sl.mu.Unlock()
			insns += n
			sl.progress(done, len(ids), insns)
		},
		Done: func(r Result) {
			needs := sl.needs(&r)
			sl.mu.Lock()
			defer sl.mu.Unlock()
			done++
			if r.Err == nil && needs != nil {
				sl.keep[r.Interval] = needs
			} else if r.Err != nil && Unmatched(r.Err) {
				sl.failed = append(sl.failed, r)
			}
			sl.progress(done, len(ids), insns)
		},
	})
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return nil // out of time: what is done is done
	}
	return err
}

func (sl *slimmer) progress(done, total int, insns uint64) {
	if sl.o.Progress != nil {
		sl.o.Progress(done, total, float64(insns)/max(time.Since(sl.began).Seconds(), 1e-3))
	}
}

// needs turns an interval's access sets into the records to keep.
func (sl *slimmer) needs(r *Result) *touched {
	if r.Err != nil || r.Touched == nil {
		return nil
	}
	m, err := sl.s.Machine(r.Interval)
	if err != nil {
		return nil
	}
	defer m.Close()
	t := &touched{map[uint64]bool{}, map[mem.ObjectPage]bool{}}
	for _, set := range []map[uint64]struct{}{r.Touched.Read, r.Touched.Written, r.Touched.Executed} {
		for key := range set {
			for _, a := range m.Mem.AddressesOf(key) {
				t.pages[a] = true
			}
		}
	}
	for o := range r.Touched.Objects {
		t.objects[o] = true
	}
	t.addSet(m.Mem, loader.DebuggerSet(m.iv.Maps, m.iv.Start, space{m.Mem}))
	return t
}

// addSet notes the pages of ranges of addresses.
func (t *touched) addSet(s *mem.Space, rs []loader.Range) {
	for _, d := range rs {
		for a := d.Start; a < d.End; a += mem.PageSize {
			t.pages[a] = true
			if r, ok := s.Find(a); ok && r.Object != 0 {
				t.objects[mem.ObjectPage{Object: r.Object, Index: (a - r.Start + r.Offset) / mem.PageSize}] = true
			}
		}
	}
}

// slimmed is the interval to write instead of iv: pages that nobody needs
// become known not to be captured, so that they never read as zero.
func (sl *slimmer) slimmed(_ *checkpoint.Writer, iv *checkpoint.Interval) (*checkpoint.Interval, error) {
	t := sl.keep[iv.ID]
	if t == nil {
		return iv, nil
	}
	for i := range iv.Pages {
		if !t.pages[iv.Pages[i].Addr] {
			iv.Pages[i].Ref = checkpoint.PageRef{Kind: checkpoint.PageAbsent}
		}
	}
	iv.Slim = true
	return iv, nil
}

// needed returns every page of an object that any interval or the final image
// needs.
func (sl *slimmer) needed() map[mem.ObjectPage]bool {
	all := &touched{map[uint64]bool{}, map[mem.ObjectPage]bool{}}
	for _, t := range sl.keep {
		maps.Copy(all.objects, t.objects)
	}
	if f, err := sl.s.Final(); err == nil {
		all.addSet(f.Mem, loader.DebuggerSet(f.Maps, f.Contexts, space{f.Mem}))
		f.Mem.Close()
	}
	return all.objects
}

// space reads a guest's memory for the loader.
type space struct{ *mem.Space }

func (m space) ReadMemory(a uint64, b []byte) int {
	n, _ := m.Peek(a, b)
	return n
}

// write writes the recording again.
func (sl *slimmer) write(path string) (*SlimResult, error) {
	res := &SlimResult{Failed: sl.failed}
	infos := sl.s.Rec.Intervals()
	allSlim := true
	for _, i := range infos {
		switch {
		case sl.keep[i.ID] == nil:
			allSlim = false
			if !i.Slim {
				res.Left++
			}
		case !i.Slim:
			res.Slimmed++
		}
	}
	res.Before = sl.s.Rec.Sizes().File
	res.After = res.Before
	if res.Slimmed == 0 {
		return res, nil
	}
	o := checkpoint.RewriteOptions{WriterOptions: sl.o.Writer, Interval: sl.slimmed}
	o.Overwrite = true
	if allSlim {
		needed := sl.needed()
		o.ObjectPage = func(p checkpoint.ObjectPage) bool {
			return needed[mem.ObjectPage{Object: p.Object, Index: p.Index}]
		}
	}
	if err := checkpoint.Rewrite(sl.s.Rec, path, o); err != nil {
		return nil, fmt.Errorf("replay: slimming %s: %w", path, err)
	}
	after, err := checkpoint.Open(path)
	if err != nil {
		return nil, err
	}
	defer after.Close()
	res.After = after.Sizes().File
	return res, nil
}
