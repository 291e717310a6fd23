//go:build linux && amd64

package record

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// fakeSource is a program that a test makes up: one thread, some pages, and a script of
// what happens each time that the thread is resumed. Nothing is traced. What the recorder
// reads in /proc, such as the signals' actions and the CPU time, is the test's own.
type fakeSource struct {
	t      *testing.T
	regs   ptrace.Regs
	mask   uint64
	queued uint64 // pending signals
	info   ptrace.Siginfo
	msg    uint64
	sent   []unix.Signal // by the recorder
	reads  int           // of memory
	killed bool          // and on its way to PTRACE_EVENT_EXIT when its registers are asked for next
	polled func() (unix.WaitStatus, bool)
	onWay  int // how often its extended state cannot be read on the way there

	pages  map[uint64][]byte // by address
	tables map[uint64]uint64 // entries of the page table, by page
	list   []mapping

	script []step
	status unix.WaitStatus // of the stop that the last step ended with

	// any, when set, stands in the place of the script.
	any      []stopOfThread
	onResume func(tid int)
}

// stopOfThread is a stop that a test has a thread come to.
type stopOfThread struct {
	tid    int
	status unix.WaitStatus
}

// step is what the thread does when it is resumed, and the stop that it comes to.
type step func(how ptrace.Request, sig int) unix.WaitStatus

// Wait statuses, as wait(2) has them.
func stopOf(sig unix.Signal) unix.WaitStatus { return unix.WaitStatus(sig)<<8 | 0x7f }
func eventOf(event int) unix.WaitStatus {
	return unix.WaitStatus(event)<<16 | stopOf(unix.SIGTRAP)
}
func diedOf(sig unix.Signal) unix.WaitStatus { return unix.WaitStatus(sig) }

func (f *fakeSource) resume(tid int, how ptrace.Request, sig int) error {
	if f.onResume != nil {
		f.onResume(tid)
		return nil
	}
	if len(f.script) == 0 {
		f.t.Errorf("resumed with %d, signal %d, behind the end of its script", how, sig)
		f.status = diedOf(unix.SIGKILL)
		return nil
	}
	next := f.script[0]
	f.script = f.script[1:]
	f.status = next(how, sig)
	return nil
}

func (f *fakeSource) interrupt(int) error                        { f.t.Error("interrupted"); return unix.ESRCH }
func (f *fakeSource) message(int, int) (uint64, error)           { return f.msg, nil }
func (f *fakeSource) setRegs(_ int, r *ptrace.Regs) error        { f.regs = *r; return nil }
func (f *fakeSource) getSigmask(int) (uint64, error)             { return f.mask, nil }
func (f *fakeSource) setSigmask(_ int, mask uint64) error        { f.mask = mask; return nil }
func (f *fakeSource) pending(int) uint64                         { return f.queued }
func (f *fakeSource) pendingDispatch(int) bool                   { return false }
func (f *fakeSource) stopQueued(int) bool                        { return f.queued&(1<<(unix.SIGSTOP-1)) != 0 }
func (f *fakeSource) getSiginfo(_ int, si *ptrace.Siginfo) error { *si = f.info; return nil }
func (f *fakeSource) setSiginfo(_ int, si *ptrace.Siginfo) error { f.info = *si; return nil }

func (f *fakeSource) getXState(int) ([]byte, error) {
	if f.onWay > 0 {
		f.onWay--
		return nil, unix.ESRCH
	}
	return make([]byte, 576), nil
}

func (f *fakeSource) getRegs(_ int, r *ptrace.Regs) error {
	if f.killed {
		f.killed, f.msg, f.status = false, uint64(unix.SIGKILL), eventOf(unix.PTRACE_EVENT_EXIT)
		return unix.ESRCH
	}
	*r = f.regs
	return nil
}

func (f *fakeSource) dispatch(int, bool, uint64, uint64) error { return unix.EIO }

