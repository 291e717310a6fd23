//go:build linux && amd64

package record

import (
	"vplay/checkpoint"
)

// space is one address space (the kernel's struct mm): what is mapped where, which of
// its pages the program has written since the interval's start, and where its bytes are
// read and written. What runs in it is no business of its own.
type space struct {
	group   *group
	session *session
	objects *objectStore

	pid   int // of a process that runs in it: /proc/PID shows it
	mem   int // /proc/PID/mem, -1 before the first execve
	pmap  pagemapReader
	image uint32 // number of execves
	site  uint64 // address of a SYSCALL instruction in the vdso
	vdso  uint64 // its start

	maps     mapModel
	brk      uint64
	readExec bool // PROT_READ means PROT_EXEC too
	artefact []checkpoint.Artefact
	noShadow bool // clones are refused: copy instead

	accDirty ranges // dirty pages seen before forks of the program, since the last shadow
	moved    ranges // pages remapped since the last shadow
	// logged holds the pages of private mappings that the log, not the program,
	// has written in this interval: their content at its start, nil for zero.
	logged map[uint64][]byte
	// sharedNow holds the pages that a fork would not hold, at the current
	// interval's start.
	sharedNow map[uint64][]byte
	// zapped are pages of objects that were in the page tables of a shared mapping
	// and that a call has removed from there.
	zapped map[pageKey]struct{}
	// outside holds the shared pages that others may write as they were at the
	// last call's exit; nil while there are no others.
	outside      map[uint64][]byte
	outsideFresh bool // the program has not run since
}

// newSpace returns the address space of a process before its first execve.
func newSpace(g *group, pid int) *space {
	sp := &space{group: g, session: g.session, objects: &g.session.objects, pid: pid, mem: -1}
	sp.pmap.fd = -1
	return sp
}

// successor returns the address space that an execve has put in the place of this one. It
// takes over the descriptors, which are those of the new one already.
func (sp *space) successor() *space {
	next := newSpace(sp.group, sp.pid)
	next.mem, next.pmap.fd, next.image = sp.mem, sp.pmap.fd, sp.image+1
	sp.mem, sp.pmap.fd = -1, -1
	return next
}
