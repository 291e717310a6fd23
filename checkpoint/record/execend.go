//go:build linux && amd64

package record

import (
	"errors"
	"slices"

	"vplay/checkpoint"
)

// An execve ends the image, and with it the interval, but only if it succeeds: what the end
// looks like is kept at the call's entry, where the old image still stands. A process can also be
// killed in the middle, when the old image is gone and nothing of the new one has run: then its log
// ends with that end, too.

// pendingEnd is an end that takes place if the execve succeeds.
type pendingEnd struct {
	m *snapshot
	b intervalEnd
}

// prepareExec keeps what the end of this image looks like, in case the execve
// that is about to run succeeds.
func (g *group) prepareExec(t *thread) error {
	g.execEnd = nil
	if !g.session.streams() {
		return nil
	}
	m, err := t.space().takeSnapshot()
	if err != nil {
		return err
	}
	if err := g.store(m, nil); err != nil {
		return err
	}
	if err := t.space().keepWhole(t.space().maps.all(), m.private); err != nil {
		return err
	}
	contexts := g.contexts(t)
	if err := t.space().keepDebuggerSet(&t.call, &checkpoint.Final{Maps: t.space().maps.mappings(), Contexts: contexts}); err != nil {
		return err
	}
	cpu, err := g.cpuTime()
	if err != nil {
		return err
	}
	g.execEnd = &pendingEnd{m, intervalEnd{kind: checkpoint.EndExec, contexts: contexts, cpu: cpu}}
	return nil
}

// finishExecEnd ends the last interval of the image before.
func (g *group) finishExecEnd() {
	end := g.execEnd
	g.execEnd = nil
	if end == nil || g.cur == nil {
		return
	}
	if err := errors.Join(g.endInterval(end.m, end.b), g.flush()); err != nil {
		g.session.log.Error().Err(err).Msg("end of the image before execve")
	}
}

// hasLostImage reports whether the thread, which is being killed, is in an execve that has
// replaced its memory already. The kernel may not have told: a signal that kills goes before
// PTRACE_EVENT_EXEC.
func (t *thread) hasLostImage() bool {
	c := &t.call
	if !c.in || !c.exec {
		return false
	}
	var b [1]byte
	return c.replaced || t.space().readMem(c.entry.Rip-syscallInsnLen, b[:]) == 0
}

// killedInExec is PTRACE_EVENT_EXIT of such a thread.
func (t *thread) killedInExec(sig int) (action, error) {
	if t.group().shares() { // the memory that it has left
		if err := t.splitOff(); err != nil {
			return action{}, err
		}
	}
	t.group().dropImage()
	return t.group().killedUnbegun(sig)
}

// killedUnbegun ends the recording of a process that is killed before the first interval of its
// image. What is left of it is the image before, if that was recorded.
func (g *group) killedUnbegun(sig int) (action, error) {
	p := g.of
	if !slices.Contains(g.session.written, p) {
		var err error
		if p == g.session.first {
			err = errors.New("killed before its first interval")
		}
		g.settle(err)
		return action{}, nil
	}
	if p.imageBefore != nil {
		p.about = *p.imageBefore
	}
	p.about.Signo = int32(sig)
	if p.isCrash(sig) {
		g.session.noteCrash(p, p, sig)
	}
	g.settle(nil)
	return action{}, nil
}
