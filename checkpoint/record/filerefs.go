//go:build linux && amd64

package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/record/agent"
)

// Files by reference. What the program reads from a large file is not copied to the log of the agent: that says where in the file it
// is, and the bytes are read from there when the interval is written, if it ever is. This is exact because nobody changes the file
// meanwhile without that it is known: the recorder has a lease on it (fcntl(2), F_SETLEASE), which the kernel gives only while nobody
// has the file open for writing. Whoever opens it for writing, or truncates it, then waits until the recorder has made a copy of the file
// and has given up the lease. The lease ends with the recorder, however that ends.

// The files that are referred to.
const (
	referAfter    = 256 << 10 // once so many bytes were read and copied to the log: most files are smaller
	mostReferred  = 32        // at once
	largestCopied = 512 << 20 // bytes: who opens the file for writing waits for the copy
)

// leases are the files that the logs of all processes refer to. The zero value is ready to use.
type leases struct {
	mu      sync.Mutex
	files   map[fileID]*leasedFile // with a lease
	changed map[fileID]bool        // that others have opened for writing: such a file is not referred to again
	watch   *leaseWatch
}

// leasedFile is a file that logs refer to.
type leasedFile struct {
	of   *leases
	key  fileID
	size int64
	over atomic.Bool // the lease is given up
	lost atomic.Bool // and there is no copy

	uses int // by pieces of the log, and by descriptors; of the tracer's thread

	// With leases.mu.
	marks map[refMark]bool // where agents refer to it

	mu   sync.RWMutex // while it is read, and while what is read changes
	file *os.File     // with a lease; or the copy
}

// refMark is a descriptor of a process whose agent is told to refer to its file.
type refMark struct {
	in *spaceAgent
	fd int32
}

// errRefLost says that a file was changed which the log refers to.
var errRefLost = errors.New("a file that the program has read was changed, and could not be copied in time")

// read returns n bytes of the file, as they were when they were read.
func (f *leasedFile) read(offset int64, n uint64) ([]byte, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.lost.Load() {
		return nil, errRefLost
	}
	b := make([]byte, n)
	if _, err := f.file.ReadAt(b, offset); err != nil {
		return nil, fmt.Errorf("read again what the program has read: %w", err)
	}
	return b, nil
}

// unuse says that one use has ended.
func (f *leasedFile) unuse() {
	if f.uses--; f.uses > 0 {
		return
	}
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.of.files[f.key] == f {
		delete(f.of.files, f.key)
	}
	_ = f.file.Close() // it was read from, and the lease goes with it
}

// take returns the file of a descriptor, with one use more, or nil where it cannot be referred to.
func (l *leases) take(pid int, fd int32) *leasedFile {
	own, err := os.OpenFile(procPath(pid, int(fd)), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(own.Fd()), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > largestCopied || !hasLeases(own) {
		_ = own.Close() // nothing was written
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := fileID{st.Dev, st.Ino}
	if f := l.files[key]; f != nil {
		_ = own.Close() // likewise
		f.uses++
		return f
	}
	if len(l.files) == mostReferred || l.changed[key] || l.lease(own) != nil {
		_ = own.Close() // likewise
		return nil
	}
	f := &leasedFile{of: l, key: key, size: st.Size, file: own, uses: 1, marks: map[refMark]bool{}}
	if l.files == nil {
		l.files = map[fileID]*leasedFile{}
	}
	l.files[key] = f
	return f
}

// hasLeases reports whether all who write to files like this one do so by this system's kernel, which heeds leases (linux/magic.h).
func hasLeases(f *os.File) bool {
	const ext4, xfs, btrfs, f2fs, tmpfs, overlay = 0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x01021994, 0x794c7630
	var st unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &st) == nil && slices.Contains([]int64{ext4, xfs, btrfs, f2fs, tmpfs, overlay}, st.Type)
}

// lease takes a lease on an open file. When it is to be given up the watch wakes.
func (l *leases) lease(f *os.File) error {
	if l.watch == nil {
		l.watch = watchLeases(l.giveUpAsked)
	}
	if err := setOwner(int(f.Fd()), l.watch.tid); err != nil {
		return err
	}
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	return err
}

// giveUpAsked gives up the leases for which somebody waits.
func (l *leases) giveUpAsked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.files {
		if kind, err := unix.FcntlInt(f.file.Fd(), unix.F_GETLEASE, 0); err != nil || kind != unix.F_RDLCK {
			l.giveUp(f)
		}
	}
}

