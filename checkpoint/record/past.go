//go:build linux && amd64

package record

import (
	"errors"
	"slices"

	"vplay/checkpoint"
)

// How what is recorded of a process is written to a file. What it has at its end is read first, while it stands still. The rest
// needs it no more: it may go on meanwhile.

// past is what is left to write then: the intervals of the process's ring, if they are kept in one, and the image of its end.
type past struct {
	group    *group // whose past it is
	out      *output
	ring     []*interval
	memory   *snapshot // at the end, whose pages are written
	final    *checkpoint.Final
	objects  []checkpoint.Object
	pages    []objectPage          // of the objects
	progress func(done, total int) // nil for none
	begun    bool                  // an interval is in the file
	from     []*interval           // those that the ring's are copies of: see retain
}

// takePast writes what memory m, at the end of what is recorded of the process, has changed since its last interval began, and
// returns the rest.
func (g *group) takePast(m *snapshot, final *checkpoint.Final) (past, error) {
	s := g.session
	streams := s.streams()
	g.reportMissing()
	if !s.out.open() {
		if err := s.out.create(s.crashPath(g.of)); err != nil {
			return past{}, err
		}
	}
	if err := errors.Join(m.space.keepWhole(m.space.maps.all(), m.private), g.flush()); err != nil {
		return past{}, err
	}
	p := past{group: g, out: s.out, memory: m, final: final, progress: s.opt.Progress}
	var last *pendingHash
	if !streams {
		p.ring = g.ring
		last = g.ring[len(g.ring)-1].hash
	}
	if err := g.store(m, last); err != nil {
		return past{}, err
	}
	final.Pages = append(final.Pages, m.refs...)
	p.objects, p.pages = slices.Clone(g.objects.list), g.objects.pending
	if s.live == nil || s.out != s.live.out { // else a later recording has them, too
		g.objects.pending = nil
	}
	return p, nil
}

// writePast writes it, without the intervals whose start is lost.
func (s *session) writePast(p *past) (err error) {
	if len(p.ring) > 0 {
		if p.ring, err = s.dropLost(p.ring); err != nil {
			return err
		}
	}
	err = p.write()
	if p.begun {
		s.noteWritten(p.group.of)
	}
	return err
}

// write writes it. Of the group and the session it uses what never changes.
func (p *past) write() error {
	if err := p.writeRing(); err != nil {
		return err
	}
	for _, page := range p.pages {
		if _, err := p.out.objectPage(page.key, page.data); err != nil {
			return err
		}
	}
	for _, o := range p.objects {
		if err := p.out.w.AddObject(o); err != nil {
			return err
		}
	}
	return p.out.w.SetFinalOf(int32(p.group.of.pid), p.final)
}

// writeRing writes the intervals. The pages at the end of each are those that the next one's table changes.
func (p *past) writeRing() error {
	ring, m := p.ring, p.memory
	next, later := without(m.refs, m.changed), m.dirty
	for i := len(ring) - 1; i >= 0; i-- {
		if err := errors.Join(p.out.check(), p.group.session.ctx.Err()); err != nil {
			return err
		}
		iv := ring[i]
		if len(iv.rec.End.Pages) == 0 && iv.rec.End.Kind != checkpoint.EndGap && !iv.noPages {
			iv.rec.End.Pages = without(next, iv.jumps)
		}
		set := iv.delta
		iv.rec.Delta = i > 0
		if i == 0 {
			set = iv.present
		}
		var before *pendingHash // of the end that is this start
		if i > 0 {
			before = ring[i-1].hash
		}
		refs, err := p.storeFrom(iv, m.startOf(iv, later), set, before)
		if err != nil {
			return err
		}
		if isLost(iv.src) { // meanwhile, and it may have been read as empty
			return ErrLost
		}
		iv.finishHash()
		later = later.union(iv.delta)
		next = without(refs, iv.views)
		iv.rec.Pages = refs // which next has, too
		if i > 0 && len(iv.removed) > 0 {
			iv.rec.Pages = slices.Concat(refs, removedEntries(iv.removed))
			sortEntries(iv.rec.Pages)
		}
		rec, err := p.group.session.asWritten(iv)
		if err != nil {
			return err
		}
		if err := p.out.interval(rec); err != nil {
			return err
		}
		p.begun = true
		if p.progress != nil {
			p.progress(len(ring)-i, len(ring))
		}
	}
	return nil
}

// storeFrom writes pages of an interval's start, which r reads, and adds them to the hash of the end
// before, if that has one.
func (p *past) storeFrom(iv *interval, r pageReader, set ranges, before *pendingHash) ([]checkpoint.PageEntry, error) {
	refs, err := p.out.storePages(r, set, before.add)
	if err != nil {
		return nil, err
	}
	for a, page := range iv.extra {
		ref, err := p.out.page(page)
		if err != nil {
			return nil, err
		}
		refs = append(refs, checkpoint.PageEntry{Addr: a, Ref: ref})
	}
	sortEntries(refs)
	return refs, nil
}

// storePages writes the pages of set that r has, calls note for each run of n pages with one content, and returns
// their rows.
func (o *output) storePages(r pageReader, set ranges, note func(addr, n uint64, page []byte)) ([]checkpoint.PageEntry, error) {
	refs := make([]checkpoint.PageEntry, 0, set.count())
	err := eachRun(r, set, func(addr, n uint64, page []byte) error {
		note(addr, n, page)
		ref, err := o.page(page)
		for ; n > 0; n-- {
			refs = append(refs, checkpoint.PageEntry{Addr: addr, Ref: ref})
			addr += checkpoint.PageSize
		}
		return err
	})
	return refs, err
}
