//go:build linux && amd64

package record

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/checkpoint/abi/ptrace"
)

// The vsyscall page. Programs linked with a glibc from before 2.14 ask for the
// time by a call to one of three fixed addresses there. The page has no code:
// the kernel carries the call out when the fetch faults, and no tracer hears of
// it, unless a seccomp filter asks for one (linux
// arch/x86/entry/vsyscall/vsyscall_64.c, emulate_vsyscall). The filter here asks
// at these addresses only. It stays with the process for good and goes on to its
// children, in which the calls then fail with ENOSYS as nobody traces them, so
// that it is there on demand only: see RATIONALE.md.

// vsyscallRefused and vsyscallRecorded are notes of a recording.
const (
	vsyscallRefused  = "calls through the vsyscall page cannot be recorded here: the kernel refuses the filter"
	vsyscallRecorded = "calls through the vsyscall page are recorded: the program and its children run under a seccomp filter"
)

// vsyscallFilter is the program of the filter (uapi/linux/filter.h, seccomp.h):
// SECCOMP_RET_TRACE where the instruction pointer is in the page, else
// SECCOMP_RET_ALLOW.
var vsyscallFilter = [...]unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: seccompDataIP + 4},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: abi.VsyscallPage >> 32},
	{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: seccompDataIP},
	{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jf: 1, K: abi.VsyscallPage & 0xffffffff},
	{Code: unix.BPF_RET | unix.BPF_K, K: seccompRetTrace},
	{Code: unix.BPF_RET | unix.BPF_K, K: seccompRetAllow},
}

// From uapi/linux/seccomp.h. seccompDataIP is the offset of instruction_pointer
// in struct seccomp_data.
const (
	seccompSetModeFilter = 1
	seccompRetTrace      = 0x7ff00000
	seccompRetAllow      = 0x7fff0000
	seccompDataIP        = 8
)

// armVsyscall installs the filter in the process's first image; execve keeps it.
func (t *thread) armVsyscall() error {
	if !t.session.opt.Vsyscall || t.space().image > 1 {
		return nil
	}
	const insn, head = int(unsafe.Sizeof(unix.SockFilter{})), 16 // head is struct sock_fprog
	b := make([]byte, head+len(vsyscallFilter)*insn)
	binary.LittleEndian.PutUint16(b, uint16(len(vsyscallFilter)))
	for i, f := range vsyscallFilter {
		p := b[head+i*insn:]
		binary.LittleEndian.PutUint16(p, f.Code)
		p[2], p[3] = f.Jt, f.Jf
		binary.LittleEndian.PutUint32(p[4:], f.K)
	}
	return t.withScratch(len(b), func(at uint64) error {
		binary.LittleEndian.PutUint64(b[8:], at+head)
		if _, err := t.space().mem.writeAt(b, at); err != nil {
			return err
		}
		ret, err := t.callOnce(unix.SYS_SECCOMP, seccompSetModeFilter, 0, at)
		if err == nil && ret == -int64(unix.EACCES) {
			// Without privileges a filter needs this (man 2 seccomp).
			if ret, err = t.callOnce(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1); err == nil && ret == 0 {
				ret, err = t.callOnce(unix.SYS_SECCOMP, seccompSetModeFilter, 0, at)
			}
		}
		if err != nil {
			return err
		}
		if ret != 0 {
			t.session.noteOnce(vsyscallRefused)
			return nil
		}
		t.session.noteOnce(vsyscallRecorded)
		return nil
	})
}

// onSeccomp is the stop that a filter asks for, before the kernel does a call.
func (t *thread) onSeccomp() (action, error) {
	if t.group().done {
		return action{}, nil
	}
	if err := t.readRegs(); err != nil {
		return action{}, err
	}
	if nr, ok := abi.Vsyscall(t.regs.Rip); ok {
		return t.onVsyscall(nr)
	}
	// A filter of the program's own asks for a tracer, which the program does not
	// have: the kernel's answer then.
	r, result := t.regs, errnoNoSys
	r.Orig_rax, r.Rax = ^uint64(0), uint64(result)
	return action{}, t.setRegs(&r)
}

// onVsyscall has the kernel do the call and return from it, and logs it as
// system call nr, whose entry is at an address in the page.
func (t *thread) onVsyscall(nr int64) (action, error) {
	at := t.regs.Rip
	before := regsOf(&t.regs)
	before.R[0] = uint64(nr) // The kernel has overwritten it.
	args := [6]uint64{t.regs.Rdi, t.regs.Rsi, t.regs.Rdx, t.regs.R10, t.regs.R8, t.regs.R9}
	if err := t.session.source.interrupt(t.tid); err != nil {
		return action{}, err
	}
	ws, err := t.runTo(ptrace.Syscall, 0)
	if err != nil {
		return action{}, err
	}
	if !ws.Stopped() || ptrace.Event(ws) != ptrace.EventStop {
		return comesTo(ws), nil
	}
	if err := t.readRegs(); err != nil {
		return action{}, err
	}
	if t.regs.Rip == at {
		return action{}, nil // The kernel could not write: its signal is next.
	}
	t.logEvent(t.session.enterEvent(nr, args, &before))
	t.session.result.Stats.Calls++
	now := regsOf(&t.regs)
	ev := checkpoint.Event{Kind: checkpoint.EventExit, NR: nr, Result: int64(t.regs.Rax), Regs: &now, RegHash: checkpoint.HashRegs(&now)}
	ranges, err := abi.Outputs(nil, &callMem{t.proc}, nr, args, ev.Result)
	if err != nil {
		return action{}, err
	}
	ev.Writes = append(t.space().readWrites(ranges), t.space().outsideWrites()...)
	t.logEvent(ev)
	t.sig.atExit = t.regs
	if sig := int(ptrace.StopSignal(ws)); sig != int(unix.SIGTRAP) {
		return t.onGroupStop(sig)
	}
	return action{}, t.syncPoint()
}
