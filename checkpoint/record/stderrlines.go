//go:build linux && amd64

package record

import (
	"bytes"
	"encoding/binary"
	"regexp"

	"golang.org/x/sys/unix"
)

// Lines that a program writes to its standard error, as a reason for a snapshot. The recorder is at
// the exit of each write(2) and writev(2) anyway, and reads there what was written: no pipe stands
// between the program and its standard error, which stays what it was (isatty(3), the order among
// several writers). The snapshot is taken at that very exit where the log can end there.
//
// Descriptor 2 of each process that is recorded counts, wherever it leads, and those that dup(2) has made
// of it: a shell writes there by descriptor 1 (echo text >&2). Where standard output is such a one, as on
// terminals, it counts, too. What several processes write is not mixed: each has its own lines. The agent
// does not make such writes (agentstop.go).

// StderrTrigger says which lines ask for a snapshot, and where it goes.
type StderrTrigger struct {
	Pattern *regexp.Regexp // matched against each line, without its newline
	// Fires is called, on the tracer's thread, with a line that matches, which it may not keep.
	// It returns where a snapshot goes, "" for none, and what is to be told, in a goroutine of
	// its own, once it is written or has failed. It must return quickly.
	Fires func(line []byte) (path string, done func(error))
}

// stderrFD is the descriptor of standard error.
const stderrFD = 2

// maxLine bounds what is kept of a line, in bytes: more of it is not looked at.
const maxLine = 64 << 10

// maxBlocks is how many blocks writev(2) takes (IOV_MAX, linux/uio.h).
const maxBlocks = 1024

// readsStderr reports whether what is written to a descriptor is looked at.
func (t *thread) readsStderr(fd uint64) bool {
	return t.session.opt.Stderr != nil && (uint32(fd) == stderrFD || t.sameFile(uint32(fd), stderrFD))
}

// sameFile reports whether two descriptors are one open file, which nothing but kcmp(2) tells; false where a
// kernel lacks it.
func (t *thread) sameFile(a, b uint32) bool {
	const kcmpFile = 0 // KCMP_FILE, linux/kcmp.h
	order, _, err := unix.Syscall6(unix.SYS_KCMP, uintptr(t.tid), uintptr(t.tid), kcmpFile, uintptr(a), uintptr(b), 0)
	return err == 0 && order == 0
}

// noteStderr looks at what the call, a write that returned ret, has written, if that went to standard
// error.
func (t *thread) noteStderr(ret int64) {
	c := &t.call
	if ret <= 0 || !t.readsStderr(c.args[0]) {
		return
	}
	switch c.nr {
	case unix.SYS_WRITE:
		t.readLines(c.args[1], uint64(ret))
	case unix.SYS_WRITEV:
		vec := make([]byte, 16*min(c.args[2], maxBlocks)) // struct iovec: address, length
		vec = vec[:c.mem.ReadAt(c.args[1], vec)&^15]
		for left := uint64(ret); left > 0 && len(vec) > 0; vec = vec[16:] {
			n := min(binary.LittleEndian.Uint64(vec[8:]), left)
			t.readLines(binary.LittleEndian.Uint64(vec), n)
			left -= n
		}
	}
}

// readLines takes the lines that end in n bytes at addr.
func (t *thread) readLines(addr, n uint64) {
	buf := make([]byte, min(n, maxLine))
	for n > 0 {
		part := buf[:min(n, uint64(len(buf)))]
		part = part[:t.call.mem.ReadAt(addr, part)]
		if len(part) == 0 {
			return // unmapped since
		}
		t.proc.stderr.add(part, t.onStderr)
		addr += uint64(len(part))
		n -= uint64(len(part))
	}
}

// onStderr takes a line.
func (t *thread) onStderr(line []byte) {
	s := t.session
	if !s.opt.Stderr.Pattern.Match(line) {
		return
	}
	path, done := s.opt.Stderr.Fires(line)
	if path == "" {
		return
	}
	r := &request{path: path, done: make(chan error, 1)}
	go func() { done(<-r.done) }()
	s.beginLive(r)
}

// lines are what was written and is no whole line yet.
type lines struct{ part []byte }

// add calls f with each line that is whole now, which is without its newline and f's only during
// the call.
func (l *lines) add(b []byte, f func(line []byte)) {
	for {
		head, rest, whole := bytes.Cut(b, []byte{'\n'})
		line := head
		if len(l.part) > 0 || !whole {
			l.part = append(l.part, head[:min(len(head), maxLine-len(l.part))]...)
			line = l.part
		}
		if !whole {
			return
		}
		f(line[:min(len(line), maxLine)])
		l.part, b = l.part[:0], rest
	}
}
