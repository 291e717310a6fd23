package abi

// Signals: numbers, names, what each does by default, and sets of them. siginfo_t is in
// siginfo.go.

// Signal is a signal number, 1 to 64.
type Signal int32

// Signals: arch/x86/include/uapi/asm/signal.h.
const (
	SIGHUP    Signal = 1
	SIGINT    Signal = 2
	SIGQUIT   Signal = 3
	SIGILL    Signal = 4
	SIGTRAP   Signal = 5
	SIGABRT   Signal = 6
	SIGBUS    Signal = 7
	SIGFPE    Signal = 8
	SIGKILL   Signal = 9
	SIGUSR1   Signal = 10
	SIGSEGV   Signal = 11
	SIGUSR2   Signal = 12
	SIGPIPE   Signal = 13
	SIGALRM   Signal = 14
	SIGTERM   Signal = 15
	SIGSTKFLT Signal = 16
	SIGCHLD   Signal = 17
	SIGCONT   Signal = 18
	SIGSTOP   Signal = 19
	SIGTSTP   Signal = 20
	SIGTTIN   Signal = 21
	SIGTTOU   Signal = 22
	SIGURG    Signal = 23
	SIGXCPU   Signal = 24
	SIGXFSZ   Signal = 25
	SIGVTALRM Signal = 26
	SIGPROF   Signal = 27
	SIGWINCH  Signal = 28
	SIGIO     Signal = 29
	SIGPWR    Signal = 30
	SIGSYS    Signal = 31
	// SIGRTMIN is the kernel's first real-time signal; C libraries keep the
	// first two for themselves.
	SIGRTMIN Signal = 32
	SIGRTMAX Signal = 64
)

var signalNames = [...]string{
	"", "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1",
	"SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP",
	"SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS",
}

// String returns the signal's name: "SIGSEGV", "SIGRT_3" for the fourth
// real-time signal of the kernel, or the number.
func (s Signal) String() string {
	switch {
	case s > 0 && int(s) < len(signalNames):
		return signalNames[s]
	case s >= SIGRTMIN && s <= SIGRTMAX:
		return "SIGRT_" + itoa(int64(s-SIGRTMIN))
	}
	return itoa(int64(s))
}

var signalTexts = map[Signal]string{
	SIGHUP: "Hangup", SIGINT: "Interrupt", SIGQUIT: "Quit", SIGILL: "Illegal instruction", SIGTRAP: "Trace/breakpoint trap",
	SIGABRT: "Aborted", SIGBUS: "Bus error", SIGFPE: "Arithmetic exception", SIGKILL: "Killed", SIGUSR1: "User defined signal 1",
	SIGSEGV: "Segmentation fault", SIGUSR2: "User defined signal 2", SIGPIPE: "Broken pipe", SIGALRM: "Alarm clock",
	SIGTERM: "Terminated", SIGSTKFLT: "Stack fault", SIGCHLD: "Child status changed", SIGCONT: "Continued",
	SIGSTOP: "Stopped (signal)", SIGTSTP: "Stopped", SIGTTIN: "Stopped (tty input)", SIGTTOU: "Stopped (tty output)",
	SIGURG: "Urgent I/O condition", SIGXCPU: "CPU time limit exceeded", SIGXFSZ: "File size limit exceeded",
	SIGVTALRM: "Virtual timer expired", SIGPROF: "Profiling timer expired", SIGWINCH: "Window size changed",
	SIGIO: "I/O possible", SIGPWR: "Power failure", SIGSYS: "Bad system call",
}

// DumpsCore reports whether the signal, where nobody handles it, ends a process with a core
// dump (man 7 signal).
func (s Signal) DumpsCore() bool {
	switch s {
	case SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS:
		return true
	default:
		return false
	}
}

// Text returns what the signal means, in the words of strsignal(3); "Real-time
// signal" for those, "" for what is no signal.
func (s Signal) Text() string {
	if s >= SIGRTMIN && s <= SIGRTMAX {
		return "Real-time signal"
	}
	return signalTexts[s]
}

// Default is what a signal does that is neither handled nor ignored.
type Default uint8

// The default actions: man 7 signal.
const (
	DefaultTerm Default = iota // ends the process
	DefaultCore                // ends it with a core dump
	DefaultIgnore
	DefaultStop
	DefaultCont
)

// Default returns the signal's default action.
func (s Signal) Default() Default {
	switch s {
	case SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS:
		return DefaultCore
	case SIGCHLD, SIGURG, SIGWINCH:
		return DefaultIgnore
	case SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU:
		return DefaultStop
	case SIGCONT:
		return DefaultCont
	default:
		return DefaultTerm
	}
}

// Handlers that are no address: include/uapi/asm-generic/signal-defs.h.
const (
	SIG_DFL = 0
	SIG_IGN = 1
)

// Operations of rt_sigprocmask: include/uapi/asm-generic/signal-defs.h.
const (
	SIG_BLOCK   = 0
	SIG_UNBLOCK = 1
	SIG_SETMASK = 2
)

var setSighow = enumSet{{SIG_BLOCK, "SIG_BLOCK"}, {SIG_UNBLOCK, "SIG_UNBLOCK"}, {SIG_SETMASK, "SIG_SETMASK"}}

// Flags of an action: arch/x86/include/uapi/asm/signal.h.
const (
	SA_NOCLDSTOP      = 0x1
	SA_NOCLDWAIT      = 0x2
	SA_SIGINFO        = 0x4
	SA_UNSUPPORTED    = 0x400
	SA_EXPOSE_TAGBITS = 0x800
	SA_RESTORER       = 0x04000000
	SA_ONSTACK        = 0x08000000
	SA_RESTART        = 0x10000000
	SA_NODEFER        = 0x40000000
	SA_RESETHAND      = 0x80000000
)

var setSigaction = flagSet{
	{SA_NOCLDSTOP, "SA_NOCLDSTOP"},
	{SA_NOCLDWAIT, "SA_NOCLDWAIT"},
	{SA_SIGINFO, "SA_SIGINFO"},
	{SA_UNSUPPORTED, "SA_UNSUPPORTED"},
	{SA_EXPOSE_TAGBITS, "SA_EXPOSE_TAGBITS"},
	{SA_RESTORER, "SA_RESTORER"},
	{SA_ONSTACK, "SA_ONSTACK"},
	{SA_RESTART, "SA_RESTART"},
	{SA_NODEFER, "SA_NODEFER"},
	{SA_RESETHAND, "SA_RESETHAND"},
}

// Flags of an alternate stack: include/uapi/linux/signal.h.
const (
	SS_ONSTACK    = 1
	SS_DISABLE    = 2
	SS_AUTODISARM = 1 << 31
)

// Sigset is a set of signals as the kernel keeps it: bit n-1 is signal n.
type Sigset uint64

// Has reports whether s is in the set.
func (set Sigset) Has(s Signal) bool {
	return s >= 1 && s <= 64 && set>>(s-1)&1 != 0
}

// With returns the set with s added.
func (set Sigset) With(s Signal) Sigset {
	if s >= 1 && s <= 64 {
		set |= 1 << (s - 1)
	}
	return set
}

// String returns the names in brackets, without "SIG": "[INT CHLD]".
func (set Sigset) String() string {
	text := "["
	for s := Signal(1); s <= 64; s++ {
		if set.Has(s) {
			if len(text) > 1 {
				text += " "
			}
			text += s.String()[3:]
		}
	}
	return text + "]"
}
