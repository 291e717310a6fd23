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
func (g *group) write(m *snapshot, final *checkpoint.Final) error {
	g.session.out.begin()
	g.session.reportMissing()
	ring := g.session.out.w == nil
	if ring {
		if err := g.session.out.create(g.session.opt.Path); err != nil {
			return err
		}
	}
	if err := errors.Join(m.space.keepWhole(m.space.maps.all(), m.private), g.flush()); err != nil {
		return err
	}
	var last *pendingHash
	if ring {
		last = g.ring[len(g.ring)-1].hash
	}
	if err := g.store(m, last); err != nil {
		return err
	}
	final.Pages = append(final.Pages, m.refs...)
	if ring {
		if err := g.writeRing(m); err != nil {
			return err
		}
	}
	if err := g.session.out.w.SetFinal(final); err != nil {
		return err
	}
	for _, p := range g.session.objects.pending {
		if err := g.session.out.objectPage(p.key, p.data); err != nil {
			return err
		}
	}
	for _, o := range g.session.objects.list {
		if err := g.session.out.w.AddObject(o); err != nil {
			return err
		}
	}
	w := g.session.out.w
	if err := g.session.out.check(); err != nil {
		return err
	}
	g.session.out.w = nil
	return w.Finish(g.session.manifest)
}
