//go:build linux && amd64

package record

import (
	"errors"

	"vplay/checkpoint"
)

// An execve ends the image, and with it the interval, but only if it succeeds: what the end
// looks like is kept at the call's entry, where the old image still stands.

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
