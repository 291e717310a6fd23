//go:build linux && amd64

package record

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// Processes that share memory. Each has a log of its own and is replayed without the others,
// so what they store in the shared memory comes into a process from outside. One of them runs
// at a time: then it is enough to look, when a process has its turn again, what the others
// have changed, and to log that with the exit of the call at which it had stopped. So the turn
// passes from one process to another at the exit of a call, before that is logged. Where a
// process makes none for long, its interval is ended by force, and the next begins, with the
// memory as it is by then, when it has its turn again.
//
// Processes join when the second maps what the first has mapped shared, or when one that has
// shared memory forks. They never part.

// sharers is the groups that share memory.
type sharers struct {
	groups []*group
	has    *group // whose turn it is
	ran    *group // who had it last
	since  time.Time
	cost   time.Duration // of finding out, the last time, what a group had stored
	// content holds the shared pages as they were when a group had had its turn.
	content map[sharedPage][]byte
}

// sharedPage names a page of what is mapped shared.
type sharedPage struct {
	file  fileID
	index uint64
}

// join makes g and o share their turns. A thread that runs its own code keeps the turn.
func (g *group) join(o *group) {
	c := &sharers{since: time.Now(), content: map[sharedPage][]byte{}}
	for _, from := range []*group{g, o} {
		if from.sharers == nil {
			c.groups = append(c.groups, from)
			continue
		}
		from.sharers.noteAll(nil)
		c.groups = append(c.groups, from.sharers.groups...)
		maps.Copy(c.content, from.sharers.content)
	}
	for _, m := range c.groups {
		if m.sharers == nil {
			c.noteStores(m)
		}
		m.sharers = c
		if t := m.turns.has; t != nil && t.call.in && m != g {
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
	if c.has == g {
		c.has = nil
	}
	if c.ran == g {
		c.ran = nil
	}
	g.session.kicked = true
}

// next returns the thread that has the turn next, nil when somebody has it or nobody can.
func (c *sharers) next() *thread {
	// Two may run where they did when they were brought together by a third.
	if slices.ContainsFunc(c.groups, func(o *group) bool { return o.turns.has != nil }) {
		return nil
	}
	if c.has != nil {
		if t := c.has.nextTurn(); t != nil {
			return t
		}
	}
	// After the one that had it last, in a circle.
	at := slices.Index(c.groups, c.has) + 1
	for i := range c.groups {
		o := c.groups[(at+i)%len(c.groups)]
		if t := o.nextTurn(); t != nil {
			c.passTo(o)
			return t
		}
	}
	return nil
}

// passTo gives a group the turn.
func (c *sharers) passTo(g *group) {
	start := time.Now()
	c.noteAll(g)
	g.regained = g.regained || c.ran != g
	c.has, c.ran, c.since = g, g, time.Now()
	c.cost = c.since.Sub(start)
}

// noteAll looks for what the groups but one have stored that have run.
func (c *sharers) noteAll(but *group) {
	for _, o := range c.groups {
		if o != but && o.hasRun {
			c.noteStores(o)
			o.hasRun = false
		}
	}
}

// noteStores looks for what a group has stored in shared memory since it was looked for last,
// and has the others log it.
func (c *sharers) noteStores(g *group) {
	if g == nil || g.of.space.mm == nil {
		return
	}
	sp := g.of.space
	for _, m := range sp.maps.all() {
		if !isShared(&m) || m.Prot&checkpoint.ProtWrite == 0 {
			continue
		}
		scan, err := sp.scanPages([]mapping{m})
		if err != nil {
			return // it is gone
		}
		o := sp.objects.at(m.Object)
		_ = eachPage(sp.reader(), scan.shared, func(addr uint64, page []byte) error {
			k := sharedPage{fileID{o.Dev, o.Inode}, (addr - m.Start + m.Offset) / checkpoint.PageSize}
			if !bytes.Equal(c.content[k], page) {
				c.content[k] = slices.Clone(page)
				c.tellOthers(g, k)
			}
			return nil
		})
	}
}

// dropShared takes shared memory out of the page tables of a process that has the turn again,
// where there is much of it: then what is found there at the turn's end is what the process has
// used, and not all that it ever did. The memory keeps its content. The thread is at a sync
// point.
func (t *thread) dropShared() error {
	g, sp := t.group(), t.space()
	if g.sharers == nil || !g.regained {
		return nil
	}
	g.regained = false
	var list []mapping
	var pages []ranges
	count := uint64(0)
	for _, m := range sp.maps.all() {
		if !isShared(&m) || m.Prot&checkpoint.ProtWrite == 0 {
			continue
		}
		scan, err := sp.scanPages([]mapping{m})
		if err != nil {
			return err
		}
		list, pages, count = append(list, m), append(pages, scan.shared), count+scan.shared.count()
	}
	if count < dropFloor {
		return nil
	}
	g.sharers.noteStores(g) // the kernel's for the call that has just ended, too
	in, err := t.session.source.inject(t.proc.pid, t.tid, sp.site)
	if err != nil {
		return err
	}
	for i := range list {
		m := &list[i]
		ret, err := in.do(unix.SYS_MADVISE, m.Start, m.End-m.Start, madvDontNeed)
		if err != nil {
			return err
		}
		if ret == 0 {
			sp.noteUnmapped(m, pages[i])
		}
	}
	return in.end()
}

// dropFloor is from how many pages on that is worth it.
const dropFloor = 256

// noteStores is noteStores of the sharers' for the group of the space, if it shares memory.
func (sp *space) noteStores() {
	if g := sp.group; g.sharers != nil {
		g.sharers.noteStores(g)
	}
}

// storedByAny returns the pages that a process that shares its memory has stored in, as far as the
// space has them mapped: it need not have them in its own page tables.
func (sp *space) storedByAny() ranges {
	c := sp.group.sharers
	if c == nil {
		return nil
	}
	var pages []uint64
	for k := range c.content {
		sp.eachView(k, func(addr uint64) { pages = append(pages, addr/checkpoint.PageSize) })
	}
	return rangesOf(pages)
}

// eachView calls f for the addresses at which a space has a page mapped shared.
func (sp *space) eachView(k sharedPage, f func(addr uint64)) {
	for _, id := range sp.views().objects[k.file] {
		for _, m := range sp.views().list[id] {
			first := m.Offset / checkpoint.PageSize
			if isShared(m) && k.index >= first && k.index-first < (m.End-m.Start)/checkpoint.PageSize {
				f(m.Start + (k.index-first)*checkpoint.PageSize)
			}
		}
	}
}

// tellOthers has the groups but g log a page.
func (c *sharers) tellOthers(g *group, k sharedPage) {
	for _, o := range c.groups {
		if o == g {
			continue
		}
		if o.stored == nil {
			o.stored = map[sharedPage]struct{}{}
		}
		o.stored[k] = struct{}{}
	}
}

// othersReady reports whether another group that shares its memory waits for the turn.
func (g *group) othersReady() bool {
	return g.sharers != nil && slices.ContainsFunc(g.sharers.groups, func(o *group) bool { return o != g && len(o.turns.ready) > 0 })
}

// boundByOthers tells the timer of the group that has the turn that others wait for it.
func (c *sharers) boundByOthers(g *group) {
	if c != nil && c.has != nil && c.has != g && c.has.turns.has != nil {
		c.has.timer.turnEnds(c.since.Add(c.has.turns.limits.force))
	}
}

// leavesTurn reports whether the thread, at the exit of its call, gives the turn to another
// process: it has had it for a while, or it yields.
func (t *thread) leavesTurn() bool {
	g := t.group()
	if g.sharers == nil || g.sharers.has != g || !g.othersReady() {
		return false
	}
	return t.call.nr == unix.SYS_SCHED_YIELD || time.Since(g.sharers.since) >= max(g.turns.limits.slice, cutShare*g.sharers.cost)
}

// leaveTurn gives the turn to another process. ws is the exit at which the thread is.
func (t *thread) leaveTurn(ws unix.WaitStatus) {
	t.giveUpTurn(action{status: ws}, false, checkpoint.SchedSlice)
	t.parked.unlogged = true
	g := t.group()
	g.sharers.has = nil
	if next := g.sharers.after(g); next != nil {
		g.sharers.passTo(next)
	}
}

// after returns the group that has the turn after g, if any waits for it.
func (c *sharers) after(g *group) *group {
	at := slices.Index(c.groups, g) + 1
	for i := range c.groups {
		if o := c.groups[(at+i)%len(c.groups)]; o != g && len(o.turns.ready) > 0 {
			return o
		}
	}
	return nil
}

// pauseForced ends the interval at a forced stop of the thread, and gives the turn to another
// process.
func (t *thread) pauseForced() error {
	g := t.group()
	m, err := t.space().takeSnapshot()
	if err != nil {
		return err
	}
	b := intervalEnd{kind: checkpoint.EndForced, forced: true, contexts: g.contexts(t)}
	if err := g.endInterval(m, b); err != nil {
		return err
	}
	g.paused = true
	t.giveUpTurn(action{}, false, checkpoint.SchedSlice)
	g.sharers.has = nil
	if next := g.sharers.after(g); next != nil {
		g.sharers.passTo(next)
	}
	return nil
}

// goesOnWith is called when a thread gets the turn. Where the log has no exit of a call to
// come, with which it could say what others have stored, a new interval begins.
func (g *group) goesOnWith(t *thread) error {
	comes := t.call.in || t.call.pending
	if g.cur != nil && (len(g.stored) == 0 || comes) || g.cur == nil && !g.paused {
		return nil
	}
	g.paused = false
	contexts := g.contexts(t)
	m, err := t.space().takeSnapshot()
	if err != nil {
		return err
	}
	if g.cur != nil {
		if err := g.endInterval(m, intervalEnd{kind: checkpoint.EndSync, noPages: true, contexts: contexts}); err != nil {
			return err
		}
	}
	g.stored = nil
	if comes {
		return g.startCopied(t, m, contexts)
	}
	return g.startInterval(t, m, contexts)
}

// othersWrites returns what other processes have stored in shared memory since the group ran.
func (g *group) othersWrites(sp *space) []checkpoint.MemWrite {
	if g.sharers == nil || len(g.stored) == 0 {
		return nil
	}
	stored := g.stored
	g.stored = nil
	var out []checkpoint.MemWrite
	for k := range stored {
		sp.eachView(k, func(addr uint64) {
			out = append(out, checkpoint.MemWrite{Addr: addr, Data: g.sharers.content[k]})
		})
	}
	slices.SortFunc(out, func(a, b checkpoint.MemWrite) int { return cmp.Compare(a.Addr, b.Addr) })
	return out
}

// sharesMapped reports whether the space has memory mapped that a child shares, and that one
// of them may write.
func (sp *space) sharesMapped() bool {
	for m := range sp.maps.tree.From(0) {
		if isShared(m) && m.Prot&checkpoint.ProtWrite != 0 {
			return true
		}
	}
	return false
}

// isShared reports whether others may have mapped what a mapping shows.
func isShared(m *mapping) bool { return !m.private() && m.Object != 0 }

// sharedFile is a file or a segment that a call shares with other processes; written says that
// the call may lead to its being changed.
type sharedFile struct {
	id      fileID
	written bool
}

// joinsBy joins the groups that have mapped shared what the call, at whose exit the thread is,
// has mapped, has made writable, or has written to. It reports whether one of them has the
// turn.
func (t *thread) joinsBy(ret int64) (waits bool) {
	g := t.group()
	if isError(ret) || len(g.session.groups) < 2 {
		return false
	}
	for _, f := range t.newlyShared(uint64(ret)) {
		for _, other := range slices.Clone(g.session.groups) {
			together := other.sharers != nil && other.sharers == g.sharers
			if other != g && !other.done && !together && other.of.space.shares(f.id, f.written) {
				g.join(other)
				t.call.joined = true
			}
		}
	}
	return g.sharers != nil && g.sharers.has != g
}

// newlyShared returns what a call with result ret shares.
func (t *thread) newlyShared(ret uint64) (out []sharedFile) {
	c, sp := &t.call, t.space()
	add := func(m *mapping, written bool) {
		if isShared(m) {
			o := sp.objects.at(m.Object)
			out = append(out, sharedFile{fileID{o.Dev, o.Inode}, written})
		}
	}
	switch {
	case c.nr == unix.SYS_MMAP && c.args[3]&mapSharedType != 0 && c.args[3]&mapAnonymous == 0, c.nr == unix.SYS_SHMAT:
		if m, err := sp.lineAt(ret); err == nil {
			add(&m, m.Prot&checkpoint.ProtWrite != 0)
		}
	case c.nr == unix.SYS_MPROTECT && c.args[2]&unix.PROT_WRITE != 0:
		for _, m := range sp.maps.overlap(c.args[0], c.args[0]+pageUp(c.args[1])) {
			add(&m, true)
		}
	case c.before != nil:
		for _, id := range t.proc.filesWritten(c) {
			out = append(out, sharedFile{id, true})
		}
	}
	return out
}

// filesWritten returns the files that the call may change.
func (p *process) filesWritten(c *call) (out []fileID) {
	if c.nr == unix.SYS_MADVISE {
		return nil
	}
	for _, path := range p.fileTargets(c) {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil && st.Ino != 0 {
			out = append(out, fileID{st.Dev, st.Ino})
		}
	}
	return out
}

// noteWritten has the others log what a call of g's process has changed in a file that they
// have mapped shared. No page table tells of it. With all they log whatever they see of it:
// they joined at this call, and what they saw before is not known.
func (c *sharers) noteWritten(g *group, id fileID, all bool) {
	for _, o := range c.groups {
		sp := o.of.space
		if o == g || sp.mm == nil {
			continue
		}
		for _, object := range sp.views().objects[id] {
			for _, m := range sp.views().list[object] {
				if isShared(m) {
					c.noteView(g, sp, m, id, all)
				}
			}
		}
	}
}

// noteView looks at all that a mapping of a file shows, as far as sharedLimit goes.
func (c *sharers) noteView(g *group, sp *space, m *mapping, id fileID, all bool) {
	end := min(m.End, m.Start+sharedLimit)
	_ = eachPage(sp.reader(), ranges{{m.Start / checkpoint.PageSize, end / checkpoint.PageSize}}, func(addr uint64, page []byte) error {
		k := sharedPage{id, (addr - m.Start + m.Offset) / checkpoint.PageSize}
		if all || !bytes.Equal(c.content[k], page) {
			c.content[k] = slices.Clone(page)
			c.tellOthers(g, k)
		}
		return nil
	})
}

// shares reports whether a file is mapped shared, writable unless another has it so.
func (sp *space) shares(f fileID, written bool) bool {
	if sp.mm == nil {
		return false
	}
	for _, id := range sp.views().objects[f] {
		if slices.ContainsFunc(sp.views().list[id], func(m *mapping) bool {
			return isShared(m) && (written || m.Prot&checkpoint.ProtWrite != 0)
		}) {
			return true
		}
	}
	return false
}

// atCallExit is the exit of a system call. The turn may pass to another process first.
func (t *thread) atCallExit() (action, error) {
	const exit = unix.WaitStatus(ptrace.SyscallTrap)<<8 | 0x7f
	if !t.call.patched && t.joinsBy(int64(t.regs.Rax)) {
		t.regs = t.call.entry // as they were while it was in the call
		t.leaveTurnFor(exit)
		return action{parked: true}, nil
	}
	if !t.parked.passed && t.leavesTurn() {
		t.regs = t.call.entry
		t.leaveTurn(exit)
		t.parked.passed = true
		return action{parked: true}, nil
	}
	t.parked.passed = false
	if g := t.group(); g.sharers != nil && t.call.before != nil {
		for _, id := range t.proc.filesWritten(&t.call) {
			g.sharers.noteWritten(g, id, t.call.joined)
		}
	}
	return t.onExit()
}

// leaveTurnFor parks the thread, at the exit of a call, because another process has the turn.
func (t *thread) leaveTurnFor(ws unix.WaitStatus) {
	t.giveUpTurn(action{status: ws}, false, checkpoint.SchedBlocked)
	t.parked.unlogged = true
}
