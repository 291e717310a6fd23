//go:build linux && amd64

package record

import (
	"slices"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/checkpoint/abi/ptrace"
)

// Memory for stubs: where there is room for it, how it is mapped in the program, and what becomes of it when
// the program maps something there.

// stubArea is memory for stubs: a nameless file in memory, which is mapped in the program for
// reading and executing.
type stubArea struct {
	at   abi.Range
	view []byte
	used uint64
}

// areaFor returns memory for a stub of the site at addr; nil where there is none in reach. That is looked for once: it takes
// as long as a hundred calls.
func (t *thread) areaFor(addr uint64) (*stubArea, error) {
	sp := t.space()
	for _, a := range sp.agent.areas {
		if a.used+stubSize <= a.at.Len && within(a.at.Addr, addr) {
			return a, nil
		}
	}
	if len(sp.agent.areas) == maxAreas || sp.agent.apart[addr] {
		return nil, nil
	}
	in, err := t.session.source.inject(t.proc.pid, t.tid, sp.site)
	if err != nil {
		return nil, err
	}
	a := &stubArea{}
	for _, at := range sp.roomNear(addr) {
		if a.at, a.view, err = sp.mapHidden(in, at, areaSize, 0, true); err != nil {
			return nil, err
		}
		if a.view != nil {
			sp.agent.areas = append(sp.agent.areas, a)
			return a, in.end()
		}
	}
	if sp.agent.apart == nil {
		sp.agent.apart = map[uint64]bool{}
	}
	sp.agent.apart[addr] = true
	return nil, in.end()
}

// within reports whether a jump from one address reaches the other.
func within(a, b uint64) bool { return max(a, b)-min(a, b) < reach }

// roomNear returns addresses where memory for stubs may be mapped, in reach of addr, in the order in which they are to be tried: in the
// gaps between mappings below, then above. The kernel may know of mappings that the model has not.
func (sp *space) roomNear(addr uint64) (list []uint64) {
	const lowest, mostTries, mostInGap = 1 << 16, 16, 4
	from := max(addr, reach+lowest) - reach
	type gap struct{ from, to uint64 }
	var below, above []gap
	note := func(to uint64) {
		switch {
		case to < from+3*areaSize: // what is mapped on both sides may grow by as much
		case to <= addr:
			below = append(below, gap{from, to})
		case from >= addr:
			above = append(above, gap{from, to})
		}
	}
	end := min(addr+reach, abi.TaskSize)
	for _, m := range sp.maps.overlap(from, end) {
		note(max(m.Start, from))
		from = max(from, m.End)
	}
	note(end)
	for _, g := range slices.Backward(below) {
		for n := uint64(2); n < 2+mostInGap && g.from+(n+1)*areaSize <= g.to; n++ {
			list = append(list, g.to-n*areaSize)
		}
	}
	for _, g := range above {
		for n := uint64(1); n < 1+mostInGap && g.from+(n+2)*areaSize <= g.to; n++ {
			list = append(list, g.from+n*areaSize)
		}
	}
	list = slices.DeleteFunc(list, func(at uint64) bool {
		return !within(at, addr) || len(sp.agentPages.intersect(ranges{{at / checkpoint.PageSize, (at + areaSize) / checkpoint.PageSize}})) > 0
	})
	return list[:min(len(list), mostTries)]
}

// mapHidden maps a new nameless file in memory, of size bytes, in the program that in has
// borrowed, and here. The first code bytes, or with exec all, are for executing, not for
// writing. A mapping at an address that is not 0 is made only where there is none. view is nil
// where the kernel refuses.
func (sp *space) mapHidden(in caller, at, size, code uint64, exec bool) (where abi.Range, view []byte, err error) {
	fd, err := newMemFile(in, sp.pid, sp.vdso, size)
	if err != nil || fd < 0 {
		return where, nil, err
	}
	flags, prot := uint64(unix.MAP_SHARED), uint64(unix.PROT_READ|unix.PROT_WRITE)
	if at != 0 {
		flags |= unix.MAP_FIXED_NOREPLACE
	}
	if exec {
		prot = unix.PROT_READ | unix.PROT_EXEC
	}
	hint := at
	if at == 0 { // far from the program's, as scratch memory is
		hint = pageDown(sp.vdso - min(sp.vdso, 2*scratchDistance+2*sp.agentPages.count()*checkpoint.PageSize))
	}
	addr, err := in.do(unix.SYS_MMAP, hint, size, prot, flags, uint64(fd), 0)
	if err != nil {
		return where, nil, err
	}
	ok := addr > 0 && (at == 0 || uint64(addr) == at)
	if ok {
		view = mapHere(sp.pid, int(fd), int(size))
		where = abi.Range{Addr: uint64(addr), Len: size}
		pages := pageRange{where.Addr / checkpoint.PageSize, (where.Addr + size) / checkpoint.PageSize}
		sp.agentPages = sp.agentPages.union(ranges{pages})
	}
	calls := [][]uint64{{unix.SYS_CLOSE, uint64(fd)}}
	if ok {
		calls = append(calls, []uint64{unix.SYS_MADVISE, where.Addr, size, madvDontFork})
		if code != 0 {
			calls = append(calls, []uint64{unix.SYS_MPROTECT, where.Addr, code, unix.PROT_READ | unix.PROT_EXEC})
		}
	}
	for _, c := range calls {
		ret, err := in.do(int64(c[0]), c[1:]...)
		if err != nil {
			return where, nil, err
		}
		if ret < 0 {
			view = nil
		}
	}
	return where, view, nil
}

