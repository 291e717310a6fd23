package lockstep

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"vplay/checkpoint/abi/ptrace"
	"vplay/replay/x86"
)

// child is the process that the CPU executes recorded instructions in. All its
// methods are for the one locked thread that started it.
type child struct {
	pid    int
	mem    int    // /proc/PID/mem
	shared int    // the memfd of shared pages, which the child has as sharedFD
	stub   uint64 // a page with a SYSCALL instruction
	// xstate is an XSAVE image of the child, for what the emulator does not
	// model, such as PKRU; its length is what the kernel gives.
	xstate []byte
	cpus   [16]uint64 // affinity of the thread before
	pinned bool
}

const (
	sharedFD = 3
	// stubTop is where the search for a place for the stub begins: between the
	// heaps of position independent programs and their libraries.
	stubTop = 0x6fff_ffff_0000
)

// startChild starts this executable again, stopped before its first instruction, and
// takes everything away from it. The error is a *HostError.
func startChild() (c *child, err error) {
	c = &child{mem: -1, shared: -1}
	defer func() {
		if err != nil {
			c.close()
			c = nil
		}
	}()
	if c.shared, err = memfd("vplayd-lockstep", 1<<62); err != nil {
		return c, &HostError{"memfd_create", err}
	}
	none := ^uintptr(0)
	c.pid, err = syscall.ForkExec("/proc/self/exe", []string{"vplayd-lockstep"}, &syscall.ProcAttr{
		Files: []uintptr{none, none, none, uintptr(c.shared)},
		Sys:   &syscall.SysProcAttr{Ptrace: true, Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return c, &HostError{"starting a traced process", err}
	}
	if ws, err := ptrace.WaitStep(c.pid); err != nil || !ws.Stopped() {
		c.pid = 0
		return c, &HostError{"waiting for the traced process", errors.Join(err, fmt.Errorf("status %#x", uint32(ws)))}
	}
	if err := ptrace.SetOptions(c.pid, ptrace.OptExitKill|ptrace.OptSysGood); err != nil {
		return c, &HostError{"ptrace", err}
	}
	if c.mem, err = syscall.Open(fmt.Sprintf("/proc/%d/mem", c.pid), syscall.O_RDWR|syscall.O_CLOEXEC, 0); err != nil {
		return c, &HostError{"the memory of the traced process", err}
	}
	if err := c.empty(); err != nil {
		return c, &HostError{"emptying the traced process", err}
	}
	c.xstate = make([]byte, ptrace.XStateMax)
	n, err := ptrace.GetXState(c.pid, c.xstate)
	if err != nil {
		return c, &HostError{"PTRACE_GETREGSET", err}
	}
	c.xstate = c.xstate[:n]
	c.pin()
	return c, nil
}

// pin lets tracer and child run on one CPU: they take turns, and waking up a
// thread of the same CPU is what a step costs most.
func (c *child) pin() {
	n, err := currentCPU()
	if err != nil || n >= 1024 || affinity(0, false, &c.cpus) != nil {
		return // slower, no more
	}
	var one [16]uint64
	one[n/64] = 1 << (n % 64)
	if affinity(c.pid, true, &one) == nil {
		c.pinned = affinity(0, true, &one) == nil
	}
}

// close kills the child.
func (c *child) close() {
	if c.pinned {
		_ = affinity(0, true, &c.cpus) // what was allowed before
	}
	if c.pid > 0 {
		_ = syscall.Kill(c.pid, syscall.SIGKILL) // it may be gone
		for {
			if ws, err := ptrace.WaitStep(c.pid); err != nil || ws.Exited() || ws.Signaled() {
				break
			}
		}
		c.pid = 0
	}
	for _, fd := range []int{c.mem, c.shared} {
		if fd >= 0 {
			_ = syscall.Close(fd) // nothing is lost
		}
	}
	c.mem, c.shared = -1, -1
}

// area is a range of addresses.
type area struct{ start, end uint64 }

// maps returns what is mapped in the child, without the vsyscall page, which
// cannot be unmapped.
func (c *child) maps() ([]area, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", c.pid))
	if err != nil {
		return nil, err
	}
	var l []area
	for line := range strings.Lines(string(b)) {
		var a area
		if _, err := fmt.Sscanf(line, "%x-%x", &a.start, &a.end); err != nil {
			return nil, err
		}
		if a.end>>63 == 0 {
			l = append(l, a)
		}
	}
	return l, nil
}

// syscallCode is SYSCALL, then INT3 up to where nothing comes by.
var syscallCode = []byte{0x0f, 0x05, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc}

// empty makes the child unmap everything but a new stub. The first calls are
// made on the spot where its program would begin.
func (c *child) empty() error {
	var r ptrace.Regs
	if err := ptrace.GetRegs(c.pid, &r); err != nil {
		return err
	}
	if _, err := ptrace.WriteMem(c.mem, syscallCode, r.Rip); err != nil {
		return err
	}
	c.stub = r.Rip
	if err := c.moveStub(nil); err != nil {
		return err
	}
	l, err := c.maps()
	if err != nil {
		return err
	}
	for _, a := range l {
		if a.start == c.stub {
			continue
		}
		if err := c.unmap(a.start, a.end); err != nil {
			return err
		}
	}
	return nil
}

// moveStub makes a stub in a free place where taken does not object; the old
// one stays.
func (c *child) moveStub(taken func(a uint64) bool) error {
	for a := uint64(stubTop); a > 1<<32; a -= 1 << 30 {
		if taken != nil && taken(a) {
			continue
		}
		ret, err := c.call(syscall.SYS_MMAP, a, 4096, syscall.PROT_READ|syscall.PROT_EXEC,
			syscall.MAP_PRIVATE|syscall.MAP_ANON|mapNoReplace, ^uint64(0), 0)
		if err != nil {
			return err
		}
		if uint64(ret) != a {
			continue
		}
		if _, err := ptrace.WriteMem(c.mem, syscallCode, a); err != nil {
			return err
		}
		c.stub = a
		return nil
	}
	return errors.New("no free page")
}

// call makes the child execute one system call and returns its result, a
// negated errno on failure. The child's registers are lost.
func (c *child) call(nr int, args ...uint64) (int64, error) {
	var r ptrace.Regs
	if err := ptrace.GetRegs(c.pid, &r); err != nil {
		return 0, err
	}
	r.Rip, r.Rax, r.Orig_rax = c.stub, uint64(nr), ^uint64(0)
	r.Eflags &^= x86.FlagTF
	for i, p := range []*uint64{&r.Rdi, &r.Rsi, &r.Rdx, &r.R10, &r.R8, &r.R9} {
		*p = 0
		if i < len(args) {
			*p = args[i]
		}
	}
	if err := ptrace.SetRegs(c.pid, &r); err != nil {
		return 0, err
	}
	for {
		if err := ptrace.Resume(c.pid, ptrace.SingleStep, 0); err != nil {
			return 0, err
		}
		ws, err := ptrace.WaitStep(c.pid)
		if err != nil {
			return 0, err
		}
		if !ws.Stopped() {
			c.pid = 0
			return 0, errGone
		}
		if ws.StopSignal() == syscall.SIGTRAP {
			break
		} // else a signal from outside: it is dropped
		if s := ws.StopSignal(); s == syscall.SIGSEGV || s == syscall.SIGILL {
			return 0, fmt.Errorf("system call %d: %v", nr, s)
		}
	}
	err := ptrace.GetRegs(c.pid, &r)
	return int64(r.Rax), err
}

// errGone says that somebody killed the child.
var errGone = errors.New("the traced process was killed")

// mmap maps n bytes at a: of anonymous memory, or with shared of the memfd at
// byte off.
func (c *child) mmap(a, n uint64, prot int, shared bool, off uint64) error {
	flags, fd := uint64(syscall.MAP_FIXED|syscall.MAP_NORESERVE|syscall.MAP_PRIVATE|syscall.MAP_ANON), ^uint64(0)
	if shared {
		flags, fd = syscall.MAP_FIXED|syscall.MAP_SHARED, sharedFD
	}
	ret, err := c.call(syscall.SYS_MMAP, a, n, uint64(prot), flags, fd, off)
	if err == nil && uint64(ret) != a {
		err = fmt.Errorf("mapping %#x: %w", a, syscall.Errno(-ret))
	}
	return err
}

func (c *child) unmap(start, end uint64) error {
	ret, err := c.call(syscall.SYS_MUNMAP, start, end-start)
	if err == nil && ret != 0 {
		err = fmt.Errorf("unmapping %#x: %w", start, syscall.Errno(-ret))
	}
	return err
}

// ending is how a step of the child ended.
type ending struct {
	sig     syscall.Signal // 0: the instruction is done
	addr    uint64         // SIGSEGV and SIGBUS: the address, when hasAddr
	hasAddr bool
	syscall bool // it was stopped at the entry of a system call
}

// Kinds of SIGSEGV and SIGBUS with an address, and where they come from
// (include/uapi/asm-generic/siginfo.h).
const (
	segvMapErr  = 1
	segvAccErr  = 2
	segvPKUErr  = 4
	busAdrErr   = 2
	siKernelMin = 1 // si_code of what a user sent is 0 or negative
)

// step executes one instruction, or one iteration of a REP string
// instruction. Signals from outside are dropped.
func (c *child) step() (ending, error) {
	for {
		if err := ptrace.Resume(c.pid, ptrace.SysemuSingleStep, 0); err != nil {
			return ending{}, err
		}
		ws, err := ptrace.WaitStep(c.pid)
		if err != nil {
			return ending{}, err
		}
		if !ws.Stopped() {
			c.pid = 0
			return ending{}, errGone
		}
		switch s := ws.StopSignal(); s {
		case syscall.SIGTRAP:
			return ending{}, nil
		case ptrace.SyscallTrap:
			return ending{syscall: true}, nil
		case syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL:
			var i ptrace.Siginfo
			if err := ptrace.GetSiginfo(c.pid, &i); err != nil {
				return ending{}, err
			}
			if i.Code() < siKernelMin {
				continue
			}
			e := ending{sig: s, addr: i.Addr()}
			e.hasAddr = s == syscall.SIGSEGV && (i.Code() == segvMapErr || i.Code() == segvAccErr || i.Code() == segvPKUErr) ||
				s == syscall.SIGBUS && i.Code() == busAdrErr
			return e, nil
		default: // from outside
		}
	}
}
