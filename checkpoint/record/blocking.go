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
	case c.nr == unix.SYS_OPEN, c.nr == unix.SYS_OPENAT, c.nr == unix.SYS_OPENAT2, c.nr == unix.SYS_CREAT:
		return !c.cutsRegular()
	case len(row.Args) > 0 && row.Args[0].Kind == abi.KindFD:
		return t.proc.fdMayBlock(int32(c.args[0]))
	}
	return true
}

// cutsRegular reports whether the call, an open at its entry, empties a regular file. Others that have it mapped must not run meanwhile:
// what they see then, and the hash of an interval that ends then, has the cut, and their log has it only later.
func (c *call) cutsRegular() bool {
	for _, f := range c.targets { // with O_TRUNC alone there are any
		var st unix.Stat_t
		if f.path == "" || unix.Stat(f.path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			return false
		}
	}
	return len(c.targets) > 0
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
