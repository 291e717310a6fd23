package abi

import "encoding/binary"

// The layout of siginfo_t on x86-64, the names of its codes, and how one is printed. All
// of it is from include/uapi/asm-generic/siginfo.h. Signals themselves are in signal.go.

// SizeofSiginfo is the size of siginfo_t in bytes: asm-generic/siginfo.h.
const SizeofSiginfo = 128

// Values of si_code that do not depend on the signal: asm-generic/siginfo.h.
const (
	SI_USER     = 0
	SI_KERNEL   = 0x80
	SI_QUEUE    = -1
	SI_TIMER    = -2
	SI_MESGQ    = -3
	SI_ASYNCIO  = -4
	SI_SIGIO    = -5
	SI_TKILL    = -6
	SI_DETHREAD = -7
	SI_ASYNCNL  = -60
)

// Values of si_code of faults that a recorder must tell apart.
const (
	SEGV_MAPERR = 1 // address not mapped
	SEGV_ACCERR = 2 // invalid permissions
	SEGV_BNDERR = 3
	SEGV_PKUERR = 4
	BUS_ADRALN  = 1 // alignment
	BUS_ADRERR  = 2 // beyond the end of a mapped file
	FPE_INTDIV  = 1 // integer division by zero, and its overflow
	ILL_ILLOPN  = 2 // illegal operand: what the kernel says for UD2 and undefined opcodes
	TRAP_BRKPT  = 1
	TRAP_TRACE  = 2
)

var anyCodes = map[int32]string{
	SI_USER: "SI_USER", SI_KERNEL: "SI_KERNEL", SI_QUEUE: "SI_QUEUE", SI_TIMER: "SI_TIMER", SI_MESGQ: "SI_MESGQ",
	SI_ASYNCIO: "SI_ASYNCIO", SI_SIGIO: "SI_SIGIO", SI_TKILL: "SI_TKILL", SI_DETHREAD: "SI_DETHREAD", SI_ASYNCNL: "SI_ASYNCNL",
}

// signalCodes has the names of the positive si_code values, from 1 on.
var signalCodes = map[Signal][]string{
	SIGILL: {"ILL_ILLOPC", "ILL_ILLOPN", "ILL_ILLADR", "ILL_ILLTRP", "ILL_PRVOPC", "ILL_PRVREG", "ILL_COPROC", "ILL_BADSTK", "ILL_BADIADDR"},
	SIGFPE: {
		"FPE_INTDIV", "FPE_INTOVF", "FPE_FLTDIV", "FPE_FLTOVF", "FPE_FLTUND", "FPE_FLTRES", "FPE_FLTINV", "FPE_FLTSUB",
		"FPE_DECOVF", "FPE_DECDIV", "FPE_DECERR", "FPE_INVASC", "FPE_INVDEC", "FPE_FLTUNK", "FPE_CONDTRAP",
	},
	SIGSEGV: {
		"SEGV_MAPERR", "SEGV_ACCERR", "SEGV_BNDERR", "SEGV_PKUERR", "SEGV_ACCADI", "SEGV_ADIDERR", "SEGV_ADIPERR",
		"SEGV_MTEAERR", "SEGV_MTESERR", "SEGV_CPERR",
	},
	SIGBUS:  {"BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR", "BUS_MCEERR_AR", "BUS_MCEERR_AO"},
	SIGTRAP: {"TRAP_BRKPT", "TRAP_TRACE", "TRAP_BRANCH", "TRAP_HWBKPT", "TRAP_UNK", "TRAP_PERF"},
	SIGCHLD: {"CLD_EXITED", "CLD_KILLED", "CLD_DUMPED", "CLD_TRAPPED", "CLD_STOPPED", "CLD_CONTINUED"},
	SIGIO:   {"POLL_IN", "POLL_OUT", "POLL_MSG", "POLL_ERR", "POLL_PRI", "POLL_HUP"},
	SIGSYS:  {"SYS_SECCOMP", "SYS_USER_DISPATCH"},
}

// CodeName returns the name of si_code for signal s, "SI_CODE_n" when it has
// none.
func CodeName(s Signal, code int32) string {
	if names := signalCodes[s]; code >= 1 && int(code) <= len(names) {
		return names[code-1]
	}
	if n, ok := anyCodes[code]; ok {
		return n
	}
	return "SI_CODE_" + itoa(int64(code))
}

