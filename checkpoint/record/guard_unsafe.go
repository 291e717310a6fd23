//go:build linux && amd64

package record

import (
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The journal's memory, and the calls that need its addresses. What it holds is in guard.go.

// newJournal makes a journal of a file in memory.
func newJournal(fd int) (mapped []byte, j *journal, err error) {
	const size = unsafe.Sizeof(journal{})
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return nil, nil, err
	}
	if limit.Cur < uint64(size) { // which counts for a file in memory, too, though it takes no room
		raised := unix.Rlimit{Cur: limit.Max, Max: limit.Max}
		_ = unix.Setrlimit(unix.RLIMIT_FSIZE, &raised)                   // not above what it may be
		defer func() { _ = unix.Setrlimit(unix.RLIMIT_FSIZE, &limit) }() // it was that
	}
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return nil, nil, err
	}
	return mapJournal(fd)
}

// mapJournal maps the journal that another process has made.
func mapJournal(fd int) (mapped []byte, j *journal, err error) {
	mapped, err = unix.Mmap(fd, 0, int(unsafe.Sizeof(journal{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return mapped, (*journal)(unsafe.Pointer(&mapped[0])), nil
}

// guardCommand returns the command of the guardian with where what is in the journal: its size, done, the sentry's futex, used, the first of
// undos, how many bytes one is, its thread, and its process; herald, heralded, and the tracer's futex. An executable may have a guardian in front of Go's runtime
// that begins sooner (cmd/vplayd/guard_linux_amd64.s).
func guardCommand(command []string) []string {
	var j *journal
	var u *undo
	for _, n := range []uintptr{
		unsafe.Sizeof(*j), unsafe.Offsetof(j.done), unsafe.Offsetof(j.sentry) + unsafe.Offsetof(j.sentry.word), unsafe.Offsetof(j.used),
		unsafe.Offsetof(j.undos), unsafe.Sizeof(*u), unsafe.Offsetof(u.tid), unsafe.Offsetof(u.pid), unsafe.Offsetof(j.herald),
		unsafe.Offsetof(j.heralded), unsafe.Offsetof(j.entries) + unsafe.Offsetof(j.sentry.word),
	} {
		command = append(slices.Clip(command), strconv.FormatUint(uint64(n), 10))
	}
	return command
}

// own makes the calling thread the owner of the futexes.
func (j *journal) own() error {
	const offset = unsafe.Offsetof(robustEntry{}.word)
	addr := func(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) }
	j.head = robustHead{list: addr(unsafe.Pointer(&j.entries[0])), offset: uint64(offset)}
	for i := range j.entries {
		e := &j.entries[i]
		e.next = addr(unsafe.Pointer(&j.head))
		if i+1 < len(j.entries) {
			e.next = addr(unsafe.Pointer(&j.entries[i+1]))
		}
		e.word.Store(uint32(unix.Gettid()) | futexWaiters)
	}
	return j.head.set()
}

// ownSentry makes the calling thread the owner of the sentry's futex.
func (j *journal) ownSentry() error {
	head := uint64(uintptr(unsafe.Pointer(&j.sentryHead)))
	j.sentryHead = robustHead{list: uint64(uintptr(unsafe.Pointer(&j.sentry))), offset: uint64(unsafe.Offsetof(robustEntry{}.word))}
	j.sentry.next = head
	j.sentry.word.Store(uint32(unix.Gettid()) | futexWaiters)
	return j.sentryHead.set()
}

// set makes it the list of the calling thread.
func (h *robustHead) set() error {
	_, _, errno := unix.RawSyscall(unix.SYS_SET_ROBUST_LIST, uintptr(unsafe.Pointer(h)), unsafe.Sizeof(*h), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// disown takes the futexes from the calling thread.
func disown() {
	_, _, _ = unix.RawSyscall(unix.SYS_SET_ROBUST_LIST, 0, unsafe.Sizeof(robustHead{}), 0)
}

// The operations of futex(2) on memory that processes share.
const (
	futexWait = 0
	futexWake = 1
)

// await waits until the journal says that it is over. Whoever says so changes word, and wakes whom that concerns.
func (j *journal) await(word *atomic.Uint32) {
	for {
		v := word.Load() // first: whoever ends the wait says so before changing it
		if j.isOver() {
			return
		}
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(v), 0, 0, 0)
	}
}

// tell has all look again who wait for the recorder's end.
func (j *journal) tell() {
	wake(&j.sentry.word)
	wake(&j.heralded)
}

// wake has await look again.
func wake(word *atomic.Uint32) {
	word.Or(1 << 29) // a thread's number is less
	nudge(word)
}

// nudge has those look again who wait for a change of word, which has not changed.
func nudge(word *atomic.Uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, math.MaxInt32, 0, 0, 0)
}
