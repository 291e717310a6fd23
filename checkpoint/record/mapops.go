//go:build linux && amd64

package record

import (
	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/checkpoint/abi/ptrace"
)

// What a call did to the memory map follows from its arguments and its result.
// Calls that drop or replace pages of files are looked at before they run,
// because the recording must hold every page of a file that the program had.

// Flags of mmap, mremap and madvise (asm-generic/mman-common.h, linux/mman.h).
const (
	mapSharedType    = 0x01
	mapTypeMask      = 0x0f
	mapDroppable     = 0x08
	mapAnonymous     = 0x20
	mapGrowsDownFlag = 0x0100
	mremapDontUnmap  = 4
	shmRemap         = 0o40000

	madvDontNeed       = 4
	madvFree           = 8
	madvRemove         = 9
	madvDontFork       = 10
	madvDoFork         = 11
	madvWipeOnFork     = 18
	madvKeepOnFork     = 19
	madvPageOut        = 21
	madvDontNeedLocked = 24
)

func pageUp(a uint64) uint64   { return (a + pageMask) &^ pageMask }
func pageDown(a uint64) uint64 { return a &^ pageMask }

// beforeMem looks at a memory call at its entry.
func (t *thread) beforeMem() error {
	a := &t.call.args
	switch t.call.nr {
	case unix.SYS_MMAP:
		if a[3]&mapTypeMask == mapDroppable {
			t.call.answered, t.call.answer = true, -int64(unix.EINVAL)
			return t.patch(func(r *ptrace.Regs) { r.Orig_rax = ^uint64(0) })
		}
		if a[3]&mapAnonymous == 0 {
			t.proc.beforeMapFile(&t.call, int32(a[4]))
		}
		if a[3]&unix.MAP_FIXED != 0 {
			return t.space().captureFilePages(&t.call, pageDown(a[0]), pageUp(a[0]+a[1]))
		}
	case unix.SYS_MUNMAP, unix.SYS_REMAP_FILE_PAGES:
		return t.space().captureFilePages(&t.call, pageDown(a[0]), pageUp(a[0]+a[1]))
	case unix.SYS_MREMAP:
		if a[3]&unix.MREMAP_FIXED != 0 {
			if err := t.space().captureFilePages(&t.call, pageDown(a[4]), pageUp(a[4]+a[2])); err != nil {
				return err
			}
		}
		return t.space().captureFilePages(&t.call, pageDown(a[0]), pageUp(a[0]+a[1]))
	case unix.SYS_SHMDT:
		for _, op := range t.space().shmdtOps(&t.call) {
			if err := t.space().captureFilePages(&t.call, op.Start, op.End); err != nil {
				return err
			}
		}
	case unix.SYS_SHMAT:
		if a[2]&shmRemap != 0 { // The segment's size is not among the arguments.
			return t.space().captureFilePages(&t.call, pageDown(a[1]), abi.TaskSize)
		}
	case unix.SYS_MPROTECT, unix.SYS_PKEY_MPROTECT:
		if a[2]&unix.PROT_WRITE == 0 && t.space().maps.anyIn(pageDown(a[0]), pageUp(a[0]+a[1]), isSharedWritable) {
			t.space().noteStores() // they are looked for where the process may store
		}
	case unix.SYS_MADVISE:
		return t.beforeAdvice()
	}
	return nil
}

// beforeAdvice looks at madvise at its entry.
func (t *thread) beforeAdvice() error {
	a := &t.call.args
	start, end := pageDown(a[0]), pageUp(a[0]+a[1])
	switch a[2] {
	case madvFree:
		if err := t.freeAtOnce(); err != nil {
			return err
		}
		return t.space().captureFilePages(&t.call, start, end)
	case madvDontNeed, madvDontNeedLocked, madvPageOut:
		return t.space().captureFilePages(&t.call, start, end)
	case madvRemove:
		t.proc.beforeFileWrite(&t.call)
	}
	return nil
}

