//go:build linux && amd64

package record

import (
	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi"
)

// Which calls may wait for another thread, and so give up the turn.

// mayBlock reports whether the call that the thread is at the entry of may wait for
// something that another thread does. What it is made on decides for descriptors: a regular
// file waits for its disk at most.
func (t *thread) mayBlock() bool {
	c := &t.call
	row, _ := abi.Lookup(c.nr)
	switch {
	case t.listened:
		return true
	case !abi.MayBlock(c.nr, c.args):
		return false
	case c.nr == unix.SYS_FLOCK, c.nr == unix.SYS_FCNTL:
		return true // locks of regular files, too
	case len(row.Args) > 0 && row.Args[0].Kind == abi.KindFD:
		return t.proc.fdMayBlock(int32(c.args[0]))
	}
	return true
}

// fdMayBlock reports whether a descriptor is something other than a regular file or a
// directory.
func (p *process) fdMayBlock(fd int32) bool {
	st, ok := p.statFD(fd)
	if !ok {
		return false // EBADF
	}
	kind := st.Mode & unix.S_IFMT
	return kind != unix.S_IFREG && kind != unix.S_IFDIR
}
