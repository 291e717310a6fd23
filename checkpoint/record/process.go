//go:build linux && amd64

package record

import (
	"slices"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// What the recorder knows of a process apart from its threads (thread.go) and its memory
// (space.go).

// process is one process (a tgid): what its threads share besides their memory. That is
// the signals' actions, the descriptors, and the instructions that are made to fault.
type process struct {
	session *session
	space   *space

	pid      int
	parent   int                // its process, 0 when that is not recorded
	about    checkpoint.Process // at its last execve
	detached bool               // it was let go
	over     bool               // it has ended
	wanted   bool               // its program is to be recorded, and with it what it makes
	reaper   bool               // orphans come to it (PR_SET_CHILD_SUBREAPER)
	unwanted bool               // it has left its parent's memory for a program that is not to be recorded

	killed *thread // has been given the signal that kills the process; nil for none

	live int // a thread that has not ended: what /proc/PID tells of a process ends with its first thread
	trap trapState
	segv kernelAction // SIGSEGV's, which a trapped RDTSC may reset
	// sigsys is SIGSYS's, as the program has set it.
	sigsys kernelAction
	stderr lines // that it has written to its descriptor 2
	// imageBefore is about as it was in the image before, while the new one has no interval yet.
	imageBefore *checkpoint.Process
}

// lookAs has /proc be read by the number of a thread that lives.
func (p *process) lookAs(tid int) { p.live, p.space.pid = tid, tid }

// hasOther reports whether the process has another thread.
func (p *process) hasOther(t *thread) bool {
	return slices.ContainsFunc(p.space.group.turns.threads, func(o *thread) bool { return o != t && o.proc == p })
}

// lookElsewhere is called when a thread of the process has gone: /proc is read by another's
// number.
func (p *process) lookElsewhere(gone int) {
	for _, t := range p.space.group.turns.threads {
		if p.live == gone && t.proc == p {
			p.live = t.tid
		}
		if p.space.pid == gone {
			p.space.pid = t.tid
		}
	}
}

// statFD returns what stands behind a descriptor of the process; false when there is none.
func (p *process) statFD(fd int32) (st unix.Stat_t, ok bool) {
	err := unix.Stat(procPath(p.live, int(fd)), &st)
	return st, err == nil
}
