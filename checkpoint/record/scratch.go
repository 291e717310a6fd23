//go:build linux && amd64

package record

import (
	"errors"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/checkpoint/abi/ptrace"
)

// While a thread waits in the kernel others run, and intervals end. What its call writes then
// must not come into the program's memory before the log says so: the kernel writes it to
// scratch memory, and the thread copies it when it has its turn again (package abi,
// Redirect). Scratch memory is mapped in the program and hidden from the recording: replay
// has none.

// scratchSize is the scratch memory of a thread, in bytes. It takes what is written to it.
const scratchSize = 1 << 20

// scratchDistance is how far below the vdso, at the top of where the kernel puts new mappings,
// scratch memory is to be, in bytes. Next to the program's mappings it would be found by a
// program that runs over the end of a stack, where replay has nothing.
const scratchDistance = 64 << 30

// mapScratch gives the thread scratch memory. It is at a stop where calls can be injected.
func (t *thread) mapScratch() error {
	if t.scratch.Len != 0 || t.space().vdso == 0 {
		return nil
	}
	if sp := t.space(); len(sp.spare) > 0 {
		t.scratch = sp.spare[len(sp.spare)-1]
		sp.spare = sp.spare[:len(sp.spare)-1]
		t.note()
		return nil
	}
	in, err := t.session.source.inject(t.proc.pid, t.tid, t.space().site)
	if err != nil {
		return err
	}
	addr, err := t.space().mapScratchIn(in)
	if err != nil {
		return err
	}
	if addr < 0 {
		t.session.noteOnce("a thread got no scratch memory: what its calls write while it waits may come at another time in replay")
		return in.end()
	}
	t.scratch = abi.Range{Addr: uint64(addr), Len: scratchSize}
	t.note()
	pages := pageRange{t.scratch.Addr / checkpoint.PageSize, (t.scratch.Addr + scratchSize) / checkpoint.PageSize}
	t.space().scratch = t.space().scratch.union(ranges{pages})
	return in.end()
}

// mapScratchIn maps scratch memory: anonymous and shared, which is never joined to mappings of the program's, and needs neither
// a descriptor nor a file of that size, of which the program may be allowed no more. The result is the address, or a negated errno.
func (sp *space) mapScratchIn(in caller) (addr int64, err error) {
	// The kernel takes another address where this one is not free. Each has as much room below it.
	below := scratchDistance + 2*sp.scratch.count()*checkpoint.PageSize
	return in.do(unix.SYS_MMAP, pageDown(sp.vdso-min(below, sp.vdso)), scratchSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS, ^uint64(0), 0)
}

// isScratch reports whether a mapping is scratch memory, or the agent's.
func (sp *space) isScratch(m *mapping) bool {
	first, last := m.Start/checkpoint.PageSize, m.End/checkpoint.PageSize-1
	return sp.scratch.has(first) && sp.scratch.has(last) || sp.agentPages.has(first) && sp.agentPages.has(last)
}

// redirect has the call that the thread is at the entry of, and that may wait, write to
// scratch memory.
func (t *thread) redirect() error {
	c := &t.call
	if c.nr == unix.SYS_RESTART_SYSCALL { // goes on with the addresses that the kernel has
		c.redirection = t.lastRedirection
		return nil
	}
	t.lastRedirection = nil
	r, err := abi.Redirect(&c.mem, c.nr, c.args, t.scratch)
	var small *abi.ScratchError
	var not *abi.NotRedirectedError
	switch {
	case errors.As(err, &small), errors.As(err, &not):
		t.session.log.Debug().Err(err).Int64("nr", c.nr).Msg("not redirected")
		return nil
	case err != nil:
		return err
	}
	for _, w := range r.Init {
		if n, err := t.space().mem.writeAt(w.Data, w.Addr); err != nil || n != len(w.Data) {
			return errors.New("scratch memory cannot be written")
		}
	}
	c.redirection, t.lastRedirection = r, r
	if r.Args == c.args {
		return nil
	}
	return t.patch(func(regs *ptrace.Regs) {
		regs.Rdi, regs.Rsi, regs.Rdx, regs.R10, regs.R8, regs.R9 = r.Args[0], r.Args[1], r.Args[2], r.Args[3], r.Args[4], r.Args[5]
	})
}

// redirected copies what a call has written to scratch memory to where the program wants
// it, and returns that for the log.
func (t *thread) redirected(ret int64) []checkpoint.MemWrite {
	c := &t.call
	var out []checkpoint.MemWrite
	for _, w := range c.redirection.Results(&c.mem, ret) {
		// What cannot be written has been unmapped meanwhile.
		if n, _ := t.space().mem.writeAt(w.Data, w.Addr); n > 0 {
			out = append(out, checkpoint.MemWrite{Addr: w.Addr, Data: w.Data[:n]})
		}
	}
	return out
}
