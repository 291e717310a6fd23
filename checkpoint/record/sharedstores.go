//go:build linux && amd64

package record

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// What processes store in memory that they share. It is found by comparing the pages in the
// page tables of the one that ran with what they held before, and is logged by the others when
// they have their turns again.

// sharedPage names a page of what is mapped shared.
type sharedPage struct {
	file  fileID
	index uint64
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
	for m := range sp.sharedWritable() {
		pages, err := sp.storedIn(m)
		if err != nil {
			return // it is gone
		}
		c.notePages(g, sp, m, pages, false)
	}
	sp.watch.noted()
	if sp.session.opt.checkClean {
		c.verifyNoted(sp)
	}
}

// verifyNoted counts pages of watched memory that are not as they were noted.
func (c *sharers) verifyNoted(sp *space) {
	for m := range sp.sharedWritable() {
		if !sp.mayWatch(m) {
			continue
		}
		scan, err := sp.scanPages([]mapping{*m})
		if err != nil {
			return // it is gone
		}
		known := c.content[sp.objects.file(m.Object)]
		_ = eachPage(sp.reader(), scan.shared, func(addr uint64, page []byte) error {
			if p := known[keyIn(&m.Mapping, addr).index]; p == nil || !bytes.Equal(p.data, page) {
				sp.session.result.Stats.MissedPages++
				sp.session.log.Error().Uint64("addr", addr).Msg("shared page changed without being noted")
			}
			return nil
		})
	}
}

// notePages has the groups but g log those pages of a mapping of sp's that are not as they were
// the last time, or all.
func (c *sharers) notePages(g *group, sp *space, m *mapping, pages ranges, all bool) {
	id := sp.objects.file(m.Object)
	known := c.content.of(id)
	sp.eachPageAtOnce(pages, func(addr uint64, page []byte) {
		index := keyIn(&m.Mapping, addr).index
		changed := allLines
		if p := known[index]; p == nil {
			known[index] = &knownPage{data: slices.Clone(page)}
		} else if lines := p.update(page); !all {
			changed = lines
		}
		if changed != 0 {
			c.tellOthers(g, sharedPage{id, index}, changed)
		}
	})
}

// notePage has the groups, g is not among them any more, log a page that has changed.
func (c *sharers) notePage(g *group, k sharedPage) {
	for _, o := range c.groups {
		sp := o.of.space
		if sp.mm == nil {
			continue
		}
		sp.eachView(k, func(addr uint64) {
			page := addr / checkpoint.PageSize
			c.notePages(g, sp, sp.maps.at(addr), ranges{{page, page + 1}}, false)
		})
	}
}

// tellOthers has the groups but g log what has changed of a page.
func (c *sharers) tellOthers(g *group, k sharedPage, changed pageLines) {
	for _, o := range c.groups {
		if o == g {
			continue
		}
		if o.stored == nil {
			o.stored = map[sharedPage]pageLines{}
		}
		o.stored[k] |= changed
	}
}

// dropFloor is from how many pages on dropShared is worth it.
const dropFloor = 256

