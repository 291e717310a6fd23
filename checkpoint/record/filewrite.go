//go:build linux && amd64

package record

import (
	"cmp"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// Calls that change a file change the memory of a program that has it mapped:
// shared views, and private ones of pages it has not written. The changed pages
// are logged with the call. From then on a clean page of that file is no longer
// what was kept of it, so such pages are copied at every cut like those of
// shared memory.

// mappedTargets returns the ranges that map the files the call may change.
func (p *process) mappedTargets(c *call) []*mapping {
	var out []*mapping
	for _, f := range c.targets {
		out = append(out, p.space.mappings(p.space.views().objects[f.id])...)
	}
	return out
}

// mappings returns the ranges that map any of some objects, by address.
func (sp *space) mappings(objects []uint32) (out []*mapping) {
	for _, id := range objects {
		out = append(out, sp.views().list[id]...)
	}
	if len(objects) > 1 {
		slices.SortFunc(out, func(a, b *mapping) int { return cmp.Compare(a.Start, b.Start) })
	}
	return out
}

// target is a file that a call may change, as it was found at its entry.
type target struct {
	id   fileID
	path string // the host's; "" of what is known by its mapping
	size int64  // what keepViews has found
}

// fileTargets returns the files that the call may change. One that it is to make is mapped
// nowhere, and is left out.
func (p *process) fileTargets(c *call) (out []target) {
	if c.nr == unix.SYS_MADVISE {
		return p.space.removes(c)
	}
	for _, path := range p.targetPaths(c) {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil && st.Ino != 0 {
			out = append(out, target{id: fileID{st.Dev, st.Ino}, path: path})
		}
	}
	return out
}

// removes returns the files of which MADV_REMOVE takes pages.
func (sp *space) removes(c *call) (out []target) {
	for _, m := range sp.maps.overlap(c.args[0], c.args[0]+pageUp(c.args[1])) {
		if m.Object == 0 {
			continue
		}
		o := sp.objects.at(m.Object)
		out = append(out, target{id: fileID{o.Dev, o.Inode}})
	}
	return out
}

// targetPaths returns host paths of the files that the call may change.
func (p *process) targetPaths(c *call) []string {
	a := &c.args
	fd := func(i int) string { return procPath(p.live, int(int32(a[i]))) }
	path := func(i int, dir uint64) []string {
		if name, ok := p.space.readString(a[i]); ok {
			return []string{p.hostPath(name, dir)}
		}
		return nil
	}
	switch c.nr {
	case unix.SYS_SPLICE, unix.SYS_COPY_FILE_RANGE:
		return []string{fd(2)}
	case unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_TRUNCATE:
		return path(0, atFDCWD)
	case unix.SYS_OPENAT, unix.SYS_OPENAT2:
		return path(1, a[0])
	default:
		return []string{fd(0)}
	}
}

// beforeFileWrite keeps, at the call's entry, what the pages it may change hold.
func (p *process) beforeFileWrite(c *call) {
	c.before = map[uint64][]byte{}
	for _, m := range p.mappedTargets(c) {
		p.keepView(c, m)
	}
	p.space.keepGone(c)
}

// keepView keeps, at the call's entry, what the pages of a mapping hold that it may change.
func (p *process) keepView(c *call, m *mapping) {
	if err := p.space.captureFilePages(c, m.Start, m.End); err != nil {
		p.session.log.Warn().Err(err).Msg("pages of a file before it changes")
	}
	p.space.keepKept(c, m)
	p.space.objects.at(m.Object).Changed = true
	for _, w := range p.space.viewPages(c, m) {
		c.before[w.Addr] = w.Data
	}
}

// fileEffects returns the mapped bytes that the call has changed by writing to
// a file. A call that failed may have changed some of it.
func (p *process) fileEffects(c *call) []checkpoint.MemWrite {
	if c.before == nil {
		return nil
	}
	var out []checkpoint.MemWrite
	for _, m := range p.mappedTargets(c) {
		if o := p.space.objects.at(m.Object); o.Size >= 0 {
			if size := p.sizeNow(c, m); size >= 0 {
				o.Size = size
			}
		}
		out = append(out, p.space.changedView(c, m)...)
	}
	p.space.noteLogged(out)
	return out
}

// changedView returns the pages of a mapping that are not what they were at the call's entry.
func (sp *space) changedView(c *call, m *mapping) (out []checkpoint.MemWrite) {
	for _, w := range sp.viewPages(c, m) {
		if string(c.before[w.Addr]) != string(w.Data) {
			out = append(out, w)
		}
	}
	return out
}

// resized reports whether the call has changed the size of a file that is
// mapped across its old or its new end. Pages appear or vanish there, so that a
// new interval must start, in which the file is another object: of another
// size, with other pages.
func (p *process) resized(c *call) bool {
	if c.before == nil {
		return false
	}
	found := false
	for _, m := range p.mappedTargets(c) {
		o := p.space.objects.at(m.Object)
		size := p.sizeNow(c, m)
		if o.Size < 0 || size < 0 {
			continue
		}
		was, now := pageUp(uint64(o.Size)), pageUp(uint64(size))
		if was != now && m.Offset+(m.End-m.Start) > min(was, now) {
			p.space.objects.resize(p.space.objects.file(m.Object), p.stampNow(c, m, size))
			found = true
		}
	}
	return found
}

// sizeNow returns the size of the file behind a mapping, or -1. The kernel's name
// for the mapping tells it only where the model's ranges are the kernel's.
func (p *process) sizeNow(c *call, m *mapping) int64 {
	o := p.space.objects.at(m.Object)
	if c.nr == unix.SYS_MADVISE {
		return o.Size // It changes none.
	}
	if now, ok := c.stampOf(fileID{o.Dev, o.Inode}); ok {
		return now.size
	}
	return fileSize(p.live, m.Start, m.End)
}

// stampNow returns the size of the file behind a mapping, which is known, and its time, that of before where it is not known.
func (p *process) stampNow(c *call, m *mapping, size int64) stamp {
	f := p.space.objects.file(m.Object)
	if now, ok := c.stampOf(f); ok {
		return now
	}
	return stamp{size, p.space.objects.stamps[f].mtime}
}

// stampOf returns the size and the time of a file that is one of the call's targets.
func (c *call) stampOf(id fileID) (now stamp, ok bool) {
	for i := range c.targets {
		if f := &c.targets[i]; f.id == id {
			if now, ok = f.stampNow(); ok {
				return now, true
			}
		}
	}
	return now, false
}

// beforeMapFile looks at the file that the call is about to map. When no mapping of
// it is left and it has changed since the first, it is another object: what was
// kept of its pages holds no longer.
func (p *process) beforeMapFile(c *call, fd int32) {
	st, ok := p.statFD(fd)
	if !ok {
		return
	}
	c.maps = fileID{st.Dev, st.Ino}
	now := stamp{st.Size, st.Mtim}
	if was, ok := p.space.objects.stamps[c.maps]; ok && was != now {
		if p.space.isMapped(c.maps) {
			return
		}
		p.space.objects.forget(c.maps)
	}
	p.space.objects.stamps[c.maps] = now
}

// renewObjects gives mappings whose file was forgotten their new object.
func (sp *space) renewObjects(c *call) error {
	sp.group.cutOff = false
	list, err := sp.kernelMaps()
	if err != nil {
		return err
	}
	old := sp.maps
	sp.maps.adopt(list)
	for m := range sp.maps.tree.From(0) {
		if r := old.at(m.Start); m.Object == 0 || r != nil && r.Object == m.Object {
			continue
		}
		sp.objects.knowSize(m.Object)
		op := checkpoint.MapOp{Kind: checkpoint.MapOpMap, Start: m.Start, End: m.End, Map: m.Mapping}
		if m.private() {
			sp.showChanged(c, &op) // what is read then is in the page tables, and so in the new interval
			continue
		}
		if err := sp.captureMapped(c, &op); err != nil {
			return err
		}
	}
	return nil
}

// viewLimit bounds, in pages, how much of a mapping is compared around a call
// that does not say which part of the file it changes.
const viewLimit = 4096

// viewPages returns the content of the pages of a file's mapping that show the
// file, not the program's own copy, where the call may change it. Pages that
// are not in the page tables are read in: the log must have them too.
func (sp *space) viewPages(c *call, m *mapping) []checkpoint.MemWrite {
	scan, err := sp.scanPages([]mapping{*m})
	if err != nil {
		return nil
	}
	start, end := m.Start, m.End
	if c.nr == unix.SYS_PWRITE64 {
		off, n := c.args[3], c.args[2]
		if off+n <= m.Offset || off >= m.Offset+(m.End-m.Start) {
			return nil
		}
		start = max(start, pageDown(m.Start+off-min(off, m.Offset)))
		end = min(end, pageUp(m.Start+off+n-m.Offset))
		if off < m.Offset {
			start = m.Start
		}
	}
	set := ranges{{start / checkpoint.PageSize, end / checkpoint.PageSize}}.minus(scan.private)
	var out []checkpoint.MemWrite
	_ = set.each(func(page uint64) error {
		b := make([]byte, checkpoint.PageSize)
		if sp.readMem(page*checkpoint.PageSize, b) != len(b) {
			return errNoPage // beyond the end of the file
		}
		if len(out) >= viewLimit {
			sp.session.noteOnce("a call changed a file of which more is mapped than is compared: replay may diverge there")
			return errNoPage
		}
		out = append(out, checkpoint.MemWrite{Addr: page * checkpoint.PageSize, Data: b})
		return nil
	})
	return out
}

// keepKept keeps in memory what the recording has of the pages of m's object that the call may
// change: the hash of a forced end subtracts what was mapped at the interval's start, there or
// where nothing of the object is mapped any more, and the file will not tell.
func (sp *space) keepKept(c *call, m *mapping) {
	pages := sp.objects.keptOnly(m.Object, c)
	if len(pages) == 0 {
		return
	}
	f, done, err := sp.openMapped(m)
	if err != nil {
		return
	}
	defer done()
	sp.objects.keepPages(pages, f)
}

// keepGone is keepKept for files that were mapped when the interval began, and are not any more.
func (sp *space) keepGone(c *call) {
	for _, f := range c.targets {
		for _, id := range sp.gone(f.id) {
			pages := sp.objects.keptOnly(id, c)
			if len(pages) == 0 {
				continue
			}
			file, err := os.Open(f.path)
			if err != nil {
				sp.session.log.Warn().Err(err).Msg("pages of a file before it changes")
				continue
			}
			sp.objects.keepPages(pages, file)
			_ = file.Close() // only read
		}
	}
}

// keepPages keeps in memory what a file has of some pages.
func (o *objectStore) keepPages(pages []pageKey, f io.ReaderAt) {
	for _, k := range pages {
		b := make([]byte, checkpoint.PageSize)
		if n, _ := f.ReadAt(b, int64(k.index*checkpoint.PageSize)); n > 0 {
			o.base[k] = b
		}
	}
}

// keptOnly returns the pages of an object that the call may change, that the recording has, and
// that are not in base.
func (o *objectStore) keptOnly(object uint32, c *call) (out []pageKey) {
	if c.nr == unix.SYS_PWRITE64 {
		off, n := c.args[3], min(c.args[2], 1<<31) // no call writes more (man 2 write)
		for i := off / checkpoint.PageSize; i < pageUp(off+n)/checkpoint.PageSize; i++ {
			if k := (pageKey{object, i}); o.done[k] && o.base[k] == nil {
				out = append(out, k)
			}
		}
		return out
	}
	if o.looked[object] == len(o.done) {
		return nil
	}
	if o.looked == nil {
		o.looked = map[uint32]int{}
	}
	o.looked[object] = len(o.done)
	for k := range o.done {
		if k.object == object && o.base[k] == nil {
			out = append(out, k)
		}
	}
	return out
}

// noteLogged makes the private pages that the log gives another content, which is that of a file
// that has changed, part of the interval's written pages.
func (sp *space) noteLogged(w []checkpoint.MemWrite) {
	var pages []uint64
	for i := range w {
		if m := sp.maps.at(w[i].Addr); m != nil && m.private() {
			pages = append(pages, w[i].Addr/checkpoint.PageSize)
		}
	}
	sp.logged = sp.logged.union(rangesOf(pages))
}