// freeAtOnce makes MADV_FREE, whose pages may vanish at any time,
// MADV_DONTNEED. Where the range is not anonymous MADV_FREE fails after it has
// freed what lies before, and MADV_DONTNEED would go on: it gets that part only.
func (t *thread) freeAtOnce() error {
	a, c := &t.call.args, &t.call
	end := a[0] + pageUp(a[1])
	for _, m := range t.space().maps.overlap(a[0], end) {
		if m.Object != 0 && m.Name != "/dev/zero" {
			end = max(m.Start, a[0])
			c.answered, c.answer = true, -int64(unix.EINVAL)
			break
		}
	}
	return t.patch(func(r *ptrace.Regs) { r.Rsi, r.Rdx = end-a[0], madvDontNeed })
}

// mapOps returns what the call, with result ret, did to the memory map, as far as
// that follows from its arguments; observed has the rest.
func (sp *space) mapOps(c *call, ret int64) ([]checkpoint.MapOp, error) {
	a := &c.args
	if c.nr == unix.SYS_MADVISE {
		return sp.madviseOps(c, ret)
	}
	if isError(ret) {
		return nil, nil
	}
	one := func(op checkpoint.MapOp) ([]checkpoint.MapOp, error) { return []checkpoint.MapOp{op}, nil }
	switch c.nr {
	case unix.SYS_MMAP:
		return sp.mmapOp(c, uint64(ret))
	case unix.SYS_MUNMAP:
		return one(checkpoint.MapOp{Kind: checkpoint.MapOpUnmap, Start: a[0], End: a[0] + pageUp(a[1])})
	case unix.SYS_MPROTECT, unix.SYS_PKEY_MPROTECT:
		if a[1] == 0 {
			return nil, nil
		}
		return one(checkpoint.MapOp{Kind: checkpoint.MapOpProtect, Start: a[0], End: a[0] + pageUp(a[1]), Prot: uint8(a[2] & 7)})
	case unix.SYS_BRK:
		return sp.brkOps(uint64(ret)), nil
	case unix.SYS_MREMAP:
		return sp.mremapOps(c, uint64(ret)), nil
	case unix.SYS_SHMAT:
		return sp.shmatOps(c, uint64(ret))
	case unix.SYS_SHMDT:
		return sp.shmdtOps(c), nil
	}
	return nil, nil
}

// noteRemapped keeps the pages that a change of the map gives another content
// without writing to them: moved pages, and the zero page read where something
// was dropped, are shared and do not look dirty.
func (sp *space) noteRemapped(c *call, op *checkpoint.MapOp) {
	if op.Kind == checkpoint.MapOpProtect {
		return
	}
	from := ranges{{op.Start / checkpoint.PageSize, pageUp(op.End) / checkpoint.PageSize}}
	if op.Kind != checkpoint.MapOpMove {
		sp.logged = sp.logged.minus(from)
		sp.moved = sp.moved.union(from)
		return
	}
	sp.captureGrown(c, op.New, op.NewEnd)
	sp.group.moveSeen(op)
	carried := sp.moveLogged(op)
	to := ranges{{op.New / checkpoint.PageSize, pageUp(op.NewEnd) / checkpoint.PageSize}}
	sp.logged = sp.logged.minus(from).minus(to).union(carried)
	sp.moved = sp.moved.union(to)
}

// moveLogged returns the pages that the program has not written to and that belong to their
// address nevertheless, because their file has changed, where a move has brought them: replay counts
// them among the interval's written pages.
func (sp *space) moveLogged(op *checkpoint.MapOp) (there ranges) {
	first, last := op.Start/checkpoint.PageSize, (op.Start+min(op.End-op.Start, op.NewEnd-op.New))/checkpoint.PageSize
	to := op.New/checkpoint.PageSize - first
	for page := first; page < last; page++ {
		m := sp.maps.at((page + to) * checkpoint.PageSize)
		if m == nil || m.Object == 0 || !m.private() {
			continue
		}
		if _, copied := sp.sharedNow[page*checkpoint.PageSize]; sp.logged.has(page) || copied && !sp.moved.has(page) {
			there.add(page+to, page+to+1)
		}
	}
	return there
}

