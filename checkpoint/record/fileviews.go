//go:build linux && amd64

package record

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// What a call does to a file that another recorded process has mapped. One that has it mapped shared logs what it sees as with other
// shared memory (sharedstores.go). One that has it mapped for itself alone (MAP_PRIVATE) sees it, too, in the pages that
// it has not stored to, so it takes turns with the process that makes the call from then on, and logs what
// it sees with the exit of its next call. And where the file is cut pages vanish, of a private mapping even those
// that were stored to (linux mm/truncate.c, truncate_pagecache): there a new interval of that process begins.

// fileView is what another process has mapped for itself alone of the files that a call may change.
type fileView struct {
	of   *process
	call *call // the call, as if that process made it
}

// isView reports whether a mapping shows a file to the process alone.
func isView(m *mapping) bool { return m.private() && m.Object != 0 }

// sharingGroups returns the groups that the thread's takes turns with, and whose memory is still there.
func (t *thread) sharingGroups() (out []*group) {
	c := t.group().sharers
	if c == nil {
		return nil
	}
	for _, g := range c.groups {
		if g != t.group() && !g.done && g.of.space.mm != nil {
			out = append(out, g)
		}
	}
	return out
}

// keepViews keeps what other processes have of the files that the call, at whose entry the thread is, may change.
func (t *thread) keepViews() {
	c := &t.call
	if len(c.targets) == 0 {
		return
	}
	for i := range c.targets {
		c.targets[i].size = c.targets[i].sizeNow()
	}
	for _, g := range t.sharingGroups() {
		if list := g.of.mappedTargets(c); len(list) > 0 {
			t.keepViewsOf(g.of, list)
		}
		g.of.space.keepGone(c)
	}
}

// keepViewsOf is keepViews for a process that has mapped the files so.
func (t *thread) keepViewsOf(p *process, list []*mapping) {
	c := &t.call
	v := fileView{of: p, call: &call{nr: c.nr, args: c.args, mem: callMem{p}, targets: c.targets, before: map[uint64][]byte{}}}
	for _, m := range list {
		switch {
		case isView(m):
			p.keepView(v.call, m)
		case c.mayCut():
			if err := p.space.captureFilePages(v.call, m.Start, m.End); err != nil {
				t.session.log.Warn().Err(err).Msg("pages of a file before it is cut")
			}
		}
	}
	c.views = append(c.views, v)
}

// mayCut reports whether a call that may change files may make one of them shorter.
func (c *call) mayCut() bool {
	switch c.nr {
	case unix.SYS_TRUNCATE, unix.SYS_FTRUNCATE, unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_OPENAT, unix.SYS_OPENAT2:
		return true
	case unix.SYS_FALLOCATE:
		return c.args[1]&unix.FALLOC_FL_COLLAPSE_RANGE != 0
	}
	return false
}

// noteViews has other processes log what the call, at whose exit the thread is, has changed of what they see.
func (t *thread) noteViews() {
	for i := range t.call.views {
		v := &t.call.views[i]
		sp := v.of.space
		if sp.mm == nil || sp.group.done {
			continue
		}
		for _, m := range v.of.mappedTargets(v.call) {
			if !isView(m) {
				continue
			}
			for _, w := range sp.changedView(v.call, m) {
				sp.group.noteSeen(w.Addr)
			}
		}
	}
	t.call.views = nil
	for i := range t.call.targets {
		f := &t.call.targets[i]
		now, ok := f.stampNow()
		isCut := ok && now.size < f.size
		t.space().noteChanged(f.id)
		for _, g := range t.sharingGroups() {
			g.of.space.noteChanged(f.id)
			if isCut {
				g.noteCut(f.id, now)
			}
		}
		if isCut {
			f.size = now.size // the thread may come to the exit again, when it has its turn
		}
	}
}

// noteChanged takes note that a call may have changed a file: what is kept of one that is not mapped holds no longer, and so for a mapping that is
// being made, whose call is under way. The file's times do not always tell: they are as coarse as the kernel's clock.
func (sp *space) noteChanged(f fileID) {
	if sp.mm != nil && len(sp.objects.ids[f]) > 0 && !sp.isMapped(f) {
		sp.objects.forget(f)
	}
}

// stampNow returns the size and the time of a file that a call may change; ok is false where they are not known.
func (f *target) stampNow() (now stamp, ok bool) {
	var st unix.Stat_t
	if f.path == "" || unix.Stat(f.path, &st) != nil || f.id != (fileID{st.Dev, st.Ino}) {
		return now, false
	}
	return stamp{st.Size, st.Mtim}, true
}

// sizeNow returns the size of a file that a call may change, -1 where it is not known.
func (f *target) sizeNow() int64 {
	now, ok := f.stampNow()
	if !ok {
		return -1
	}
	return now.size
}

// noteCut takes note of a file that another process has cut, if the group has a page behind the new end mapped. What
// is mapped there is another object from then on, with other pages.
func (g *group) noteCut(f fileID, now stamp) {
	sp := g.of.space
	for _, m := range sp.mappings(sp.views().objects[f]) {
		if m.Offset+(m.End-m.Start) > pageUp(uint64(now.size)) {
			g.cutOff = true
			sp.objects.resize(f, now)
			return
		}
	}
}

// moveSeen has what is still to be logged of private mappings logged where op, a move, has brought it, too. What is unmapped at the old place
// is left out then.
func (g *group) moveSeen(op *checkpoint.MapOp) {
	n := min(op.End-op.Start, op.NewEnd-op.New)
	for _, a := range slices.Collect(maps.Keys(g.seen)) {
		if a-op.Start < n {
			g.noteSeen(a - op.Start + op.New)
		}
	}
}

// noteSeen takes note that the page at a, of a private mapping, is another now.
func (g *group) noteSeen(a uint64) {
	if g.seen == nil {
		g.seen = map[uint64]struct{}{}
	}
	g.seen[a] = struct{}{}
}

// seenWrites returns what private mappings show since calls of other processes have changed files.
func (g *group) seenWrites(sp *space) (out []checkpoint.MemWrite) {
	for _, a := range slices.Sorted(maps.Keys(g.seen)) {
		b := make([]byte, checkpoint.PageSize)
		if sp.readMem(a, b) == len(b) { // else the file was cut since, or this call has unmapped or moved it
			out = append(out, checkpoint.MemWrite{Addr: a, Data: b})
		}
	}
	g.seen = nil
	sp.noteLogged(out)
	return out
}