func (f *fakeSource) wait(tid int) (unix.WaitStatus, error) {
	got, ws, err := f.waitAny()
	if got != tid {
		f.t.Errorf("thread %d is waited for, and %d has stopped", tid, got)
	}
	return ws, err
}

func (f *fakeSource) waitAny() (int, unix.WaitStatus, error) {
	if f.any == nil {
		return os.Getpid(), f.status, nil
	}
	next := f.any[0]
	f.any = f.any[1:]
	return next.tid, next.status, nil
}

func (f *fakeSource) poll(int) (unix.WaitStatus, bool) {
	if f.polled == nil {
		return 0, false
	}
	return f.polled()
}

func (f *fakeSource) pollAny() (int, unix.WaitStatus, error) {
	if len(f.any) == 0 {
		return 0, 0, nil
	}
	return f.waitAny()
}

func (f *fakeSource) send(_, _ int, sig unix.Signal) error {
	f.sent = append(f.sent, sig)
	return nil
}

func (f *fakeSource) inject(int, int, uint64) (caller, error) {
	f.t.Error("a call was injected")
	return nil, unix.ESRCH
}

func (f *fakeSource) open(int) (memory, mmInfo, error) { return (*fakeMemory)(f), (*fakeMM)(f), nil }

// fakeMemory is the memory of a fakeSource.
type fakeMemory fakeSource

func (m *fakeMemory) access(b []byte, addr uint64, move func(page, b []byte) int) (int, error) {
	done := 0
	for done < len(b) {
		at := addr + uint64(done)
		page, ok := m.pages[at&^pageMask]
		if !ok {
			break
		}
		done += move(page[at&pageMask:], b[done:])
	}
	if done == 0 {
		return 0, unix.EIO
	}
	return done, nil
}

func (m *fakeMemory) readAt(b []byte, addr uint64) (int, error) {
	m.reads++
	return m.access(b, addr, func(page, b []byte) int { return copy(b, page) })
}

func (m *fakeMemory) writeAt(b []byte, addr uint64) (int, error) {
	return m.access(b, addr, func(page, b []byte) int { return copy(page, b) })
}

func (*fakeMemory) close() {}

// fakeMM is what a kernel would say of it.
type fakeMM fakeSource

func (m *fakeMM) mappings(int, *objectTable) ([]mapping, error) {
	return append([]mapping(nil), m.list...), nil
}

func (m *fakeMM) visit(start, end uint64, f func(page, entry uint64)) error {
	for p := start / checkpoint.PageSize; p < end/checkpoint.PageSize; p++ {
		if e, ok := m.tables[p]; ok {
			f(p, e)
		}
	}
	return nil
}

func (m *fakeMM) mappingAt(int, uint64, *objectTable) (mapping, error) {
	return mapping{}, unix.ENOTTY
}

func (m *fakeMM) written(uint64, uint64) (ranges, error) { return nil, unix.ENOTTY }

func (m *fakeMM) visitSince(start, end uint64, known ranges, f func(page, entry uint64)) error {
	return m.visit(start, end, func(page, entry uint64) {
		if !known.has(page) {
			entry = pmPresent | pmExclusive
		}
		f(page, entry)
	})
}

func (*fakeMM) close() {}

// Where the pages of a made-up program are, and what it executes.
const (
	fakeText  = 0x400000
	fakeData  = 0x600000 // two pages
	fakeStack = 0x7ff000 // one
	fakeSite  = fakeText + 0x100
)

