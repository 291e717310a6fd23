//go:build linux && amd64

package record

import (
	"iter"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// How processes come to share memory: the second maps what the first has mapped shared, or one
// that has shared memory forks. They stay together until they end.

// join makes g and o share their turns. A thread that runs its own code keeps the turn.
func (g *group) join(o *group) {
	c := &sharers{since: time.Now(), content: sharedContent{}}
	for _, from := range []*group{g, o} {
		if from.sharers == nil {
			c.groups = append(c.groups, from)
			continue
		}
		from.sharers.noteAll(nil)
		c.groups = append(c.groups, from.sharers.groups...)
		for id, pages := range from.sharers.content {
			maps.Copy(c.content.of(id), pages)
		}
	}
	for _, m := range c.groups {
		if m.sharers == nil {
			c.noteStores(m)
		}
		m.sharers = c
		if t := m.turns.has; t != nil && t.call.in && m != g && !t.finishesCall() {
			t.giveUpTurn(action{}, true, checkpoint.SchedBlocked) // it is in the kernel
		}
		if m.turns.has != nil && m != g {
			c.has = m
		}
		m.hasRun = m.turns.has != nil
	}
	if c.has == nil {
		c.has = g
	}
	c.ran = c.has
}

// part takes a group out of those that it shares memory with: it has ended.
func (g *group) part() {
	c := g.sharers
	if c == nil {
		return
	}
	c.noteStores(g)
	g.sharers = nil
	c.groups = slices.DeleteFunc(c.groups, func(o *group) bool { return o == g })
	for _, k := range g.lastWords {
		c.notePage(g, k)
	}
	if c.has == g {
		c.has = nil
	}
	if c.ran == g {
		c.ran = nil
	}
	g.session.kicked = true
}

// isShared reports whether others may have mapped what a mapping shows.
func isShared(m *mapping) bool { return !m.private() && m.Object != 0 }

// isSharedWritable reports whether the process may store to memory that others may have mapped.
func isSharedWritable(m *mapping) bool { return isShared(m) && m.Prot&checkpoint.ProtWrite != 0 }

// sharesMapped reports whether the space has memory mapped that a child shares, and that one
// of them may write.
func (sp *space) sharesMapped() bool {
	for range sp.sharedWritable() {
		return true
	}
	return false
}

// sharedWritable returns the mappings in which the process may store what others see.
func (sp *space) sharedWritable() iter.Seq[*mapping] {
	return func(yield func(*mapping) bool) {
		for m := range sp.maps.tree.From(0) {
			if isSharedWritable(m) && !yield(m) {
				return
			}
		}
	}
}

// shares reports whether a file is mapped shared, writable unless another has it so.
func (sp *space) shares(f fileID, written bool) bool {
	return sp.mm != nil && slices.ContainsFunc(sp.mappings(sp.views().objects[f]), func(m *mapping) bool {
		return isSharedWritable(m) || isShared(m) && written
	})
}

// isSeen reports whether another recorded process sees what this one stores in some of its memory, or may come to.
func (sp *space) isSeen() bool { return sp.group.sharers != nil || sp.sharesFiles }

// hasView reports whether a file is mapped for the process alone.
func (sp *space) hasView(f fileID) bool {
	return sp.mm != nil && slices.ContainsFunc(sp.mappings(sp.views().objects[f]), isView)
}

// sharedFile is a file or a segment that a call shares with other processes; written says that
// the call may lead to its being changed.
type sharedFile struct {
	id      fileID
	written bool
	byCall  bool // the call itself changes it, so that those see it who have it mapped for themselves alone
}

// joinFiles joins the groups that have mapped any of some files shared, and reports whether there
// are such.
func (t *thread) joinFiles(files []sharedFile) (found bool) {
	g := t.group()
	for _, f := range files {
		for _, other := range g.session.groups {
			if other != g && !other.done && (other.of.space.shares(f.id, f.written) || f.byCall && other.of.space.hasView(f.id)) {
				t.joinGroup(other)
				found = true
			}
		}
	}
	return found
}

// joinWriters joins the groups one of whose calls is under way that may change a file which the
// thread has just mapped. They keep their turn until its exit: by then all it did is there.
func (t *thread) joinWriters(files []sharedFile) {
	for _, f := range files {
		for _, other := range t.session.groups {
			if w := other.turns.has; other != t.group() && !other.done && w != nil && w.call.changes(f.id) && w.finishesCall() {
				t.joinGroup(other)
			}
		}
	}
}

// finishesCall reports whether the kernel is at a call that may write to memory or to files, or changes the memory map, and does not wait
// for others: what it waits for might be what waits for it.
func (t *thread) finishesCall() bool {
	c := &t.call
	row, _ := abi.Lookup(c.nr)
	writes := len(c.targets) > 0 || row != nil && (row.Effect == abi.EffectPlain || row.Effect == abi.EffectMem)
	return c.in && !c.entering && writes && (c.tries || !t.mayBlock())
}

// changes reports whether the call may change a file.
func (c *call) changes(f fileID) bool {
	return slices.ContainsFunc(c.targets, func(t target) bool { return t.id == f })
}

// joinGroup joins the thread's group and another, if they are not together yet.
func (t *thread) joinGroup(other *group) {
	if g := t.group(); g.sharers == nil || g.sharers != other.sharers {
		g.join(other)
		t.call.joined = true
	}
}

// joinsBy joins the groups that have mapped shared what the call, at whose exit the thread is,
// has mapped, or has made writable, and those that write to the file that it has mapped. It reports whether one of them has the turn.
func (t *thread) joinsBy(ret int64) (waits bool) {
	g := t.group()
	if isError(ret) || len(g.session.groups) < 2 {
		return false
	}
	sp := t.space()
	files := sp.newlyShared(&t.call, uint64(ret))
	sp.sharesFiles = sp.sharesFiles || slices.ContainsFunc(files, func(f sharedFile) bool { return f.written })
	t.joinFiles(files)
	if t.call.maps != (fileID{}) {
		files = append(files, sharedFile{id: t.call.maps})
	}
	t.joinWriters(files)
	return g.sharers != nil && g.sharers.has != g
}

// newlyShared returns what a call with result ret shares.
func (sp *space) newlyShared(c *call, ret uint64) (out []sharedFile) {
	add := func(m *mapping, written bool) {
		if isShared(m) {
			out = append(out, sharedFile{id: sp.objects.file(m.Object), written: written})
		}
	}
	switch {
	case c.nr == unix.SYS_MMAP && c.args[3]&mapSharedType != 0 && c.args[3]&mapAnonymous == 0, c.nr == unix.SYS_SHMAT:
		if m, err := sp.lineAt(ret); err == nil {
			add(&m, m.Prot&checkpoint.ProtWrite != 0)
		}
	case (c.nr == unix.SYS_MPROTECT || c.nr == unix.SYS_PKEY_MPROTECT) && c.args[2]&unix.PROT_WRITE != 0:
		for _, m := range sp.maps.overlap(c.args[0], c.args[0]+pageUp(c.args[1])) {
			add(&m, true)
		}
	}
	return out
}
