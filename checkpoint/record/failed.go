//go:build linux && amd64

package record

import (
	"errors"
	"slices"

	"vplay/checkpoint"
)

// What becomes of a recording when the recorder fails, by a defect or because the system refuses something. The
// program is let go, and runs on unrecorded. A file that is written all along keeps what came before: for each process all
// intervals up to the one that was being recorded, of which nothing is known to be right. That one is written as it
// began, without an event. A ring is given up, because the program has not crashed.

// fail takes note that recording has failed, and keeps what there is. The program still stands as it was then.
func (s *session) fail(err error) {
	s.log.Debug().Err(err).Msg("recording failed")
	s.result.Reason, s.result.Err = err.Error(), err
	if kerr := s.keepWritten(); kerr != nil {
		s.log.Debug().Err(kerr).Msg("what came before is not kept")
	}
	s.abandon()
	if s.opt.Ended != nil && s.result.Recorded {
		s.opt.Ended("the recorder failed: "+s.result.Reason, true)
	}
}

// keepWritten makes the file whole that is written all along, if there is one and nobody wants it given up.
func (s *session) keepWritten() error {
	if !s.streams() {
		return nil
	}
	if err := errors.Join(s.out.check(), s.ctx.Err()); err != nil {
		return err
	}
	s.noteOnce("the recorder failed, and the program ran on unrecorded: " + s.result.Reason)
	for _, g := range s.groups {
		if g.done {
			continue
		}
		if err := g.endWhereBegun(s.result.Reason); err != nil {
			return err
		}
	}
	return s.finish()
}

// endWhereBegun has the file's part of the group end where the interval began that is not in the file yet. Without one,
// between execve(2) and the first interval of the new program, it ends with the old one.
func (g *group) endWhereBegun(reason string) error {
	l := g.cur
	if l == nil && g.unwritten {
		l = g.prev
	}
	if l == nil {
		if g.of.imageBefore != nil {
			g.of.about = *g.of.imageBefore
		}
		return nil
	}
	s := g.session
	rec := l.rec
	rec.Events, rec.End = nil, checkpoint.End{Kind: checkpoint.EndStop, Contexts: l.rec.Start, Reason: reason}
	g.unwritten = false
	final := &checkpoint.Final{Maps: l.rec.Maps, Contexts: l.rec.Start}
	if err := g.keepForDebugger(l, final); err != nil {
		s.log.Debug().Err(err).Msg("pages for the debugger") // the process may be gone, and replay does without
	}
	if err := s.out.interval(&rec); err != nil {
		return err
	}
	s.noteWritten(g.of)
	p := past{group: g, out: s.out, memory: &snapshot{space: l.space}, final: final, objects: slices.Clone(g.objects.list), pages: g.objects.pending}
	g.objects.pending = nil
	return p.write()
}

// keepForDebugger keeps the pages of files that a debugger reads though the program did not, as at any end. What is read
// is what the program has now, so nothing of it may run.
func (g *group) keepForDebugger(l *interval, final *checkpoint.Final) error {
	sp := l.space
	if at := g.session.answering; sp.mm == nil || g.turns.has != nil && (at == nil || at.group() != g) {
		return nil
	}
	list := sp.maps.all()
	now, err := sp.scanPages(list)
	if err != nil {
		return err
	}
	return errors.Join(sp.keepDebuggerSet(&call{}, final), sp.keepWhole(list, l.present.union(now.private)))
}