// captureGrown takes the pages of shared objects that a moved or grown mapping
// shows for the first time.
func (sp *space) captureGrown(c *call, start, end uint64) {
	for _, m := range sp.maps.overlap(start, end) {
		op := checkpoint.MapOp{Start: m.Start, End: m.End, Map: m.Mapping}
		if m.private() || m.Object == 0 {
			continue
		}
		if err := sp.captureMapped(c, &op); err != nil {
			sp.session.log.Error().Err(err).Msg("pages of a grown mapping")
		}
	}
}

// mmapOp describes a new mapping at addr.
func (sp *space) mmapOp(c *call, addr uint64) ([]checkpoint.MapOp, error) {
	a := &c.args
	op := checkpoint.MapOp{Kind: checkpoint.MapOpMap, Start: addr, End: addr + pageUp(a[1])}
	op.Map = checkpoint.Mapping{Start: op.Start, End: op.End, Prot: uint8(a[2] & 7)}
	typ := a[3] & mapTypeMask
	shared := typ == mapSharedType || typ == 3 // MAP_SHARED, MAP_SHARED_VALIDATE
	if shared {
		op.Map.Flags |= checkpoint.MapShared
	}
	if a[3]&mapGrowsDownFlag != 0 {
		op.Map.Flags |= checkpoint.MapGrowsDown
	}
	if a[3]&mapAnonymous != 0 && !shared {
		return []checkpoint.MapOp{op}, nil
	}
	// The kernel's own line names the object: device, inode and path.
	m, err := sp.newLine(op.Start, op.End, a[5])
	if err != nil {
		return nil, err
	}
	op.Map.Object, op.Map.Name, op.Map.Offset = m.Object, m.Name, m.Offset
	if m.Start < addr && m.Object != 0 {
		op.Map.Offset += addr - m.Start // merged with its neighbour
	}
	if m.Object != 0 {
		sp.objects.knowSize(m.Object)
	}
	if err := sp.captureNewShared(c, &op); err != nil {
		return nil, err
	}
	sp.showChanged(c, &op)
	return []checkpoint.MapOp{op}, nil
}

// showChanged logs what a new private mapping shows of an object that is no longer
// what was kept of it: a file written to while it was mapped, or memory that is
// shared by other mappings. Its pages are copied at every cut from then on.
func (sp *space) showChanged(c *call, op *checkpoint.MapOp) {
	if op.Map.Flags&checkpoint.MapShared != 0 || op.Map.Object == 0 {
		return
	}
	o := sp.objects.at(op.Map.Object)
	if o.Kind == checkpoint.ObjectShared {
		o.Changed = true
	}
	if o.Changed {
		c.shown = append(c.shown, sp.readMapped(op)...)
	}
}

// showShared does it for a private mapping of shared memory that no call has told of: the kernel has made it, in fork(2) or for a program
// that was executed from a memfd. Its pages come with the image.
func (sp *space) showShared(m *mapping) {
	if m.Object == 0 || !m.private() {
		return
	}
	if o := sp.objects.at(m.Object); o.Kind == checkpoint.ObjectShared {
		o.Changed = true
		sp.readMapped(&checkpoint.MapOp{Start: m.Start, End: m.End, Map: m.Mapping})
	}
}

// readMapped reads what a mapping shows of its object, so that its pages are in the page tables.
func (sp *space) readMapped(op *checkpoint.MapOp) (out []checkpoint.MemWrite) {
	for a := op.Start; a < op.Start+sp.objects.sharedPart(op); a += checkpoint.PageSize {
		b := make([]byte, checkpoint.PageSize)
		if sp.readMem(a, b) != len(b) {
			break // beyond the end of the file
		}
		out = append(out, checkpoint.MemWrite{Addr: a, Data: b})
	}
	return out
}

// brkOps compares the new break with the old one.
func (sp *space) brkOps(ret uint64) []checkpoint.MapOp {
	old, now := pageUp(sp.brk), pageUp(ret)
	sp.brk = ret
	switch {
	case now > old:
		op := checkpoint.MapOp{Kind: checkpoint.MapOpMap, Start: old, End: now}
		op.Map = checkpoint.Mapping{
			Start: old, End: now, Prot: checkpoint.ProtRead | checkpoint.ProtWrite,
			Flags: checkpoint.MapHeap, Name: "[heap]",
		}
		if sp.readExec { // known without the kernel's list: there are allocators that ask for one page at a time
			op.Map.Prot |= checkpoint.ProtExec
		}
		return []checkpoint.MapOp{op}
	case now < old:
		return []checkpoint.MapOp{{Kind: checkpoint.MapOpUnmap, Start: now, End: old}}
	}
	return nil
}

