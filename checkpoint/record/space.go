//go:build linux && amd64

package record

import (
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// space is one address space (the kernel's struct mm): what is mapped where, which of
// its pages the program has written since the interval's start, and where its bytes are
// read and written. What runs in it is no business of its own.
type space struct {
	group   *group
	session *session
	objects *objectStore

	pid   int    // of a process that runs in it: /proc/PID shows it
	mem   memory // nil before the first execve, as mm
	mm    mmInfo
	image uint32 // number of execves
	site  uint64 // address of a SYSCALL instruction in the vdso
	vdso  uint64 // its start

	vdsoEnd  uint64
	noClock  bool        // the agent is not to call it
	attached bool        // it was there before the recording: its vdso is patched
	segv     uint64      // where the handler for SIGSEGV is (trapsegv.go), 0 for nowhere
	patches  []codePatch // in the vdso

	maps        mapModel
	brk         uint64
	readExec    bool // PROT_READ means PROT_EXEC too
	artefact    []checkpoint.Artefact
	scratch     ranges // hidden from the recording, in pages
	agentPages  ranges // likewise, of the agent; no child has them
	code        patchedCode
	agent       *spaceAgent // nil while there is none
	noAgent     bool        // there is to be none
	tsc         tscState
	hasRandom   bool                 // RDRAND or RDSEED is made to fault
	codeKnown   map[uint64]*codeFile // by the start of the mapping
	haltsLooked bool                 // the code was looked through for what always has to fault, as it is now
	calls       int                  // that were made by stops
	sharesFiles bool                 // others were recorded when it mapped a file or a segment shared, to store there: one may come to map it, too
	spare       []abi.Range          // of it, that of threads that have ended
	noShadow    bool                 // clones are refused: copy instead

	dirtyBeforeFork ranges // dirty pages that a fork has hidden, since the last shadow
	moved           ranges // pages remapped since the last shadow
	// logged holds the pages of private mappings that the log, not the program,
	// has written in this interval and that are still mapped as then.
	logged ranges
	// startSums has HashPage of each private page at the current interval's start, by page, where the file is written
	// all along. What holds the pages may be killed before the interval ends.
	startSums map[uint64]uint64
	// sharedNow holds the pages that a fork would not hold, at the current
	// interval's start.
	sharedNow map[uint64][]byte
	// zapped are pages of objects that were in the page tables of a shared mapping
	// and that a call has removed from there.
	unmapped map[pageKey]struct{}
	// outside holds the shared pages that others may write as they were at the
	// last call's exit; nil while there are no others.
	outside      map[uint64][]byte
	outsideFresh bool            // the program has not run since
	childStores  bool            // the others are children, which share all that is shared
	stored       map[uint32]bool // objects to which others store that are no children
	watch        *storeWatch     // nil until it is wanted
}

// newSpace returns the address space of a process before its first execve.
func newSpace(g *group, pid int) *space {
	return &space{group: g, session: g.session, objects: &g.objects, pid: pid, code: newPatchedCode()}
}

// successor returns the address space that an execve has put in the place of this one. It
// takes over the descriptors, which are those of the new one already.
func (sp *space) successor() *space {
	next := newSpace(sp.group, sp.pid)
	next.mem, next.mm, next.image = sp.mem, sp.mm, sp.image+1
	sp.mem, sp.mm = nil, nil
	return next
}

// open opens the memory of a new image; the descriptors are the ones from then on, whatever
// the program forbids.
func (sp *space) open() error {
	sp.close()
	var err error
	sp.mem, sp.mm, err = sp.session.source.open(sp.pid)
	return err
}

func (sp *space) close() {
	if sp.mem != nil {
		sp.mem.close()
		sp.mm.close()
	}
	sp.mem, sp.mm = nil, nil
	sp.watch.close()
	sp.agent.close()
	sp.agent, sp.code = nil, newPatchedCode()
}

// stringLimit bounds the strings that are read of a program's memory, in bytes with the 0 behind them.
const stringLimit = 4096

// readString reads a NUL-terminated string of at most 4096 bytes.
func (sp *space) readString(addr uint64) (string, bool) {
	b := make([]byte, stringLimit)
	n := sp.readMem(addr, b)
	s, _, ok := strings.Cut(string(b[:n]), "\x00")
	return s, ok
}

// readMem reads guest memory and returns how many bytes there were.
func (sp *space) readMem(addr uint64, b []byte) int {
	done := 0
	for done < len(b) {
		n, err := sp.mem.readAt(b[done:], addr+uint64(done))
		if err != nil || n <= 0 {
			break
		}
		done += n
	}
	return done
}

// readWrites reads back what the kernel may have written.
func (sp *space) readWrites(ranges []abi.Range) []checkpoint.MemWrite {
	var out []checkpoint.MemWrite
	for _, r := range ranges {
		b := make([]byte, sp.writableBy(r))
		if n := sp.readMem(r.Addr, b); n > 0 {
			out = append(out, checkpoint.MemWrite{Addr: r.Addr, Data: b[:n]})
		}
	}
	return out
}

// writableBy returns how many bytes of a range the kernel can have written: it writes neither to memory that is not the
// program's, nor to code. What a call that failed was told of its buffer's length can be anything.
func (sp *space) writableBy(r abi.Range) uint64 {
	end := r.Addr
	for m := range sp.maps.tree.From(r.Addr) {
		isStack := m.Flags&checkpoint.MapGrowsDown != 0 // which may have grown down to there
		isCode := m.Prot&(checkpoint.ProtWrite|checkpoint.ProtExec) == checkpoint.ProtExec
		if m.Start > end && !isStack || isCode {
			break
		}
		if end = m.End; end-r.Addr >= r.Len {
			return r.Len
		}
	}
	return end - r.Addr
}

// reader returns what reads the program's memory.
func (sp *space) reader() memReader { return memReader{sp.mem} }
