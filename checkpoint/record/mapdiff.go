//go:build linux && amd64

package record

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// A memory call that fails may have acted all the same: madvise and mprotect go
// on behind a hole or stop in the middle, mremap and mmap unmap the target first.
// Of some other calls the arguments do not say what they do. After those the
// recorder compares its model with the kernel's list, and takes the page tables
// for what was dropped.

// asksKernel reports whether what the call did is to be read from the kernel:
// it failed, or its arguments do not say.
func (sp *space) asksKernel(c *call, ret int64) bool {
	a := &c.args
	switch c.nr {
	case unix.SYS_MMAP:
		return isError(ret) || a[3]&unix.MAP_HUGETLB != 0 || sp.readExec
	case unix.SYS_MREMAP: // No bytes of a shared mapping: another view of it.
		return isError(ret) || a[1] == 0
	case unix.SYS_MPROTECT, unix.SYS_PKEY_MPROTECT, unix.SYS_SHMAT:
		return isError(ret) || sp.readExec
	case unix.SYS_MUNMAP, unix.SYS_SHMDT, unix.SYS_BRK:
		return isError(ret)
	case unix.SYS_REMAP_FILE_PAGES:
		return true
	}
	return false
}

// isError reports whether a system call's result is an errno.
func isError(ret int64) bool { return ret < 0 && ret > -4096 }

// observed returns the changes of the map that the kernel shows and the model
// does not have yet, and what the pages of the program's own in new ranges hold.
func (sp *space) observed(c *call) ([]checkpoint.MapOp, []checkpoint.MemWrite, error) {
	list, err := sp.kernelMaps()
	if err != nil {
		return nil, nil, err
	}
	ops := sp.movedBefore(c, sp.maps.changesTo(list))
	after := newMapModel(sp.maps.all())
	for i := range ops {
		after.apply(&ops[i])
	}
	ops = append(ops, after.changesTo(list)...)
	var writes []checkpoint.MemWrite
	for i := range ops {
		if op := &ops[i]; op.Kind == checkpoint.MapOpMap {
			w, err := sp.newPages(c, op)
			if err != nil {
				return nil, nil, err
			}
			writes = append(writes, w...)
		}
	}
	if a := &c.args; c.nr == unix.SYS_MREMAP && a[3]&unix.MREMAP_FIXED != 0 {
		kernel := newMapModel(list)
		w, drops, err := sp.movedHalfway(c, &kernel)
		if err != nil {
			return nil, nil, err
		}
		ops, writes = append(ops, drops...), append(writes, w...)
	}
	return ops, writes, nil
}

// newPages returns what the program's own pages in a new range hold, and keeps
// the pages of objects there.
func (sp *space) newPages(c *call, op *checkpoint.MapOp) ([]checkpoint.MemWrite, error) {
	m := mapping{Mapping: op.Map}
	if !m.private() {
		return nil, sp.captureMapped(c, op)
	}
	scan, err := sp.scanPages([]mapping{m})
	if err != nil {
		return nil, err
	}
	if err := sp.keepOriginals([]mapping{m}, scan.private); err != nil {
		return nil, err
	}
	return sp.pagesNow(scan.private), nil
}

// movedHalfway looks at the pages of an mremap that failed. With
// MREMAP_DONTUNMAP the ranges it has moved are still mapped, but empty, and the
// map does not tell what was at the target before.
func (sp *space) movedHalfway(c *call, kernel *mapModel) ([]checkpoint.MemWrite, []checkpoint.MapOp, error) {
	a := &c.args
	size := min(pageUp(a[1]), pageUp(a[2]))
	var target []mapping
	for _, m := range kernel.overlap(a[4], a[4]+size) {
		if m.private() {
			target = append(target, m.part(max(m.Start, a[4]), min(m.End, a[4]+size)))
		}
	}
	scan, err := sp.scanPages(target)
	if err != nil {
		return nil, nil, err
	}
	drops, err := sp.droppedIn(kernel, a[0], a[0]+size)
	if err != nil {
		return nil, nil, err
	}
	more, err := sp.droppedIn(kernel, a[4], a[4]+size)
	return sp.pagesNow(scan.private), append(drops, more...), err
}

// movedBefore returns the moves that an mremap of several ranges has made before
// it failed at one of them: what is gone from the old place is at the new one.
func (sp *space) movedBefore(c *call, changes []checkpoint.MapOp) []checkpoint.MapOp {
	a := &c.args
	if c.nr != unix.SYS_MREMAP || a[3]&unix.MREMAP_FIXED == 0 {
		return nil
	}
	var ops []checkpoint.MapOp
	for _, op := range changes {
		start, end := max(op.Start, a[0]), min(op.End, a[0]+min(pageUp(a[1]), pageUp(a[2])))
		if op.Kind == checkpoint.MapOpUnmap && start < end {
			ops = append(ops, moveOp(start, end, a[4]-a[0]))
		}
	}
	return ops
}

// pagesNow reads whole pages.
func (sp *space) pagesNow(set ranges) []checkpoint.MemWrite {
	var out []checkpoint.MemWrite
	_ = set.each(func(page uint64) error {
		b := make([]byte, checkpoint.PageSize)
		if sp.readMem(page*checkpoint.PageSize, b) == len(b) {
			out = append(out, checkpoint.MemWrite{Addr: page * checkpoint.PageSize, Data: b})
		}
		return nil
	})
	return out
}

// droppedIn describes what a call that failed has dropped of a range: private
// pages that are not in the page tables read as if they had never been written,
// whether this call dropped them or an earlier one.
func (sp *space) droppedIn(maps *mapModel, start, end uint64) ([]checkpoint.MapOp, error) {
	if start&pageMask != 0 || end <= start {
		return nil, nil // refused before it looks at anything
	}
	var out []checkpoint.MapOp
	for _, m := range maps.overlap(start, end) {
		if !m.private() || m.Object != 0 && sp.objects.at(m.Object).Kind == checkpoint.ObjectSpecial {
			continue
		}
		lo, hi := max(m.Start, start), min(m.End, end)
		var there ranges
		if err := sp.mm.visit(lo, hi, func(page, _ uint64) { there.add(page, page+1) }); err != nil {
			return nil, err
		}
		for _, s := range (ranges{{lo / checkpoint.PageSize, hi / checkpoint.PageSize}}).minus(there) {
			op := checkpoint.MapOp{Kind: checkpoint.MapOpDrop, Start: s.lo * checkpoint.PageSize, End: s.hi * checkpoint.PageSize}
			out = appendOp(out, op)
		}
	}
	return out, nil
}

// noteExecImplied looks whether PROT_READ means PROT_EXEC too: the personality
// READ_IMPLIES_EXEC (man 2 personality).
func (sp *space) noteExecImplied() {
	const readImpliesExec = 0x0400000
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/personality", sp.pid))
	if err != nil {
		return // no such file in this kernel: as by default
	}
	p, err := strconv.ParseUint(strings.TrimSpace(string(b)), 16, 32)
	sp.readExec = err == nil && p&readImpliesExec != 0
}
