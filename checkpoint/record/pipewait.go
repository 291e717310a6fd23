//go:build linux && amd64

package record

import (
	"os"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// Calls that wait for a pipe, and then change what other processes see at once: a file that they
// may have mapped, or memory that they share. What read(2) does with scratch memory these cannot. In
// the kernel without the turn they would change it while another process runs, whose log
// does not say so. So such a call is made not to wait, with the turn. Where it would have to, its thread
// gives up the turn at its exit, which the program does not see, and makes the call again when
// the pipe has something, or ends it as a signal does.

// pipeCall says which argument of a call is the pipe, and which its flags.
type pipeCall struct{ fd, flags int }

// pipeCalls is all such calls: splice(2) into a file, and vmsplice(2) into memory.
var pipeCalls = map[int64]pipeCall{
	unix.SYS_SPLICE:   {fd: 0, flags: 5},
	unix.SYS_VMSPLICE: {fd: 0, flags: 3},
}

// mayWaitForPipe reports whether the call is one of those, and others may see what it changes.
func (t *thread) mayWaitForPipe() bool {
	c, p := &t.call, t.proc
	row, ok := pipeCalls[c.nr]
	if !ok || c.args[row.flags]&unix.SPLICE_F_NONBLOCK != 0 || t.session.alone() || !p.fdMayBlock(int32(c.args[row.fd])) {
		return false
	}
	return c.nr == unix.SYS_VMSPLICE || !p.fdMayBlock(int32(c.args[2]))
}

// tryCall has the kernel make the call without waiting.
func (t *thread) tryCall() error {
	flags := t.call.args[pipeCalls[t.call.nr].flags] | unix.SPLICE_F_NONBLOCK
	return t.patch(func(r *ptrace.Regs) {
		if t.call.nr == unix.SYS_SPLICE {
			r.R9 = flags
		} else {
			r.R10 = flags
		}
	})
}

// afterTry is the exit of a call that was made so. waits says that it is not over.
func (t *thread) afterTry() (waits bool, next action, err error) {
	c := &t.call
	if c.pipe != nil {
		return false, action{}, t.endTry()
	}
	if !c.tries || int64(t.regs.Rax) != -int64(unix.EAGAIN) {
		return false, action{}, nil
	}
	if c.pipe, err = t.proc.dup(int(int32(c.args[pipeCalls[c.nr].fd]))); err != nil {
		return false, action{}, nil //nolint:nilerr // the program closes it meanwhile: it gets EAGAIN
	}
	t.regs = c.entry // as they were while it was in the call
	if t.group().sharers != nil {
		return true, t.giveUpGroupTurn(action{status: callStop}, checkpoint.SchedBlocked), nil
	}
	t.giveUpTurn(action{status: callStop}, false, checkpoint.SchedBlocked)
	return true, action{parked: true}, nil
}

// endTry is the exit where a thread has waited for a pipe, or for a signal, which another may take
// before it does. The call counts as interrupted. The kernel makes it again where no signal ends
// it, but looks whether to only when it has something to do before the thread goes on: a stop.
func (t *thread) endTry() error {
	c := &t.call
	code := int64(restartSys) // what a handler makes of it says its SA_RESTART
	if isReadable(c.pipe) {
		code = restartNoIntr
	}
	_ = c.pipe.Close() // the program has its own
	c.pipe = nil
	t.regs.Rax = uint64(code)
	if err := t.setRegs(&t.regs); err != nil {
		return err
	}
	return t.session.source.interrupt(t.tid)
}

// canGoOn reports whether a thread that is ready need not wait for a pipe.
func (t *thread) canGoOn() bool {
	return t.call.pipe == nil || isReadable(t.call.pipe) || t.pending()&^t.sig.mask != 0
}

// isReadable reports whether reading from a pipe would not wait.
func isReadable(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 0)
		if err != unix.EINTR { //nolint:errorlint // a signal to the recorder, such as the Go runtime's own
			return n > 0 || err != nil
		}
	}
}

// dup returns a descriptor of the process's as one of the recorder's.
func (p *process) dup(fd int) (*os.File, error) {
	own, err := p.getFD(fd)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(own), "pipe"), nil
}

// getFD is dup for a descriptor as such.
func (p *process) getFD(fd int) (int, error) {
	of, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(of) }() // opened here
	return unix.PidfdGetfd(of, fd, 0)
}
