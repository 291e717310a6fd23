//go:build amd64 || arm64

package sandbox

import "golang.org/x/sys/unix"

// The filter is a list of the system calls that are allowed: those of the Go runtime,
// of reading files and of serving connections that come in. Some are allowed with
// certain arguments only. A filter sees the argument registers, not what they point
// to. So a call with a structure that matters is answered with ENOSYS, and the caller
// takes the older one without.

// plainCalls are allowed with any arguments, besides archCalls.
var plainCalls = []uint32{
	// Files that are open.
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREADV,
	unix.SYS_PWRITEV, unix.SYS_LSEEK, unix.SYS_CLOSE, unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_GETDENTS64, unix.SYS_FADVISE64,
	unix.SYS_COPY_FILE_RANGE, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FLOCK,
	// What files are.
	unix.SYS_FSTAT, unix.SYS_STATX, unix.SYS_FSTATFS, unix.SYS_STATFS, unix.SYS_READLINKAT, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2,
	unix.SYS_GETCWD,
	// Memory.
	unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MREMAP, unix.SYS_MINCORE, unix.SYS_BRK, unix.SYS_MEMBARRIER,
	// Threads.
	unix.SYS_FUTEX, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_SCHED_YIELD,
	unix.SYS_SCHED_GETAFFINITY, unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_RESTART_SYSCALL,
	// Signals to this process.
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	// Waiting.
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_EVENTFD2, unix.SYS_PIPE2,
	unix.SYS_PPOLL, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP,
	// Connections that come in.
	unix.SYS_ACCEPT4, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_SETSOCKOPT, unix.SYS_GETSOCKOPT, unix.SYS_SHUTDOWN,
	// The time, chance, and who we are.
	unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRANDOM, unix.SYS_UNAME, unix.SYS_GETRUSAGE,
	unix.SYS_GETPPID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID,
}

// writeCalls change files, and are for those who write some.
var writeCalls = []uint32{
	unix.SYS_OPENAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_UNLINKAT, unix.SYS_MKDIRAT, unix.SYS_FTRUNCATE,
	unix.SYS_FALLOCATE, unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHOWN, unix.SYS_UMASK, unix.SYS_UTIMENSAT,
}

const (
	cloneNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
		unix.CLONE_NEWPID | unix.CLONE_NEWNET
	openForWriting = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC | unix.O_TMPFILE&^unix.O_DIRECTORY
	prSetVMA       = 0x53564d41 // PR_SET_VMA (linux/prctl.h): Go names its memory
)

// arg allows a call when the low half of an argument, cut by the mask, is one of the
// values. What the kernel takes of these arguments are 32 bits, but for the address of
// prlimit64 and the protection of memory.
type arg struct {
	nr     uint32
	n      uint32 // which argument, from 0
	mask   uint32
	values []uint32
}

const whole = ^uint32(0)

// argCalls returns the calls that depend on an argument, for a process.
func argCalls(pid int) []arg {
	return []arg{
		{unix.SYS_CLONE, 0, unix.CLONE_THREAD | cloneNamespaces, []uint32{unix.CLONE_THREAD}}, // threads, no processes
		{unix.SYS_TGKILL, 0, whole, []uint32{uint32(pid)}},
		{unix.SYS_MMAP, 2, unix.PROT_EXEC, []uint32{0}},
		{unix.SYS_MPROTECT, 2, unix.PROT_EXEC, []uint32{0}},
		{unix.SYS_FCNTL, 1, whole, []uint32{
			unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL, unix.F_GETLK, unix.F_SETLK, unix.F_SETLKW,
		}}, // no F_SETOWN, which sends signals
		{unix.SYS_IOCTL, 1, whole, []uint32{unix.TCGETS, unix.TIOCGWINSZ}},
		{unix.SYS_PRCTL, 0, whole, []uint32{prSetVMA}},
	}
}

// olderCalls are answered with ENOSYS: what they do is in a structure.
var olderCalls = []uint32{unix.SYS_CLONE3, unix.SYS_OPENAT2}

// Offsets in struct seccomp_data (linux/seccomp.h).
const (
	dataNR   = 0
	dataArch = 4
	dataArgs = 16
)

// program is a filter in the making.
type program []unix.SockFilter

func (p *program) add(code uint16, k uint32, jt, jf uint8) {
	*p = append(*p, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
}

func (p *program) load(offset uint32) { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0) }

func (p *program) answer(action uint32) { p.add(unix.BPF_RET|unix.BPF_K, action, 0, 0) }

// onEqual goes over skip instructions unless the accumulator is k.
func (p *program) onEqual(k uint32, skip int) {
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, k, 0, uint8(skip))
}

// answerCall answers one call.
func (p *program) answerCall(nr, action uint32) {
	p.onEqual(nr, 1)
	p.answer(action)
}

const (
	allow  = unix.SECCOMP_RET_ALLOW
	refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	older  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// checkArg answers a call by one of its arguments.
func (p *program) checkArg(a arg) {
	p.onEqual(a.nr, 2+2*len(a.values)+1)
	p.load(dataArgs + 8*a.n) // both processors are little-endian
	p.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, a.mask, 0, 0)
	for _, v := range a.values {
		p.answerCall(v, allow)
	}
	p.answer(refuse)
}

// readLimit allows prlimit64 of this process that sets nothing.
func (p *program) readLimit() {
	p.onEqual(unix.SYS_PRLIMIT64, 8)
	p.load(dataArgs)
	p.onEqual(0, 5)
	p.load(dataArgs + 8*2)
	p.onEqual(0, 3)
	p.load(dataArgs + 8*2 + 4)
	p.onEqual(0, 1)
	p.answer(allow)
	p.answer(refuse)
}

// callFilter returns the filter for a process that writes files or not, and that
// removes some or not.
func callFilter(pid int, writes, removes bool) []unix.SockFilter {
	var p program
	p.load(dataArch)
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, auditArch, 1, 0)
	p.answer(refuse) // another set of numbers, as that of INT 0x80
	p.load(dataNR)
	calls := append(append([]uint32(nil), plainCalls...), archCalls...)
	args := argCalls(pid)
	if writes {
		calls = append(calls, writeCalls...)
	} else {
		args = append(args, arg{unix.SYS_OPENAT, 2, openForWriting, []uint32{0}})
	}
	if removes && !writes {
		calls = append(calls, unix.SYS_UNLINKAT)
	}
	for _, nr := range calls {
		p.answerCall(nr, allow)
	}
	for _, nr := range olderCalls {
		p.answerCall(nr, older)
	}
	p.readLimit()
	for _, a := range args {
		p.checkArg(a)
	}
	p.answer(refuse)
	return p
}
