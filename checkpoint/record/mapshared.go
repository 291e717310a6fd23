//go:build linux && amd64

package record

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// What an object holds when the program maps it shared and writable cannot be had later,
// when the program has written to it: it is read at once, as far as it has data.

// sharedLimit bounds what is read of an object when it is mapped shared and
// writable, in bytes: content that was there before cannot be had later.
const sharedLimit = 64 << 20

// captureNewShared takes the pages of an object that becomes writable and
// shared, before the program changes them.
func (sp *space) captureNewShared(c *call, op *checkpoint.MapOp) error {
	if op.Map.Flags&checkpoint.MapShared == 0 || op.Map.Object == 0 {
		return nil
	}
	o := sp.objects.at(op.Map.Object)
	if o.Kind == checkpoint.ObjectShared && c.nr == unix.SYS_MMAP && c.args[3]&mapAnonymous != 0 {
		return nil // made by this call: zero
	}
	name := procPath(c.mem.p.live, int(int32(c.args[4])))
	if c.nr == unix.SYS_SHMAT {
		name = mapFile(sp.pid, op.Start, op.End)
	}
	return sp.captureFrom(c, op, name)
}

// captureFrom is captureNewShared for what the host has by a name.
func (sp *space) captureFrom(c *call, op *checkpoint.MapOp, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return sp.captureMapped(c, op)
	}
	defer func() { _ = f.Close() }() // only read
	o := sp.objects.at(op.Map.Object)
	if fi, err := f.Stat(); err == nil {
		o.Size = fi.Size()
	}
	return sp.captureObject(c, op, f, o.Size)
}

// sharedPart returns how many bytes of a new shared mapping are read.
func (o *objectStore) sharedPart(op *checkpoint.MapOp) uint64 {
	n := op.End - op.Start
	if n > sharedLimit {
		o.noteMissing(op.Map.Object, n-sharedLimit)
	}
	return min(n, sharedLimit)
}

// reportMissing puts what was not read of objects into the recording's notes, by name and
// size.
func (g *group) reportMissing() {
	s := g.session
	for _, id := range slices.Sorted(maps.Keys(g.objects.missing)) {
		note := fmt.Sprintf("%s: %.1f MiB of what it held when it was mapped shared are not in the recording", g.objects.at(id).Path, float64(g.objects.missing[id])/(1<<20))
		s.noteOnce(note)
		s.result.Missing = append(s.result.Missing, note)
	}
}

// extent is a range of a file that has data, [lo,hi) in bytes.
type extent struct{ lo, hi uint64 }

// maxExtents bounds how many are looked for in one file.
const maxExtents = 1 << 16

// captureObject reads the pages of the mapped part of an object from a file of the given
// size. What the file has no data for is zero: of a large file of which little is used,
// only that is read, and a page of a hole is kept when the program has touched it. Where
// there is more than is read, small ranges come before large ones.
func (sp *space) captureObject(c *call, op *checkpoint.MapOp, f *os.File, size int64) error {
	first := op.Map.Offset
	end := min(first+(op.End-op.Start), pageUp(uint64(max(size, 0))))
	var data []extent
	for at := first; at < end; {
		lo, hi := nextData(f, at, end)
		if len(data) == maxExtents || hi <= at { // or it changes meanwhile
			hi = end
		}
		if err := sp.captureHole(c, op, at-first, lo-first); err != nil {
			return err
		}
		data = append(data, extent{lo, hi})
		at = hi
	}
	slices.SortStableFunc(data, func(a, b extent) int { return cmp.Compare(a.hi-a.lo, b.hi-b.lo) })
	room := uint64(sharedLimit)
	for _, d := range data {
		read := min(d.hi-d.lo, room)
		room -= read
		if read < d.hi-d.lo {
			sp.objects.noteMissing(op.Map.Object, d.hi-d.lo-read)
		}
		if err := sp.captureData(c, op, f, extent{d.lo, d.lo + read}); err != nil {
			return err
		}
	}
	return nil
}