// yieldAreas gives up memory for stubs where the call that the thread is at the entry of is to map or unmap something: a program that
// has unmapped memory may map it again. No thread is in a stub: who has the turn is at this call.
func (t *thread) yieldAreas() error {
	c, a := &t.call, t.space().agent
	at, ok := c.replaces()
	if !ok {
		return nil
	}
	if c.nr == unix.SYS_MUNMAP && t.space().hides(at) {
		c.answered, c.answer = true, 0 // the program has found it in /proc/self/maps
		return t.patch(func(r *ptrace.Regs) { r.Orig_rax = ^uint64(0) })
	}
	lost := func(o *stubArea) bool { return o.at.Addr < at.Addr+at.Len && at.Addr < o.at.Addr+o.at.Len }
	if !slices.ContainsFunc(a.areas, lost) {
		return nil
	}
	for _, o := range a.areas {
		if !lost(o) {
			continue
		}
		for _, other := range t.group().turns.threads {
			if other.aside.is() && other.aside.stub-o.at.Addr < o.at.Len {
				if err := other.comeBack(); err != nil && !isGone(err) {
					return err
				}
			}
		}
		if err := t.space().forget(func(s *site) bool { return s.stub-o.at.Addr < o.at.Len }); err != nil {
			return err
		}
		for i := range o.used / stubSize {
			delete(a.stubs, o.at.Addr+i*stubSize)
		}
		_ = unix.Munmap(o.view) // mapped as a whole
	}
	a.areas = slices.DeleteFunc(a.areas, lost)
	c.overAgent = true
	if c.nr == unix.SYS_MMAP && c.args[3]&unix.MAP_FIXED_NOREPLACE != 0 && len(t.space().maps.overlap(at.Addr, at.Addr+at.Len)) == 0 {
		return t.patch(func(r *ptrace.Regs) { r.R10 = r.R10&^unix.MAP_FIXED_NOREPLACE | unix.MAP_FIXED })
	}
	return nil
}

// hides reports whether all of some memory is the agent's, or scratch memory, which the program does not have as replay sees it.
func (sp *space) hides(at abi.Range) bool {
	pages := ranges{{at.Addr / checkpoint.PageSize, (at.Addr + at.Len) / checkpoint.PageSize}}
	return at.Addr%checkpoint.PageSize == 0 && at.Len > 0 && len(pages.minus(sp.agentPages).minus(sp.scratch)) == 0
}

// replaces returns the memory that the call is to unmap, or to map something in the place of, in whole pages.
func (c *call) replaces() (at abi.Range, ok bool) {
	a := &c.args
	switch {
	case c.nr == unix.SYS_MUNMAP, c.nr == unix.SYS_MMAP && a[3]&(unix.MAP_FIXED|unix.MAP_FIXED_NOREPLACE) != 0:
		at = abi.Range{Addr: a[0], Len: pageUp(a[1])}
	case c.nr == unix.SYS_MREMAP && a[3]&unix.MREMAP_FIXED != 0:
		at = abi.Range{Addr: a[4], Len: pageUp(a[2])}
	case c.nr == unix.SYS_SHMAT && a[2]&shmRemap != 0: // the segment's size is not among the arguments
		at = abi.Range{Addr: pageDown(a[1]), Len: abi.TaskSize - min(a[1], abi.TaskSize)}
	default:
		return at, false
	}
	return at, at.Addr < abi.TaskSize && at.Len <= abi.TaskSize-at.Addr
}

// noteReplaced is called at the exit of a call that had memory for stubs in its way.
func (sp *space) noteReplaced(c *call, ret int64) {
	at, ok := c.replaces()
	if !ok || isError(ret) {
		return // what is there is not used any more, and stays hidden
	}
	if c.nr == unix.SYS_SHMAT {
		m, err := sp.lineAt(uint64(ret))
		if err != nil {
			return
		}
		at = abi.Range{Addr: m.Start, Len: m.End - m.Start}
	}
	sp.agentPages = sp.agentPages.minus(ranges{{at.Addr / checkpoint.PageSize, (at.Addr + at.Len) / checkpoint.PageSize}})
}
