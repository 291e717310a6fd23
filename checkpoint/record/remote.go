//go:build linux && amd64

package record

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi"
)

// Calls that change the memory of another recorded process: process_vm_writev(2), writes to
// /proc/PID/mem, and writes to a file that it has mapped. It must not run meanwhile, and its log
// must say what has changed. So the two join before the call is made, as processes do that share
// memory (joining.go), and the other logs the bytes when it has the turn again.

// remoteWrite is what a call writes to the memory of another recorded process.
type remoteWrite struct {
	to *process
	at []abi.Range // in the order in which they are written; the call's result says how far
}

// iovecLimit is UIO_MAXIOV of linux/uio.h.
const iovecLimit = 1024

// beforeWrite finds out, at a call's entry, which files, and whose memory, it may change.
func (t *thread) beforeWrite(effect abi.Effect) error {
	c := &t.call
	switch {
	case c.nr == unix.SYS_PROCESS_VM_WRITEV:
		c.remote = t.remote(int(int32(c.args[0])), t.space().iovecs(c.args[3], c.args[4]))
	case c.nr == unix.SYS_MADVISE && c.args[2] == madvRemove:
		c.targets = t.proc.fileTargets(c)
	case effect == abi.EffectFileWrite:
		c.targets = t.proc.fileTargets(c)
		pid, at, err := t.proc.memBehind(c)
		if err != nil || pid == 0 {
			return err
		}
		to := t.session.threads[pid]
		if c.toOwnMem = pid == t.proc.pid || to != nil && to.space() == t.space(); c.toOwnMem {
			c.ownMem = at
			return nil
		}
		c.remote = t.remote(pid, []abi.Range{{Addr: at, Len: math.MaxInt64}})
	}
	return nil
}

// remote returns a write to the memory of a process, nil where that is not recorded, or is what
// the thread runs in.
func (t *thread) remote(pid int, at []abi.Range) *remoteWrite {
	to := t.session.threads[pid]
	if to == nil || to.group() == t.group() || to.group().done {
		return nil
	}
	return &remoteWrite{to.proc, at}
}

// iovecs reads n entries of struct iovec (man 3 iovec).
func (sp *space) iovecs(addr, n uint64) (out []abi.Range) {
	b := make([]byte, 16*min(n, iovecLimit))
	for b = b[:sp.readMem(addr, b)]; len(b) >= 16; b = b[16:] {
		out = append(out, abi.Range{Addr: le64(b), Len: le64(b[8:])})
	}
	return out
}

// memBehind returns whose memory a write would change, and from which address on, where its
// descriptor is /proc/PID/mem, else 0.
func (p *process) memBehind(c *call) (pid int, at uint64, err error) {
	fd := int(int32(c.args[0]))
	link, err := os.Readlink(procPath(p.live, fd))
	if err != nil || !strings.HasPrefix(link, "/proc/") || !strings.HasSuffix(link, "/mem") {
		return 0, 0, nil //nolint:nilerr // no such descriptor: the kernel says so
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(link, "/proc/"), "/")
	if pid, err = strconv.Atoi(number); err != nil {
		return 0, 0, nil //nolint:nilerr // another file of that name
	}
	switch c.nr {
	case unix.SYS_PWRITE64, unix.SYS_PWRITEV, unix.SYS_PWRITEV2:
		return pid, c.args[3], nil
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", p.live, fd))
	if err != nil {
		return 0, 0, err
	}
	pos, _, _ := strings.Cut(strings.TrimPrefix(string(b), "pos:"), "\n")
	at, err = strconv.ParseUint(strings.TrimSpace(pos), 10, 64)
	return pid, at, err
}

// filesWritten returns the files that the call may change.
func (c *call) filesWritten() (out []sharedFile) {
	for _, f := range c.targets {
		out = append(out, sharedFile{f.id, true, true})
	}
	return out
}

// joinsBefore joins the groups whose memory the call may change, at whose entry the thread is. It
// reports whether one of them has the turn.
func (t *thread) joinsBefore() (waits bool) {
	g, c := t.group(), &t.call
	if len(g.session.groups) < 2 {
		return false
	}
	found := t.joinFiles(c.filesWritten())
	if c.remote != nil {
		t.joinGroup(c.remote.to.space.group)
		found = true
	}
	return found && g.sharers.has != g
}

// keepRemote keeps what another process has of files where the call will write to its memory.
func (c *call) keepRemote() error {
	r := c.remote
	if r == nil {
		return nil
	}
	n := c.args[2] // bytes, or fewer than so many entries
	for _, w := range r.at {
		if c.nr == unix.SYS_PROCESS_VM_WRITEV {
			n = w.Len
		}
		as := &call{mem: callMem{r.to}}
		if err := r.to.space.captureFilePages(as, pageDown(w.Addr), pageUp(w.Addr+min(n, sharedLimit))); err != nil {
			return err
		}
	}
	return nil
}

// noteRemote has another process log what the call with result ret has written to its memory.
func (c *call) noteRemote(ret int64) {
	r := c.remote
	c.remote = nil
	if r == nil || ret <= 0 {
		return
	}
	to := r.to.space.group
	to.hasRun = true // for those that share what was written
	for _, w := range r.at {
		n := min(w.Len, uint64(ret))
		to.remote = append(to.remote, abi.Range{Addr: w.Addr, Len: n})
		if ret -= int64(n); ret == 0 {
			return
		}
	}
}