// captureData reads an extent of a file that is mapped by op, in whole pages.
func (sp *space) captureData(c *call, op *checkpoint.MapOp, f *os.File, d extent) error {
	for at := d.lo; at < d.hi; {
		run := make([]byte, min(pagesPerRead*checkpoint.PageSize, d.hi-at)) // of which each page is kept, mostly
		got, _ := f.ReadAt(run, int64(at))
		if got == 0 {
			return nil // it has become shorter
		}
		run = run[:pageUp(uint64(got))]
		clear(run[got:])
		for ; len(run) > 0; run = run[checkpoint.PageSize:] {
			if err := sp.captureView(c, op, at-op.Map.Offset, run[:checkpoint.PageSize:checkpoint.PageSize]); err != nil {
				return err
			}
			at += checkpoint.PageSize
		}
	}
	return nil
}

// nextData returns the next range of a file at or behind at that has data, in whole
// pages; it is empty, at end, when there is none before that (man 2 lseek).
func nextData(f *os.File, at, end uint64) (data, hole uint64) {
	fd := int(f.Fd())
	d, err := unix.Seek(fd, int64(at), unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) || err == nil && uint64(d) >= end {
		return end, end
	}
	if err != nil {
		return at, end // it does not tell
	}
	h, err := unix.Seek(fd, d, unix.SEEK_HOLE)
	if err != nil {
		return pageDown(uint64(d)), end
	}
	return pageDown(uint64(d)), min(pageUp(uint64(h)), end)
}

// zeroes is a page of a hole. It is not changed.
var zeroes = make([]byte, checkpoint.PageSize)

// captureHole takes note of a hole at bytes [from,to) of a new shared mapping.
func (sp *space) captureHole(c *call, op *checkpoint.MapOp, from, to uint64) error {
	if from >= to {
		return nil
	}
	lo, hi := (op.Map.Offset+from)/checkpoint.PageSize, (op.Map.Offset+to)/checkpoint.PageSize
	for k := range sp.objects.base { // what was no hole when it was mapped before
		if k.object == op.Map.Object && k.index >= lo && k.index < hi {
			if err := sp.captureView(c, op, k.index*checkpoint.PageSize-op.Map.Offset, slices.Clone(zeroes)); err != nil {
				return err
			}
		}
	}
	if sp.objects.holes == nil {
		sp.objects.holes = map[uint32]ranges{}
	}
	sp.objects.holes[op.Map.Object] = sp.objects.holes[op.Map.Object].union(ranges{{lo, hi}})
	return nil
}

// keepHoles keeps the pages of holes that the program has touched by now: they were zero.
func (sp *space) keepHoles(set ranges) error {
	if len(sp.objects.holes) == 0 {
		return nil
	}
	return set.each(func(page uint64) error {
		k := sp.keyAt(page * checkpoint.PageSize)
		if sp.objects.base[k] != nil || !sp.objects.isHole(k) {
			return nil
		}
		return sp.objects.keep(k, zeroes)
	})
}

// captureMapped reads the pages of a new shared mapping through the program.
func (sp *space) captureMapped(c *call, op *checkpoint.MapOp) error {
	n := sp.objects.sharedPart(op)
	for at := uint64(0); at < n; at += checkpoint.PageSize {
		b := make([]byte, checkpoint.PageSize)
		if sp.readMem(op.Start+at, b) != len(b) {
			break
		}
		if err := sp.captureView(c, op, at, b); err != nil {
			return err
		}
	}
	return nil
}

// captureView takes b, the page at byte at of a new shared mapping. A page that
// was kept when the object was mapped before may have changed since: then the log
// says what it holds, and reading it makes it present, so that later intervals
// have it too.
func (sp *space) captureView(c *call, op *checkpoint.MapOp, at uint64, b []byte) error {
	k := pageKey{op.Map.Object, (op.Map.Offset + at) / checkpoint.PageSize}
	old := sp.objects.base[k]
	if o := sp.objects.at(op.Map.Object); o.Kind == checkpoint.ObjectShared && strings.HasPrefix(o.Path, "/dev/zero") {
		old = zeroes // Replay knows that it was made of zeros.
	} else if old == nil && sp.objects.isHole(k) { // when it was mapped before
		old = zeroes
		if err := sp.objects.keep(k, zeroes); err != nil {
			return err
		}
	}
	if old != nil {
		if !bytes.Equal(old, b) && sp.readMem(op.Start+at, b) == len(b) {
			c.shown = append(c.shown, checkpoint.MemWrite{Addr: op.Start + at, Data: b})
		}
		return nil
	}
	sp.objects.base[k] = b
	return sp.objects.keep(k, b)
}
