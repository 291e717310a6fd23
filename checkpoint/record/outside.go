//go:build linux && amd64

package record

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// Memory that others write. A child of a fork keeps the program's shared
// mappings, and is not recorded: what it stores there comes in from outside.
// From the first such child on, each call's exit logs the shared pages that are
// not what they were at the exit before; the program's own stores are among
// them, which does no harm. A store that the program reads before its next call
// is missed, and ends replay with a divergence. And a program may write to its
// own memory as to a file.

// outsideLimit bounds, in pages, the shared memory that is compared.
const outsideLimit = 256

// noteSharers is called when a child has been made that shares no memory but
// the shared mappings.
func (t *tracer) noteSharers() {
	for m := range t.maps.tree.From(0) {
		if !m.private() && m.Prot&checkpoint.ProtWrite != 0 && t.outside == nil {
			t.outside = map[uint64][]byte{}
			t.noteOnce("memory is shared with a child that is not recorded")
		}
	}
}

// outsideWrites returns the shared pages that have changed since the last call.
func (t *tracer) outsideWrites() []checkpoint.MemWrite {
	if t.outside == nil {
		return nil
	}
	t.outsideFresh = true
	var out []checkpoint.MemWrite
	seen := make(map[uint64][]byte, len(t.outside))
	for m := range t.maps.tree.From(0) {
		if m.private() || m.Prot&checkpoint.ProtWrite == 0 {
			continue
		}
		for a := m.Start; a < m.End; a += checkpoint.PageSize {
			if len(seen) == outsideLimit {
				t.noteOnce("more memory is shared with other processes than is looked after")
				t.outside = seen
				return out
			}
			b := make([]byte, checkpoint.PageSize)
			if t.readMem(a, b) != len(b) {
				break
			}
			if old, ok := t.outside[a]; !ok || !bytes.Equal(old, b) {
				out = append(out, checkpoint.MemWrite{Addr: a, Data: b})
			}
			seen[a] = b
		}
	}
	t.outside = seen
	return out
}

// beforeOwnMem notes, at a write's entry, where in the program's own memory it
// would write: its descriptor is /proc/self/mem.
func (t *tracer) beforeOwnMem() error {
	c := &t.call
	fd := int(int32(c.args[0]))
	link, err := os.Readlink(procPath(t.pid, fd))
	if err != nil || !strings.HasPrefix(link, "/proc/") || !strings.HasSuffix(link, "/mem") {
		return nil //nolint:nilerr // no such descriptor: the kernel says so
	}
	pid, _, _ := strings.Cut(strings.TrimPrefix(link, "/proc/"), "/")
	if pid != strconv.Itoa(t.pid) {
		return nil
	}
	switch c.nr {
	case unix.SYS_PWRITE64, unix.SYS_PWRITEV, unix.SYS_PWRITEV2:
		c.ownMem = c.args[3]
	default:
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", t.pid, fd))
		if err != nil {
			return err
		}
		pos, _, _ := strings.Cut(strings.TrimPrefix(string(b), "pos:"), "\n")
		if c.ownMem, err = strconv.ParseUint(strings.TrimSpace(pos), 10, 64); err != nil {
			return err
		}
	}
	c.toOwnMem = true
	return t.captureFilePages(pageDown(c.ownMem), pageUp(c.ownMem+min(c.args[2], sharedLimit)))
}

// ownMemWrites returns what the call has written to the program's own memory.
func (t *tracer) ownMemWrites(ret int64) []checkpoint.MemWrite {
	c := &t.call
	if !c.toOwnMem || ret <= 0 {
		return nil
	}
	b := make([]byte, ret)
	return []checkpoint.MemWrite{{Addr: c.ownMem, Data: b[:t.readMem(c.ownMem, b)]}}
}