// newFake returns a thread of a made-up program, at the start of its first interval. Its
// clones are refused, so that pages are copied.
func newFake(t *testing.T, opt Options) (*fakeSource, *thread) {
	t.Helper()
	f := &fakeSource{t: t, pages: map[uint64][]byte{}, tables: map[uint64]uint64{}}
	f.mapPages(fakeText, 1, checkpoint.ProtRead|checkpoint.ProtExec, 0)
	f.mapPages(fakeData, 2, checkpoint.ProtRead|checkpoint.ProtWrite, 0)
	f.mapPages(fakeStack, 1, checkpoint.ProtRead|checkpoint.ProtWrite, checkpoint.MapStack|checkpoint.MapGrowsDown)
	f.regs = ptrace.Regs{Rip: fakeText, Rsp: fakeStack + 0xf00, Cs: userCS64}
	if opt.Path == "" {
		opt.Path = filepath.Join(t.TempDir(), "out.vplay")
	}
	opt.Interval, opt.refuseShadows = time.Hour, true
	opt.setDefaults()
	s := newSession(context.Background(), opt)
	s.source = f
	s.relay.started = make(chan struct{})
	th := s.newThread(os.Getpid())
	sp := th.space()
	if err := sp.open(); err != nil {
		t.Fatal(err)
	}
	sp.maps = newMapModel(f.list)
	if err := th.refreshMask(); err != nil {
		t.Fatal(err)
	}
	th.regs = f.regs
	m, err := sp.takeSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := th.group().startInterval(th, m, th.group().contexts(th)); err != nil {
		t.Fatal(err)
	}
	return f, th
}

// mapPages maps n pages of anonymous memory, which the program has written to.
func (f *fakeSource) mapPages(start, n uint64, prot, flags uint8) {
	end := start + n*checkpoint.PageSize
	f.list = append(f.list, mapping{Mapping: checkpoint.Mapping{Start: start, End: end, Prot: prot, Flags: flags}})
	for a := start; a < end; a += checkpoint.PageSize {
		f.pages[a] = make([]byte, checkpoint.PageSize)
		f.store(a, fmt.Sprintf("page at %x", a))
		f.tables[a/checkpoint.PageSize] = pmPresent
	}
}

// store is the program's own store.
func (f *fakeSource) store(addr uint64, s string) {
	copy(f.pages[addr&^pageMask][addr&pageMask:], s)
}

// call returns the steps of a system call: its entry, and its exit with a result, before
// which effect is called.
func (f *fakeSource) call(nr int64, result int64, effect func(), args ...uint64) []step {
	return []step{
		func(ptrace.Request, int) unix.WaitStatus {
			f.regs.Rip, f.regs.Orig_rax, f.regs.Rax = fakeSite+syscallInsnLen, uint64(nr), ^uint64(unix.ENOSYS)+1
			for i, p := range []*uint64{&f.regs.Rdi, &f.regs.Rsi, &f.regs.Rdx} {
				if *p = 0; i < len(args) {
					*p = args[i]
				}
			}
			return stopOf(ptrace.SyscallTrap)
		},
		func(ptrace.Request, int) unix.WaitStatus {
			if effect != nil {
				effect()
			}
			f.regs.Rax = uint64(result)
			return stopOf(ptrace.SyscallTrap)
		},
	}
}

// dies returns the steps of a thread that a signal kills: PTRACE_EVENT_EXIT, and the end.
func (f *fakeSource) dies(sig unix.Signal) []step {
	return []step{
		func(ptrace.Request, int) unix.WaitStatus {
			f.msg = uint64(sig)
			return eventOf(unix.PTRACE_EVENT_EXIT)
		},
		func(ptrace.Request, int) unix.WaitStatus { return diedOf(sig) },
	}
}

// run runs the script to the program's end and opens the recording.
func (f *fakeSource) run(th *thread) *checkpoint.Recording {
	f.t.Helper()
	if err := th.session.loop(th); err != errGone { //nolint:errorlint // it is that one
		f.t.Fatalf("the loop ended with %v", err)
	}
	if len(f.script) != 0 {
		f.t.Fatalf("%d steps of the script are left", len(f.script))
	}
	if r := &th.session.result; !r.Recorded {
		f.t.Fatalf("nothing recorded: %s", r.Reason)
	}
	return check(f.t, th.session.result.Path)
}
