//go:build linux && amd64

package record

import (
	"errors"
	"slices"
	"sync"
	"time"

	"vplay/checkpoint"
)

// output is the file being written. Before the crash, or without KeepAlways,
// there is none.
type output struct {
	w *checkpoint.Writer

	mu      sync.Mutex
	started time.Time // of the final write; zero before
	stopped bool
}

// errStopped says that the user has stopped the writing.
var errStopped = errors.New("writing was stopped by a second interrupt")

// graceInterrupt is how long after the start of the final write an interrupt
// is taken for the one that ended the program.
const graceInterrupt = 200 * time.Millisecond

func (o *output) open() bool { return o.w != nil }

func (o *output) create(path string) error {
	w, err := checkpoint.Create(path, checkpoint.WriterOptions{Overwrite: true})
	if err == nil {
		o.w = w
	}
	return err
}

// interrupt is called for each SIGINT the recorder gets: one that comes while
// the recording is written stops that.
func (o *output) interrupt() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.started.IsZero() && time.Since(o.started) > graceInterrupt {
		o.stopped = true
	}
}

func (o *output) begin() {
	o.mu.Lock()
	o.started = time.Now()
	o.mu.Unlock()
}

func (o *output) check() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped {
		return errStopped
	}
	return nil
}

func (o *output) page(b []byte) (checkpoint.PageRef, error) { return o.w.AddPage(b) }

func (o *output) objectPage(k pageKey, data []byte) error {
	ref, err := o.w.AddPage(data)
	if err != nil {
		return err
	}
	return o.w.AddObjectPage(checkpoint.ObjectPage{Object: k.object, Index: k.index, Ref: ref})
}

func (o *output) interval(iv *checkpoint.Interval) error { return o.w.AddInterval(iv) }

func (o *output) abort() {
	if o.w != nil {
		_ = o.w.Abort()
		o.w = nil
	}
}

// abandon gives the recording up.
func (t *tracer) abandon() { t.out.abort() }

func sortEntries(p []checkpoint.PageEntry) {
	slices.SortFunc(p, func(a, b checkpoint.PageEntry) int {
		switch {
		case a.Addr < b.Addr:
			return -1
		case a.Addr > b.Addr:
			return 1
		}
		return 0
	})
}

// write finishes the recording: with KeepCrash everything that stands in the
// ring, the final image first.
func (t *tracer) write(m *moment, final *checkpoint.Final) error {
	t.out.begin()
	t.sayMissing()
	ring := t.out.w == nil
	if ring {
		if err := t.out.create(t.opt.Path); err != nil {
			return err
		}
	}
	if err := errors.Join(t.keepWhole(t.maps.all(), m.private), t.flush()); err != nil {
		return err
	}
	var last *pendingHash
	if ring {
		last = t.ring[len(t.ring)-1].hash
	}
	if err := t.store(m, last); err != nil {
		return err
	}
	final.Pages = append(final.Pages, m.refs...)
	if ring {
		if err := t.writeRing(m); err != nil {
			return err
		}
	}
	if err := t.out.w.SetFinal(final); err != nil {
		return err
	}
	for _, p := range t.filePend {
		if err := t.out.objectPage(p.key, p.data); err != nil {
			return err
		}
	}
	for _, o := range t.objs.list {
		if err := t.out.w.AddObject(o); err != nil {
			return err
		}
	}
	w := t.out.w
	if err := t.out.check(); err != nil {
		return err
	}
	t.out.w = nil
	return w.Finish(t.manifest)
}

// errLost says that the system has killed what holds the program's past.
var errLost = errors.New("memory ran short, and the system took what held the program's past")

// dropLost drops the intervals whose start is lost, and those before them: shadows are
// the first that the system kills when memory runs short.
func (t *tracer) dropLost() error {
	newest := -1
	for i := range t.ring {
		if isLost(t.ring[i].src) {
			newest = i
		}
	}
	if newest == len(t.ring)-1 {
		return errLost
	}
	for range newest + 1 {
		t.dropOldest()
		t.noteOnce("memory ran short: what was recorded earlier is lost")
	}
	return nil
}

// isLost reports whether r is a shadow that was killed.
func isLost(r pageReader) bool {
	s, ok := r.(*shadow)
	return ok && stateOf(s.pid) != 't'
}

// writeRing writes the intervals of the ring. The pages at the end of each are
// those that the next one's table changes.
func (t *tracer) writeRing(m *moment) error {
	if err := t.dropLost(); err != nil {
		return err
	}
	next := without(m.refs, m.changed)
	for i := len(t.ring) - 1; i >= 0; i-- {
		if err := errors.Join(t.out.check(), t.ctx.Err()); err != nil {
			return err
		}
		iv := t.ring[i]
		if len(iv.rec.End.Pages) == 0 && iv.rec.End.Kind != checkpoint.EndGap {
			iv.rec.End.Pages = next
		}
		set := iv.delta
		iv.rec.Delta = i > 0
		if i == 0 {
			set = iv.present
		}
		var before *pendingHash // of the end that is this start
		if i > 0 {
			before = t.ring[i-1].hash
		}
		refs, err := t.storeFrom(iv, set, before)
		if err != nil {
			return err
		}
		iv.finishHash()
		next = without(refs, iv.views)
		iv.rec.Pages = slices.Clone(refs)
		if i > 0 {
			iv.rec.Pages = append(iv.rec.Pages, removedEntries(iv.removed)...)
			sortEntries(iv.rec.Pages)
		}
		if err := t.out.interval(&iv.rec); err != nil {
			return err
		}
		if t.opt.Progress != nil {
			t.opt.Progress(len(t.ring)-i, len(t.ring))
		}
	}
	return nil
}

// storeFrom writes pages of an interval's start, and adds them to the hash of the end
// before, if that has one.
func (t *tracer) storeFrom(iv *live, set ranges, before *pendingHash) ([]checkpoint.PageEntry, error) {
	refs := make([]checkpoint.PageEntry, 0, set.count())
	err := eachPage(iv.src, set, func(addr uint64, page []byte) error {
		before.add(addr, page)
		ref, err := t.out.page(page)
		refs = append(refs, checkpoint.PageEntry{Addr: addr, Ref: ref})
		return err
	})
	if err != nil {
		return nil, err
	}
	for a, p := range iv.extra {
		ref, err := t.out.page(p)
		if err != nil {
			return nil, err
		}
		refs = append(refs, checkpoint.PageEntry{Addr: a, Ref: ref})
	}
	sortEntries(refs)
	return refs, nil
}