// dropShared takes shared memory that is not watched out of the page tables of a process that has the turn again,
// where there is much of it: then what is found there at the turn's end is what the process has
// used, and not all that it ever did. The memory keeps its content. The thread, whose group
// shares memory, is at a sync point.
func (t *thread) dropShared() error {
	g, sp := t.group(), t.space()
	if !g.regained {
		return nil
	}
	g.regained = false
	var list []mapping
	var pages []ranges
	count := uint64(0)
	for m := range sp.sharedWritable() {
		if sp.mayWatch(m) {
			continue
		}
		scan, err := sp.scanPages([]mapping{*m})
		if err != nil {
			return err
		}
		list, pages, count = append(list, *m), append(pages, scan.shared), count+scan.shared.count()
	}
	if count < dropFloor {
		return nil
	}
	in, err := t.session.source.inject(t.proc.pid, t.tid, sp.site)
	if err != nil {
		return err
	}
	for i := range list {
		m := &list[i]
		g.sharers.notePages(g, sp, m, pages[i], false) // the kernel's for the call that has just ended, too
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
	for id, known := range c.content {
		for index := range known {
			sp.eachView(sharedPage{id, index}, func(addr uint64) { pages = append(pages, addr/checkpoint.PageSize) })
		}
	}
	return rangesOf(pages)
}

// takeKnown adds to copies those pages of set of which it is known what processes have stored there, and returns the others. The copies
// are of the sharers, for all of them at all times: they are not to be changed.
func (sp *space) takeKnown(set ranges, copies map[uint64][]byte) ranges {
	g := sp.group
	c := g.sharers
	if c == nil || c.has != g || sp.outside != nil {
		return set
	}
	c.noteStores(g)
	var known ranges
	for m := range sp.sharedWritable() {
		if sp.objects.at(m.Object).Kind != checkpoint.ObjectShared {
			continue
		}
		content := c.content[sp.objects.file(m.Object)]
		set.within(m.Start/checkpoint.PageSize, m.End/checkpoint.PageSize, func(lo, hi uint64) {
			for page := lo; page < hi; page++ {
				addr := page * checkpoint.PageSize
				if p := content[keyIn(&m.Mapping, addr).index]; p != nil {
					copies[addr] = p.keep()
					known.add(page, page+1)
				}
			}
		})
	}
	return set.minus(known)
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

// othersWrites returns what other processes have stored in shared memory, or have written to the
// group's by calls, since the group ran.
func (g *group) othersWrites(sp *space) []checkpoint.MemWrite {
	out := sp.readWrites(g.remote)
	g.remote = nil
	if g.sharers == nil || len(g.stored) == 0 {
		return out
	}
	stored := g.stored
	g.stored = nil
	for k, changed := range stored {
		p := g.sharers.content[k.file][k.index]
		if p == nil { // nobody can read it any more
			continue
		}
		data := make([]byte, 0, changed.size())
		changed.each(func(from, to int) {
			at := len(data)
			data = append(data, p.data[from:to]...)
			sp.eachView(k, func(addr uint64) {
				out = append(out, checkpoint.MemWrite{Addr: addr + uint64(from), Data: data[at:len(data):len(data)]})
			})
		})
	}
	slices.SortFunc(out, func(a, b checkpoint.MemWrite) int { return cmp.Compare(a.Addr, b.Addr) })
	return out
}

// forgetCut forgets the pages of a file that nobody can read any more: a call may have cut it.
func (c *sharers) forgetCut(id fileID) {
	maps.DeleteFunc(c.content[id], func(index uint64, _ *knownPage) bool {
		return !slices.ContainsFunc(c.groups, func(o *group) bool { return o.of.space.canRead(sharedPage{id, index}) })
	})
}

// canRead reports whether the space has a page mapped shared that is there.
func (sp *space) canRead(k sharedPage) (can bool) {
	if sp.mm == nil {
		return false
	}
	var b [1]byte
	sp.eachView(k, func(addr uint64) { can = can || sp.readMem(addr, b[:]) == len(b) })
	return can
}

// noteWritten has the others log what a call of g's process has changed in a file that they
// have mapped shared, as far as sharedLimit goes. No page table tells of it. With all they log
// whatever they see of it: they joined at this call, and what they saw before is not known.
func (c *sharers) noteWritten(g *group, id fileID, all bool) {
	c.forgetCut(id)
	for _, o := range c.groups {
		sp := o.of.space
		sp.noteFileWritten(id)
		if o == g || sp.mm == nil {
			continue
		}
		for _, m := range sp.mappings(sp.views().objects[id]) {
			if isShared(m) {
				end := min(m.End, m.Start+sharedLimit)
				c.notePages(g, sp, m, ranges{{m.Start / checkpoint.PageSize, end / checkpoint.PageSize}}, all)
			}
		}
	}
}
