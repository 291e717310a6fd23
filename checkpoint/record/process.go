//go:build linux && amd64

package record

import "golang.org/x/sys/unix"

// What the recorder knows of a process apart from its threads (thread.go) and its memory
// (space.go).

// process is one process (a tgid): what its threads share besides their memory. That is
// the signals' actions, the descriptors, and the instructions that are made to fault.
type process struct {
	session *session
	space   *space

	pid  int
	live int // a thread that has not ended: what /proc/PID tells of a process ends with its first thread
	trap trapState
	segv kernelAction // SIGSEGV's, which a trapped RDTSC may reset
}

// lookAs has /proc be read by the number of a thread that lives.
func (p *process) lookAs(tid int) { p.live, p.space.pid = tid, tid }

// statFD returns what stands behind a descriptor of the process; false when there is none.
func (p *process) statFD(fd int32) (st unix.Stat_t, ok bool) {
	err := unix.Stat(procPath(p.live, int(fd)), &st)
	return st, err == nil
}
