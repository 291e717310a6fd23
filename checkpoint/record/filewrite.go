//go:build linux && amd64

package record

import (
	"cmp"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// Calls that change a file change the memory of a program that has it mapped:
// shared views, and private ones of pages it has not written. The changed pages
// are logged with the call. From then on a clean page of that file is no longer
// what was kept of it, so such pages are copied at every border like those of
// shared memory.

// mappedTargets returns the ranges that map the files the call may change.
func (t *tracer) mappedTargets() []*mapping {
	if t.call.nr == unix.SYS_MADVISE {
		return t.sameObjects(t.call.args[0], t.call.args[0]+pageUp(t.call.args[1]))
	}
	var out []*mapping
	for _, path := range t.fileTargets() {
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil || st.Ino == 0 {
			continue
		}
		out = append(out, t.mappings(t.views().objects[fileID{st.Dev, st.Ino}])...)
	}
	return out
}

// mappings returns the ranges that map any of some objects, by address.
func (t *tracer) mappings(objects []uint32) (out []*mapping) {
	for _, id := range objects {
		out = append(out, t.views().list[id]...)
	}
	if len(objects) > 1 {
		slices.SortFunc(out, func(a, b *mapping) int { return cmp.Compare(a.Start, b.Start) })
	}
	return out
}

// sameObjects returns the ranges that map what [start,end) maps.
func (t *tracer) sameObjects(start, end uint64) []*mapping {
	ids := map[uint32]bool{}
	for _, m := range t.maps.overlap(start, end) {
		if m.Object != 0 {
			ids[m.Object] = true
		}
	}
	return t.mappings(slices.Collect(maps.Keys(ids)))
}

// fileTargets returns host paths of the files that the call may change.
func (t *tracer) fileTargets() []string {
	a := &t.call.args
	fd := func(i int) string { return procPath(t.pid, int(int32(a[i]))) }
	path := func(i int, dir uint64) []string {
		if name, ok := t.readString(a[i]); ok {
			return []string{t.hostPath(name, dir)}
		}
		return nil
	}
	switch t.call.nr {
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
func (t *tracer) beforeFileWrite() {
	t.call.before = map[uint64][]byte{}
	for _, m := range t.mappedTargets() {
		if err := t.captureFilePages(m.Start, m.End); err != nil {
			t.log.Warn().Err(err).Msg("pages of a file before it changes")
		}
		t.keepBase(m)
		t.objs.list[m.Object-1].Changed = true
		for _, w := range t.viewPages(m) {
			t.call.before[w.Addr] = w.Data
		}
	}
}

// mappedAtStart reports whether addr was mapped when the interval began.
func (t *tracer) mappedAtStart(addr uint64) bool {
	return mappedAt(t.cur.rec.Maps, addr) != nil
}

// fileEffects returns the mapped bytes that the call has changed by writing to
// a file. A call that failed may have changed some of it.
func (t *tracer) fileEffects() []checkpoint.MemWrite {
	if t.call.before == nil {
		return nil
	}
	var out []checkpoint.MemWrite
	for _, m := range t.mappedTargets() {
		if o := &t.objs.list[m.Object-1]; o.Size >= 0 {
			if size := t.sizeNow(m); size >= 0 {
				o.Size = size
			}
		}
		for _, w := range t.viewPages(m) {
			old := t.call.before[w.Addr]
			if string(old) == string(w.Data) {
				continue
			}
			out = append(out, w)
			if _, ok := t.logged[w.Addr]; m.private() && !ok {
				if !t.mappedAtStart(w.Addr) {
					old = nil
				}
				t.logged[w.Addr] = old
			}
		}
	}
	return out
}

// resized reports whether the call has changed the size of a file that is
// mapped across its old or its new end. Pages appear or vanish there, so that a
// new interval must start, in which the file is another object: of another
// size, with other pages.
func (t *tracer) resized() bool {
	if t.call.before == nil {
		return false
	}
	found := false
	for _, m := range t.mappedTargets() {
		o := &t.objs.list[m.Object-1]
		size := t.sizeNow(m)
		if o.Size < 0 || size < 0 {
			continue
		}
		was, now := pageUp(uint64(o.Size)), pageUp(uint64(size))
		if was != now && m.Offset+(m.End-m.Start) > min(was, now) {
			t.objs.forget(o.Dev, o.Inode)
			found = true
		}
	}
	return found
}

// sizeNow returns the size of the file behind a mapping, or -1. The kernel's name
// for the mapping tells it only where the model's ranges are the kernel's.
func (t *tracer) sizeNow(m *mapping) int64 {
	o := &t.objs.list[m.Object-1]
	if t.call.nr == unix.SYS_MADVISE {
		return o.Size // It changes none.
	}
	for _, path := range t.fileTargets() {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil && st.Ino == o.Inode && st.Dev == o.Dev {
			return st.Size
		}
	}
	return fileSize(t.pid, m.Start, m.End)
}

// stamp says which content a file has.
type stamp struct {
	size  int64
	mtime unix.Timespec
}

// beforeMapFile looks at a file that is about to be mapped. When no mapping of
// it is left and it has changed since the first, it is another object: what was
// kept of its pages holds no longer.
func (t *tracer) beforeMapFile(fd int) {
	var st unix.Stat_t
	if unix.Stat(procPath(t.pid, fd), &st) != nil {
		return
	}
	k, now := [2]uint64{st.Dev, st.Ino}, stamp{st.Size, st.Mtim}
	if was, ok := t.stamps[k]; ok && was != now {
		if t.isMapped(fileID{st.Dev, st.Ino}) {
			return
		}
		t.objs.forget(st.Dev, st.Ino)
	}
	t.stamps[k] = now
}

// renewObjects gives mappings whose file was forgotten their new object.
func (t *tracer) renewObjects() error {
	list, err := readMaps(t.pid, &t.objs)
	if err != nil {
		return err
	}
	old := t.maps
	t.maps.adopt(list)
	for m := range t.maps.tree.From(0) {
		if r := old.at(m.Start); m.private() || m.Object == 0 || r != nil && r.Object == m.Object {
			continue
		}
		op := checkpoint.MapOp{Kind: checkpoint.MapOpMap, Start: m.Start, End: m.End, Map: m.Mapping}
		if err := t.captureMapped(&op); err != nil {
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
func (t *tracer) viewPages(m *mapping) []checkpoint.MemWrite {
	c, err := t.pmap.takeCensus([]mapping{*m}, t.objs.list)
	if err != nil {
		return nil
	}
	start, end := m.Start, m.End
	if t.call.nr == unix.SYS_PWRITE64 {
		off, n := t.call.args[3], t.call.args[2]
		if off+n <= m.Offset || off >= m.Offset+(m.End-m.Start) {
			return nil
		}
		start = max(start, pageDown(m.Start+off-min(off, m.Offset)))
		end = min(end, pageUp(m.Start+off+n-m.Offset))
		if off < m.Offset {
			start = m.Start
		}
	}
	set := ranges{{start / checkpoint.PageSize, end / checkpoint.PageSize}}.minus(c.private)
	var out []checkpoint.MemWrite
	_ = set.each(func(page uint64) error {
		b := make([]byte, checkpoint.PageSize)
		if t.readMem(page*checkpoint.PageSize, b) != len(b) {
			return errNoPage // beyond the end of the file
		}
		if len(out) >= viewLimit {
			t.noteOnce("a call changed a file of which more is mapped than is compared: replay may diverge there")
			return errNoPage
		}
		out = append(out, checkpoint.MemWrite{Addr: page * checkpoint.PageSize, Data: b})
		return nil
	})
	return out
}

// keepBase keeps what the file holds behind the program's own pages of a
// private mapping, before the file changes: MADV_DONTNEED may bring them back.
func (t *tracer) keepBase(m *mapping) {
	if !m.private() {
		return
	}
	c, err := t.pmap.takeCensus([]mapping{*m}, t.objs.list)
	if err != nil || len(c.private) == 0 {
		return
	}
	f, done, err := t.openMapped(m)
	if err != nil {
		return
	}
	defer done()
	_ = c.private.each(func(page uint64) error {
		k := t.keyAt(page * checkpoint.PageSize)
		if t.sharedBase[k] != nil {
			return nil
		}
		b := make([]byte, checkpoint.PageSize)
		if n, _ := f.ReadAt(b, int64(k.index*checkpoint.PageSize)); n > 0 {
			t.sharedBase[k] = b
		}
		return nil
	})
}

// noteRefill makes pages that MADV_DONTNEED refills from a changed file part of
// the interval's written pages.
func (t *tracer) noteRefill(w []checkpoint.MemWrite) {
	for i := range w {
		addr := w[i].Addr
		if _, ok := t.logged[addr]; ok || !t.mappedAtStart(addr) {
			if !ok {
				t.logged[addr] = nil
			}
			continue
		}
		b := make([]byte, checkpoint.PageSize)
		if p, ok := t.sharedNow[addr]; ok {
			b = p
		} else if !t.cur.present.has(addr / checkpoint.PageSize) {
			b = t.sharedBase[t.keyAt(addr)]
		} else if t.cur.src.readPage(addr, b) != nil {
			b = nil
		}
		t.logged[addr] = b
	}
}
