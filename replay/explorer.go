package replay

import (
	"context"

	"vplay/checkpoint"
)

// Explorers are the workers that run through an interval from end to end for what they learn on the
// way (indexer.go), or to learn where it ends. No other worker may guess which state components the CPU counted as in use: what an
// explorer learns behind its guess is kept apart until the interval's end shows that it was right.

// draft is what an explorer has learnt behind the first instruction that asked which state
// components are in use.
type draft struct {
	snapshots []*Snapshot
	segments  []segment
	atEnd     bool // the last segment reaches the interval's end
}

// newExplorer returns a worker that runs through interval id. It only goes forward, so it
// need not know a forced end before it is there: to look for that is to run everything twice.
func newExplorer(x *index, id uint32) (*worker, error) {
	w, err := newWorker(x, id, stops{noSignals: true})
	if err != nil {
		return nil, err
	}
	w.m.endFirst = false
	if w.m.guess = w.m.iv.mayGuess(); w.m.guess {
		w.draft = &draft{}
		w.keeps = w.keepDraft
	}
	return w, nil
}

// unsure reports whether what w learns holds only if its guess is right.
func (w *worker) unsure() bool { return w.draft != nil && w.m.asked > 0 }

// keepDraft keeps a snapshot of where the explorer is, unless there is nothing unsure about it.
func (w *worker) keepDraft() bool {
	if !w.unsure() {
		return false
	}
	w.draft.snapshots = append(w.draft.snapshots, w.m.Save())
	return true
}

// confirm compares the end of the interval, where the explorer stands, with the recording.
func (w *worker) confirm() error {
	if !w.m.AtEnd() { // a signal that the program dies of is due
		if err := w.m.Apply(); err != nil {
			return err
		}
	}
	return w.m.CheckEnd()
}

// publish gives the index what an explorer learnt behind its guess, which was right. It returns false
// when another machine has found other answers meanwhile.
func (w *worker) publish() bool {
	if !w.m.iv.answers.none() {
		return false
	}
	d := w.draft
	for _, k := range d.snapshots {
		w.index.add(k.hold())
	}
	for i := range d.segments {
		w.index.addSegment(d.segments[i], d.atEnd && i+1 == len(d.segments))
	}
	return true
}

// drop gives the snapshots of a draft back.
func (d *draft) drop() {
	for _, k := range d.snapshots {
		k.Release()
	}
}

// explore carries the segments of interval id on to its end.
func (t *Timeline) explore(ctx context.Context, id uint32) error {
	for {
		if again, err := t.exploreOnce(ctx, id); !again {
			return err
		}
	}
}

// exploreOnce is explore with a guess where one may be made; again says that it was wrong.
func (t *Timeline) exploreOnce(ctx context.Context, id uint32) (again bool, err error) {
	return t.index.byExplorer(ctx, id, func(w *worker) (atEnd bool, err error) {
		t.index.mu.Lock()
		l := t.index.of(id)
		lo, done := l.frontier(id), l.done
		t.index.mu.Unlock()
		if done {
			return false, nil
		}
		_, err = w.sweep(ctx, task{lo: lo, hi: checkpoint.Position{Interval: id, Instr: ^uint64(0)}, fresh: true}, newest, 1)
		return w.draft != nil && w.draft.atEnd, err
	})
}

// byExplorer has an explorer run in interval id; run reports whether it came to the end. What was learnt behind a guess is the
// index's then, if that was right; again says that it was wrong.
func (x *index) byExplorer(ctx context.Context, id uint32, run func(*worker) (atEnd bool, err error)) (again bool, err error) {
	x.awaitClosed()
	w, err := newExplorer(x, id)
	if err != nil {
		return false, err
	}
	defer x.closeLater(w.m)
	defer w.guard(ctx)()
	if w.draft != nil {
		defer w.draft.drop()
	}
	atEnd, err := run(w)
	if err == nil && w.unsure() && atEnd {
		if err = w.confirm(); err == nil {
			return !w.publish(), nil
		}
	}
	return w.m.guessed(err), err
}

// ahead is how many times the usual distance lies between the snapshots that findEnd leaves on its way.
const ahead = 16

// findEnd has the index know where interval id ends, and leaves a snapshot there. The way may be long, and nobody looks at it: so it
// has few snapshots, behind each of which the pages that are stored to are copied. Errors: those of replay, and ctx's.
func (x *index) findEnd(ctx context.Context, id uint32) error {
	var end *checkpoint.Position // nil: it was not reached
	again, err := x.byExplorer(ctx, id, func(w *worker) (atEnd bool, err error) {
		w.stretch = ahead
		if err := w.back(checkpoint.Position{Interval: id, Instr: ^uint64(0)}); err != nil {
			return false, err
		}
		why, err := w.runToEnd(ctx, Never)
		if err != nil || why == StopInterrupt {
			return false, errorOr(ctx.Err(), err)
		}
		p := w.m.Position()
		end = &p
		w.keep()
		return true, nil
	})
	switch {
	case again: // the guess was wrong, and is not made again
		return nil
	case err == nil && end != nil:
		x.foundEnd(*end)
	}
	return err
}