// giveUpLeases gives up those that would have the call, at its entry, fail: an open for writing with O_NONBLOCK does not wait.
func (p *process) giveUpLeases(c *call) {
	switch c.nr {
	case unix.SYS_OPEN, unix.SYS_OPENAT:
		flags := c.args[1]
		if c.nr == unix.SYS_OPENAT {
			flags = c.args[2]
		}
		if flags&unix.O_NONBLOCK == 0 || flags&(unix.O_ACCMODE|unix.O_TRUNC) == 0 {
			return
		}
	case unix.SYS_OPENAT2: // whatever its flags
	default:
		return
	}
	l := &p.session.leases
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.files) == 0 {
		return
	}
	for _, to := range p.fileTargets(c) {
		if f := l.files[to.id]; f != nil {
			l.giveUp(f)
		}
	}
}

// giveUp gives up the lease on a file. The caller has the mutex.
func (l *leases) giveUp(f *leasedFile) {
	delete(l.files, f.key)
	if l.changed == nil {
		l.changed = map[fileID]bool{}
	}
	l.changed[f.key] = true
	f.giveUp()
}

// giveUp has the file be a copy. The caller has leases.mu.
func (f *leasedFile) giveUp() {
	for m := range f.marks {
		m.in.shared.Forget(m.fd)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over.Store(true)
	began := time.Now()
	c, err := copyOf(f.file)
	if err == nil && time.Since(began) > leaseTime()/2 {
		err = errors.Join(errRefLost, c.Close())
	}
	if err != nil {
		f.lost.Store(true)
		_, _ = unix.FcntlInt(f.file.Fd(), unix.F_SETLEASE, unix.F_UNLCK) // it has one
		return
	}
	_ = f.file.Close() // it was read from
	f.file = c
}

// leaseTime returns how long the kernel waits for a lease to be given up. Then it takes it away (proc(5), lease-break-time).
func leaseTime() time.Duration {
	const usual = 45
	b, err := os.ReadFile("/proc/sys/fs/lease-break-time")
	n, aerr := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || aerr != nil {
		n = usual
	}
	return time.Duration(n) * time.Second
}

// copyOf returns a copy of a file, in memory.
func copyOf(f *os.File) (*os.File, error) {
	fd, err := unix.MemfdCreate("vplay", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	c := os.NewFile(uintptr(fd), "copy of "+f.Name())
	if _, err = f.Seek(0, io.SeekStart); err == nil {
		_, err = io.Copy(c, f)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// close gives up all leases. No agent refers to a file any more.
func (l *leases) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watch != nil {
		l.watch.end()
		l.watch = nil
	}
	for _, f := range l.files {
		_ = f.file.Close() // it was read from
	}
	l.files = nil
}

// leaseWatch is a thread that waits for the kernel to ask for leases.
type leaseWatch struct {
	tid  int
	over atomic.Bool
}

// watchLeases has f called, on a thread of its own, when leases are to be given up.
func watchLeases(f func()) *leaseWatch {
	w, ready := &leaseWatch{}, make(chan int)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and its mask
		setMask(currentMask() | maskOf([]unix.Signal{unix.SIGIO}))
		ready <- unix.Gettid()
		for !w.over.Load() {
			if awaitSignal(unix.SIGIO) && !w.over.Load() {
				f()
			}
		}
	}()
	w.tid = <-ready
	return w
}

// end ends the thread.
func (w *leaseWatch) end() {
	w.over.Store(true)
	_ = unix.Tgkill(os.Getpid(), w.tid, unix.SIGIO) // it is there
}

// agentFiles is what is known of the files that are read where an agent is.
type agentFiles struct {
	copied map[int32]int64       // how much was read and copied, by descriptors that the process has opened for itself alone
	refer  map[int32]*leasedFile // those that agents refer to, by descriptor
}

// followFiles keeps what is known of the descriptors in step with a call that the agent has made. It returns a descriptor whose file may
// be worth referring to from now on, or -1.
func (a *spaceAgent) followFiles(r *agent.Record) int32 {
	switch r.Regs[0] {
	case unix.SYS_OPEN, unix.SYS_OPENAT:
		a.noteFile(r.Result)
	case unix.SYS_CLOSE:
		a.forgetFile(int32(r.Regs.Arg(0)))
	case unix.SYS_DUP, unix.SYS_DUP2, unix.SYS_DUP3, unix.SYS_FCNTL:
		old, second := int32(r.Regs.Arg(0)), uint32(r.Regs.Arg(1))
		_, known := a.files.copied[old]
		switch {
		case r.Result < 0, r.Result == int64(old), r.Regs[0] == unix.SYS_FCNTL && second != unix.F_DUPFD && second != unix.F_DUPFD_CLOEXEC:
			return -1
		case known:
			a.noteFile(r.Result)
		default:
			a.forgetFile(int32(r.Result))
		}
	case unix.SYS_READ, unix.SYS_PREAD64:
		if r.Refers || r.Result < agent.LeastReferred {
			return -1
		}
		fd := int32(r.Regs.Arg(0))
		if n, ok := a.files.copied[fd]; ok {
			a.files.copied[fd] = n + r.Result
			if n+r.Result >= referAfter {
				return fd
			}
		}
	default:
	}
	return -1
}

// noteFile says that a call has made a descriptor, perhaps in the place of another, of a file that the process has opened.
func (a *spaceAgent) noteFile(ret int64) {
	fd := int32(ret)
	a.forgetFile(fd)
	if ret < 0 || !agent.CanRefer(fd) {
		return
	}
	if a.files.copied == nil {
		a.files.copied = map[int32]int64{}
	}
	a.files.copied[fd] = 0
}

// forgetFile says that a descriptor has ended.
func (a *spaceAgent) forgetFile(fd int32) {
	delete(a.files.copied, fd)
	a.unrefer(fd)
}

// unrefer has agents refer to the descriptor's file no more.
func (a *spaceAgent) unrefer(fd int32) {
	f := a.files.refer[fd]
	if f == nil {
		return
	}
	delete(a.files.refer, fd)
	f.of.mu.Lock()
	delete(f.marks, refMark{a, fd})
	a.shared.Forget(fd)
	f.of.mu.Unlock()
	f.unuse()
}

// forgetFiles says that nothing is known of the descriptors any more.
func (a *spaceAgent) forgetFiles() {
	for fd := range a.files.refer {
		a.unrefer(fd)
	}
	if a.files.copied = nil; a.threadAgent != nil {
		a.shared.ForgetAll()
	}
}

// referTo has agents refer to the file of a descriptor of the process, if that can be, and no more to those that others have changed. The
// rings of all threads have been read: the log does not refer to these any more.
func (a *spaceAgent) referTo(sp *space, fd int32) {
	for fd, f := range a.files.refer {
		if f.over.Load() {
			a.unrefer(fd)
		}
	}
	if a.files.copied[fd] < referAfter || a.files.refer[fd] != nil { // it has ended meanwhile, or was referred to
		return
	}
	f := sp.session.leases.take(sp.pid, fd)
	if f == nil {
		delete(a.files.copied, fd) // nor later
		return
	}
	if a.files.refer == nil {
		a.files.refer = map[int32]*leasedFile{}
	}
	a.files.refer[fd] = f
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if !f.over.Load() {
		f.marks[refMark{a, fd}] = true
		a.shared.Refer(fd)
	}
}

// errBadRef says that the agent's log cannot be: the program can write to its memory.
var errBadRef = errors.New("the agent's log refers to what no file has")

// refer has the log l use the file that a call has read.
func (l *agentCalls) refer(a *spaceAgent, w *agent.Reference) error {
	f := a.files.refer[w.FD]
	if f == nil || w.Offset > f.size || int64(w.Len) > f.size-w.Offset {
		return errBadRef
	}
	if l.files[w.FD] == nil {
		if l.files == nil {
			l.files = map[int32]*leasedFile{}
		}
		l.files[w.FD] = f
		l.held = append(l.held, f)
		f.uses++
	}
	return nil
}

// isLost reports whether the interval has calls that have read what nobody has any more.
func (l *interval) isLost() bool {
	for i := range l.calls {
		for _, f := range l.calls[i].files {
			if f.lost.Load() {
				return true
			}
		}
	}
	return isLost(l.src)
}
