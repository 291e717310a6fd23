//go:build linux && amd64

package record

import (
	"slices"

	"vplay/checkpoint"
)

// Calls whose effects cannot be listed: the interval ends at the entry, or, where that turns
// out at the exit, as if it had, and the next starts from a new image at the exit.

// beginGap ends the interval at the entry of a call whose effects cannot be
// listed.
func (t *thread) beginGap(why string) error {
	t.logEvent(checkpoint.Event{Kind: checkpoint.EventGap, NR: t.call.nr, Reason: why})
	m, err := t.space().takeSnapshot()
	if err != nil {
		return err
	}
	contexts := t.group().contexts(t)
	t.call.gap = true
	t.session.result.Stats.Gaps++
	return t.group().endInterval(m, intervalEnd{kind: checkpoint.EndGap, reason: why, contexts: contexts})
}

// endGap starts the next interval at the exit of the call.
func (t *thread) endGap(ret int64) error {
	c := &t.call
	if c.sharing {
		return t.stopSharing()
	}
	interrupted := isRestart(ret)
	contexts := t.group().contexts(t)
	if interrupted {
		// Its exit is the new interval's first event.
		contexts[0].InCall, contexts[0].OrigRAX = true, c.nr
		contexts[0].Regs.R[0] = uint64(c.nr)
		c.pending = true
	}
	m, err := t.space().takeSnapshot()
	if err != nil {
		return err
	}
	c.gap = false
	if interrupted {
		// No call can be injected here without losing the restart.
		return t.group().startCopied(t, m, contexts)
	}
	if err := t.group().startInterval(t, m, contexts); err != nil {
		return err
	}
	if err := t.afterCall(ret); err != nil {
		return err
	}
	return t.syncPoint()
}

// startCopied is startInterval where nothing can be injected.
func (g *group) startCopied(t *thread, m *snapshot, start []checkpoint.Context) error {
	return m.space.withoutShadow(func() error { return g.startInterval(t, m, start) })
}

// withoutShadow calls f, which starts an interval where no call can be injected: its pages are
// copied.
func (sp *space) withoutShadow(f func() error) error {
	was := sp.noShadow
	sp.noShadow = true
	err := f()
	sp.noShadow = was
	return err
}

// lateGap is for a call that turned out, at its exit, to have effects that
// cannot be listed.
func (t *thread) lateGap(why string) error {
	c := &t.call
	t.logEvent(checkpoint.Event{Kind: checkpoint.EventGap, NR: c.nr, Reason: why})
	contexts := t.group().contexts(t)
	before := slices.Clone(contexts)
	before[0].Regs = regsOf(&c.entry)
	before[0].Regs.R[0] = uint64(c.nr)
	before[0].InCall, before[0].OrigRAX = true, c.nr
	t.session.result.Stats.Gaps++
	if err := t.space().renewObjects(&t.call); err != nil {
		return err
	}
	m, err := t.space().takeSnapshot()
	if err != nil {
		return err
	}
	if err := t.group().endInterval(m, intervalEnd{kind: checkpoint.EndGap, reason: why, contexts: before, noPages: true}); err != nil {
		return err
	}
	if err := t.group().startInterval(t, m, contexts); err != nil {
		return err
	}
	if err := t.afterCall(int64(t.regs.Rax)); err != nil {
		return err
	}
	return t.syncPoint()
}