// mremapOps describes a moved, grown or shrunk range. Only a range that grows is
// one mapping: others may be several, with holes between. Those are moved one by
// one (since Linux 6.17), and what was at the target stays where the source has a
// hole.
func (sp *space) mremapOps(c *call, ret uint64) []checkpoint.MapOp {
	a := &c.args
	old, oldSize, size := a[0], pageUp(a[1]), pageUp(a[2])
	if oldSize == 0 {
		return nil
	}
	if size > oldSize {
		return []checkpoint.MapOp{{Kind: checkpoint.MapOpMove, Start: old, End: old + oldSize, New: ret, NewEnd: ret + size}}
	}
	var ops []checkpoint.MapOp
	if size < oldSize {
		ops = append(ops, checkpoint.MapOp{Kind: checkpoint.MapOpUnmap, Start: old + size, End: old + oldSize})
	}
	if ret == old {
		return ops
	}
	for _, m := range sp.maps.overlap(old, old+size) {
		ops = append(ops, moveOp(max(m.Start, old), min(m.End, old+size), ret-old))
	}
	if a[3]&mremapDontUnmap == 0 {
		return ops
	}
	for _, m := range sp.maps.overlap(old, old+size) {
		again := m.part(max(m.Start, old), min(m.End, old+size))
		ops = append(ops, checkpoint.MapOp{Kind: checkpoint.MapOpMap, Start: again.Start, End: again.End, Map: again.Mapping})
	}
	return ops
}

// moveOp is the move of [start,end) by some bytes, modulo 2^64.
func moveOp(start, end, by uint64) checkpoint.MapOp {
	return checkpoint.MapOp{Kind: checkpoint.MapOpMove, Start: start, End: end, New: start + by, NewEnd: end + by}
}

// madviseOps describes pages given up, and keeps fork advice in the model. Of
// advice that failed half way it keeps what makes the recorder copy more.
func (sp *space) madviseOps(c *call, ret int64) ([]checkpoint.MapOp, error) {
	a := &c.args
	start, end := a[0], a[0]+pageUp(a[1])
	failed := isError(ret)
	switch a[2] {
	case madvDontNeed, madvDontNeedLocked, madvFree:
		if failed {
			return sp.droppedIn(&sp.maps, start, end)
		}
		return []checkpoint.MapOp{{Kind: checkpoint.MapOpDrop, Start: start, End: end}}, nil
	case madvDontFork:
		sp.maps.advise(start, end, dontFork, 0)
	case madvWipeOnFork:
		sp.maps.advise(start, end, wipeOnFork, 0)
	case madvDoFork:
		if !failed {
			sp.maps.advise(start, end, 0, dontFork)
		}
	case madvKeepOnFork:
		if !failed {
			sp.maps.advise(start, end, 0, wipeOnFork)
		}
	}
	return nil, nil
}

func (sp *space) shmatOps(c *call, addr uint64) ([]checkpoint.MapOp, error) {
	m, err := sp.lineAt(addr)
	if err != nil {
		return nil, err
	}
	op := checkpoint.MapOp{Kind: checkpoint.MapOpMap, Start: m.Start, End: m.End, Map: m.Mapping}
	return []checkpoint.MapOp{op}, sp.captureNewShared(c, &op)
}

// shmdtOps removes the segment that starts at the call's argument: all ranges
// of its object from there on (man 2 shmdt).
func (sp *space) shmdtOps(c *call) []checkpoint.MapOp {
	addr := c.args[0]
	first := sp.maps.at(addr)
	if first == nil {
		return nil
	}
	obj, base := first.Object, first.Offset
	var ops []checkpoint.MapOp
	for _, m := range sp.maps.overlap(addr, ^uint64(0)) {
		if m.Object == obj && m.Start-addr == m.Offset-base {
			ops = append(ops, checkpoint.MapOp{Kind: checkpoint.MapOpUnmap, Start: m.Start, End: m.End})
		}
	}
	return ops
}