// Siginfo is a siginfo_t: 128 bytes as the kernel lays them out on x86-64.
// A shorter slice reads as zero behind its end. Which of the accessors has a
// meaning depends on signal and code.
type Siginfo []byte

func (si Siginfo) word(off int) uint32 {
	if len(si) < off+4 {
		return 0
	}
	return binary.LittleEndian.Uint32(si[off:])
}

func (si Siginfo) quad(off int) uint64 { return uint64(si.word(off)) | uint64(si.word(off+4))<<32 }

// Signo returns si_signo.
func (si Siginfo) Signo() Signal { return Signal(si.word(0)) }

// Errno returns si_errno.
func (si Siginfo) Errno() Errno { return Errno(si.word(4)) }

// Code returns si_code.
func (si Siginfo) Code() int32 { return int32(si.word(8)) }

// PID returns si_pid: the sender's or the child's process id.
func (si Siginfo) PID() int32 { return int32(si.word(16)) }

// UID returns si_uid.
func (si Siginfo) UID() uint32 { return si.word(20) }

// Status returns si_status of SIGCHLD: the exit code or signal.
func (si Siginfo) Status() int32 { return int32(si.word(24)) }

// Value returns si_value of a queued signal.
func (si Siginfo) Value() uint64 { return si.quad(24) }

// TimerID returns si_tid of SI_TIMER, Overrun its si_overrun.
func (si Siginfo) TimerID() int32 { return int32(si.word(16)) }

// Overrun returns si_overrun of SI_TIMER.
func (si Siginfo) Overrun() int32 { return int32(si.word(20)) }

// Addr returns si_addr of a fault.
func (si Siginfo) Addr() uint64 { return si.quad(16) }

// Band returns si_band of SIGIO, FD its si_fd.
func (si Siginfo) Band() int64 { return int64(si.quad(16)) }

// FD returns si_fd of SIGIO.
func (si Siginfo) FD() int32 { return int32(si.word(24)) }

// CallAddr returns si_call_addr of SIGSYS: behind the system call instruction.
func (si Siginfo) CallAddr() uint64 { return si.quad(16) }

// Syscall returns si_syscall of SIGSYS.
func (si Siginfo) Syscall() int32 { return int32(si.word(24)) }

// FromProcess reports whether a process sent the signal (kill, tgkill,
// sigqueue), so that PID and UID name the sender.
func (si Siginfo) FromProcess() bool {
	c := si.Code()
	return c == SI_USER || c == SI_QUEUE || c == SI_TKILL
}

// IsFault reports whether an instruction of the program itself raised the
// signal, so that Addr has a meaning.
func (si Siginfo) IsFault() bool {
	switch si.Signo() {
	case SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP:
		return si.Code() > 0
	default:
		return false
	}
}

// String returns one line such as
// "SIGSEGV {si_code=SEGV_MAPERR, si_addr=0x10}".
func (si Siginfo) String() string {
	s, c := si.Signo(), si.Code()
	text := s.String() + " {si_code=" + CodeName(s, c)
	switch {
	case si.IsFault():
		text += ", si_addr=" + hex(si.Addr())
	case si.FromProcess():
		text += ", si_pid=" + itoa(int64(si.PID())) + ", si_uid=" + utoa(uint64(si.UID()))
		if c == SI_QUEUE {
			text += ", si_value=" + hex(si.Value())
		}
	case c == SI_TIMER:
		text += ", si_timerid=" + itoa(int64(si.TimerID())) + ", si_overrun=" + itoa(int64(si.Overrun()))
	case s == SIGCHLD && c > 0:
		text += ", si_pid=" + itoa(int64(si.PID())) + ", si_uid=" + utoa(uint64(si.UID())) + ", si_status=" + itoa(int64(si.Status()))
	case s == SIGIO && c > 0:
		text += ", si_band=" + itoa(si.Band()) + ", si_fd=" + itoa(int64(si.FD()))
	case s == SIGSYS && c > 0:
		text += ", si_call_addr=" + hex(si.CallAddr()) + ", si_syscall=" + Name(int64(si.Syscall()))
	}
	return text + "}"
}
