package checkpoint

// The registers of threads, as an interval's ends and events hold them. What system calls
// and signals do to them is in event.go; the machine that has them is package replay/x86's.

// Regs are the general registers of a thread. R is in encoding order: rax,
// rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
type Regs struct {
	R              [16]uint64
	RIP            uint64
	RFLAGS         uint64
	FSBase, GSBase uint64
	CS, SS         uint16
	DS, ES, FS, GS uint16
}

// TID is the number of a thread, as gettid(2) gives it to the program. The thread that
// began a process has the process's number.
type TID int32

// Context is one thread's processor state.
type Context struct {
	TID  TID
	Regs Regs
	// XState is the XSAVE image in the standard (non-compacted) format that
	// PTRACE_GETREGSET NT_X86_XSTATE returns: 512 bytes of legacy area, 64
	// bytes of header, then the components at the offsets of Identity.XSAVE. It may be
	// empty for a thread inside a call, whose exit then carries it.
	XState []byte
	// OrigRAX is the system call number while the thread is inside a call,
	// else -1.
	OrigRAX int64
	// InCall is set when the thread is inside a system call, so that its
	// next event is an exit.
	InCall bool
	// Restart is, for a thread inside a call, the kernel's pending restart
	// code (-512, -513, -514 or -516, see Event.Result), else 0.
	Restart int64
	// Name is what the thread calls itself (PR_SET_NAME), "" when it is not known; since
	// version 2.
	Name string
}

// Running returns the thread that runs, of the threads of a process at one moment: it
// is the first. Nil when there is none.
func Running(threads []Context) *Context {
	if len(threads) == 0 {
		return nil
	}
	return &threads[0]
}
