//go:build linux && amd64

package record

import (
	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// What the program has written since the last shadow is in no shadow at its end: it is read from
// the program. Where that is much a helper reads it, a process that shares the program's memory
// and, as a shadow does, scans it (window.go). The thread, which is about to get the signal that
// kills it, makes it; the signal is lost by that and sent once more. While the helper lives
// the window is mapped in the program, too.
//
// The helper reads also what is in shadows, but has not been written since: in a shadow the CPU
// has to mark each page as accessed, for the first time, and that takes three times as long as reading it.

// crashWorth is how many pages are worth a helper.
const crashWorth = 2048

// crashReader is a thread that a signal kills, and that has been borrowed to make a helper.
type crashReader struct {
	in     caller
	helper *shadow // which is no copy of the memory; nil where it could not be made
}

// newCrashReader makes a helper that reads the memory, which is as m has it, faster than sp.reader. It returns
// nil, with the thread as it was, where few pages will be read, or no helper can be had. The thread is at
// the delivery of a signal that kills it.
func (t *thread) newCrashReader(m *snapshot) *crashReader {
	sp, set := t.space(), m.private
	if t.session.streams() {
		set = m.dirty
	}
	if set.count() < crashWorth || sp.noShadow || sp.session.opt.refuseShadows || t.group().shares() || t.copiesAreSeen() {
		return nil
	}
	status, err := statusOf(t.proc.live)
	if err != nil || status.Number("Seccomp") != 0 || isInit(status) { // which no signal kills that is sent anew
		return nil
	}
	in, err := sp.session.source.inject(t.proc.pid, t.tid, sp.site)
	if err != nil {
		return nil
	}
	c := &crashReader{in: in}
	flags := uint64(cloneVM)
	if t.proc == sp.session.first && sp.session.attach == nil {
		flags |= cloneParent
	}
	_, err = cloneAgain(in, flags)
	if in.made() == 0 {
		return c
	}
	stats := &sp.session.result.Stats
	c.helper = &shadow{memReader: sp.reader(), pid: in.made(), site: sp.site, vdso: sp.vdso, windows: &stats.Windows, scans: &stats.Scans}
	if err == nil {
		err = sp.bareHelper(c.helper.pid)
	}
	if err == nil {
		m.helper = c.helper
		stats.CrashReaders++
	}
	return c
}

// bareHelper waits for a new helper's first stop and takes from it what it has of the program but
// memory.
func (sp *space) bareHelper(pid int) error {
	ws, err := sp.session.waitChild(pid)
	if err != nil {
		return err
	}
	if !ws.Stopped() {
		return &goneError{ws}
	}
	return sp.becomeBare(pid)
}

// end lets the thread go, as it was, to where it gets the signal again. c may be nil.
func (c *crashReader) end(t *thread, sig int, info []byte) {
	if c == nil {
		return
	}
	if s := c.helper; s != nil {
		if s.window != nil && s.window.at != 0 {
			_, _ = s.window.in.do(unix.SYS_MUNMAP, s.window.at, windowSize) // else it stays in a core dump
		}
		s.window.close()
		drop(s.pid)
		if t.proc != t.session.first || t.session.attach != nil { // it is the program's child
			_, _ = c.in.do(unix.SYS_WAIT4, uint64(s.pid), 0, unix.WALL, 0)
		}
	}
	if c.in.end() != nil {
		return // killed meanwhile
	}
	mask, err := t.session.source.getSigmask(t.tid)
	if err != nil {
		return
	}
	// No other signal is to come before.
	if t.session.source.setSigmask(t.tid, ^(uint64(1)<<(sig-1))) == nil {
		t.sig.giving, t.sig.givingMask = &heldSignal{sig, ptrace.Siginfo(info)}, &mask
	}
}

// startReader reads the memory at an interval's start.
type startReader struct {
	pageReader // what holds it
	now        runReader
	same       ranges // what now has, too: pages that the program has not written since
}

// readPage implements pageReader.
func (r startReader) readPage(addr uint64, b []byte) error {
	if run := r.sameRun(addr, 1, b); len(run.pages) > 0 {
		copy(b, run.pages)
		return nil
	}
	return r.pageReader.readPage(addr, b)
}

// readRun implements runReader.
func (r startReader) readRun(addr, n uint64, buf []byte) pageRuns {
	if run := r.sameRun(addr, n, buf); len(run.pages) > 0 {
		return run
	}
	many, ok := r.pageReader.(runReader)
	if !ok {
		return pageRuns{}
	}
	page := addr / checkpoint.PageSize
	if s, ok := r.same.from(page); ok && s.lo > page {
		n = min(n, s.lo-page)
	}
	return many.readRun(addr, n, buf)
}

// sameRun reads those of n pages from addr on that now has: none if it does not have the first.
func (r startReader) sameRun(addr, n uint64, buf []byte) pageRuns {
	page := addr / checkpoint.PageSize
	if s, ok := r.same.from(page); ok && s.lo <= page {
		return r.now.readRun(addr, min(n, s.hi-page), buf)
	}
	return pageRuns{}
}

// startOf returns what reads the memory at the start of an interval. later are the pages that were
// written since.
func (m *snapshot) startOf(iv *interval, later ranges) pageReader {
	if m.helper == nil {
		return iv.src
	}
	return startReader{iv.src, m.helper, m.private.minus(later)}
}
