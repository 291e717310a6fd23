package abi

import (
	"errors"
	"slices"
	"testing"
)

// Addresses of the irregular cases; each has a page.
const (
	pa = 0x10000
	pb = 0x20000
	pc = 0x30000
	pd = 0x40000
)

func fourPages() *fakeMemory {
	return newFake().mapPages(pa, 1).mapPages(pb, 1).mapPages(pc, 1).mapPages(pd, 1)
}

type outputCase struct {
	name string
	m    Memory
	nr   int64
	args [6]uint64
	ret  int64
	want []Range
	err  error
}

func ranges(v ...uint64) (out []Range) {
	for i := 0; i < len(v); i += 2 {
		out = append(out, Range{v[i], v[i+1]})
	}
	return out
}

func argv(v ...uint64) (out [6]uint64) { copy(out[:], v); return out }

func checkOutputs(t *testing.T, tests []outputCase) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Outputs(nil, tt.m, tt.nr, tt.args, tt.ret)
			if !errors.Is(err, tt.err) || !slices.Equal(got, tt.want) {
				t.Errorf("Outputs = %x, %v; want %x, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestOutputsFile(t *testing.T) {
	iov := func() *fakeMemory { return fourPages().words(pa, pb, 10, pc, 20) }
	checkOutputs(t, []outputCase{
		{"readv full", iov(), SYS_READV, argv(3, pa, 2), 30, ranges(pb, 10, pc, 20), nil},
		{"readv short", iov(), SYS_READV, argv(3, pa, 2), 12, ranges(pb, 10, pc, 20), nil},
		{"readv short, writable", hinted{iov(), false}, SYS_READV, argv(3, pa, 2), 12, ranges(pb, 10, pc, 2), nil},
		{"readv short, a fault behind", hinted{fourPages().words(pa, pb, 10, pc, 20, 0x90000, 5), false}, SYS_READV, argv(3, pa, 3), 12, ranges(pb, 10, pc, 20, 0x90000, 5), nil},
		{"readv EFAULT", hinted{iov(), false}, SYS_READV, argv(3, pa, 2), fail(EFAULT), ranges(pb, 10, pc, 20), nil},
		{"readv EAGAIN", iov(), SYS_READV, argv(3, pa, 2), fail(EAGAIN), nil, nil},
		{"readv too many", iov(), SYS_READV, argv(3, pa, 1025), fail(EINVAL), nil, nil},
		{"readv vector absent", iov(), SYS_READV, argv(3, 0x90000, 2), fail(EFAULT), nil, nil},
		{"preadv2", iov(), SYS_PREADV2, argv(3, pa, 1, 0, 0, 0), 10, ranges(pb, 10), nil},
		{"vmsplice from a pipe", iov(), SYS_VMSPLICE, argv(3, pa, 1, 0), 10, ranges(pb, 10), nil},
		{"fcntl F_GETFD", fourPages(), SYS_FCNTL, argv(3, F_GETFD, pa), 1, nil, nil},
		{"fcntl F_GETLK", fourPages(), SYS_FCNTL, argv(3, F_GETLK, pa), 0, ranges(pa, 32), nil},
		{"fcntl F_GETOWN_EX", fourPages(), SYS_FCNTL, argv(3, F_GETOWN_EX, pa), 0, ranges(pa, 8), nil},
		{"fcntl unknown", fourPages(), SYS_FCNTL, argv(3, 7777, pa), 0, nil, ErrOpaque},
		{"fcntl unknown, EINVAL", fourPages(), SYS_FCNTL, argv(3, 7777, pa), fail(EINVAL), nil, nil},
		{"getdents64", hinted{fourPages(), false}, SYS_GETDENTS64, argv(3, pa, 0x1000), 0x48, ranges(pa, 0x48), nil},
		{"getdents64 count is 32 bits", hinted{fourPages(), false}, SYS_GETDENTS64, argv(3, pa, 0x100000100), 0x48, ranges(pa, 0x48), nil},
		{"readlink", fourPages(), SYS_READLINK, argv(pa, pb, 64), 64, ranges(pb, 64), nil},
		{"readlink of no link", fourPages(), SYS_READLINK, argv(pa, pb, 64), fail(EINVAL), nil, nil},
		{"getcwd", hinted{fourPages(), false}, SYS_GETCWD, argv(pa, 64), 5, ranges(pa, 5), nil},
		{"getxattr asking for the size", fourPages(), SYS_GETXATTR, argv(pa, pb, pc, 0), 12, nil, nil},
		{"getxattrat", hinted{fourPages().words(pa, pb, 64), false}, SYS_GETXATTRAT, argv(3, pc, 0, pc, pa, 16), 9, ranges(pb, 9), nil},
		{"statx", fourPages(), SYS_STATX, argv(3, pa, 0, 0xfff, pb), 0, ranges(pb, 256), nil},
		{"sendfile", fourPages(), SYS_SENDFILE, argv(1, 2, pa, 100), 100, ranges(pa, 8), nil},
		{"sendfile without offset", fourPages(), SYS_SENDFILE, argv(1, 2, 0, 100), 100, nil, nil},
		{"copy_file_range", fourPages(), SYS_COPY_FILE_RANGE, argv(1, pa, 2, pb, 9, 0), 9, ranges(pa, 8, pb, 8), nil},
		{"name_to_handle_at", fourPages().bytes(pa, []byte{24}), SYS_NAME_TO_HANDLE_AT, argv(3, pc, pa, pb, 0), 0, ranges(pa, 32, pb, 8), nil},
		{"sysfs 2", fourPages(), SYS_SYSFS, argv(2, 0, pa), 0, ranges(pa, 64), nil},
		{"sysfs 3", fourPages(), SYS_SYSFS, argv(3, 0, 0), 40, nil, nil},
		{"quotactl Q_GETQUOTA", fourPages(), SYS_QUOTACTL, argv(0x80000700, pc, 0, pa), 0, ranges(pa, 160), nil},
		{"quotactl Q_SYNC", fourPages(), SYS_QUOTACTL, argv(0x80000100, pc, 0, pa), 0, nil, nil},
	})
}

func TestOutputsIoctl(t *testing.T) {
	ioctl := func(req uint64) [6]uint64 { return argv(3, req, pa) }
	checkOutputs(t, []outputCase{
		{"TCGETS", fourPages(), SYS_IOCTL, ioctl(0x5401), 0, ranges(pa, 36), nil},
		{"TCGETS ENOTTY", fourPages(), SYS_IOCTL, ioctl(0x5401), fail(ENOTTY), nil, nil},
		{"TCSETS", fourPages(), SYS_IOCTL, ioctl(0x5402), 0, nil, nil},
		{"TIOCGWINSZ", fourPages(), SYS_IOCTL, ioctl(0x5413), 0, ranges(pa, 8), nil},
		{"FIONREAD", fourPages(), SYS_IOCTL, ioctl(0x541b), 0, ranges(pa, 4), nil},
		{"FIOCLEX", fourPages(), SYS_IOCTL, ioctl(0x5451), 0, nil, nil},
		{"FICLONE", fourPages(), SYS_IOCTL, ioctl(0x40049409), 0, nil, nil},
		{"size from the number", fourPages(), SYS_IOCTL, ioctl(0x802c542a), 0, ranges(pa, 44), nil},
		{"evdev EVIOCGNAME(64)", fourPages(), SYS_IOCTL, ioctl(0x80404506), 5, ranges(pa, 64), nil},
		{"SIOCGIFCONF", fourPages().words(pa, 80, pb), SYS_IOCTL, ioctl(0x8912), 0, ranges(pa, 16, pb, 80), nil},
		{"FIEMAP", fourPages().bytes(pa+24, []byte{2}), SYS_IOCTL, ioctl(0xc020660b), 0, ranges(pa, 32+2*56), nil},
		{"FIDEDUPERANGE", fourPages().bytes(pa+16, []byte{3}), SYS_IOCTL, ioctl(0xc0189436), 0, ranges(pa, 24+3*32), nil},
		{"EVIOCGMASK", fourPages().bytes(pa+4, []byte{24}).words(pa+8, pb), SYS_IOCTL, ioctl(0x80104592), 0, ranges(pb, 24), nil},
		{"EVIOCSFF", fourPages(), SYS_IOCTL, ioctl(0x40304580), 0, ranges(pa, 48), nil},
		{"PIDFD_GET_INFO of any size", fourPages(), SYS_IOCTL, ioctl(0xc048ff0b), 0, ranges(pa, 72), nil},
		{"unknown", fourPages(), SYS_IOCTL, ioctl(0xc0106442), 0, nil, ErrOpaque},
		{"unknown, ENOTTY", fourPages(), SYS_IOCTL, ioctl(0xc0106442), fail(ENOTTY), nil, nil},
		{"unknown, EINVAL", fourPages(), SYS_IOCTL, ioctl(0xc0106442), fail(EINVAL), nil, ErrOpaque},
	})
}

func TestOutputsNet(t *testing.T) {
	// msghdr at pa: name pb (16), one iovec at pc -> pd (100), control pb+0x100 (32).
	msg := func() *fakeMemory {
		return fourPages().words(pa, pb, 16, pc, 1, pb+0x100, 32, 0).words(pc, pd, 100)
	}
	// Two mmsghdrs at pa, received 1 of 5 bytes.
	batch := func() *fakeMemory {
		return fourPages().words(pa, 0, 0, pc, 1, 0, 0, 0, 5, 0, 0, pc, 1, 0, 0, 0, 0).words(pc, pd, 100)
	}
	length := func(n byte) *fakeMemory { return fourPages().bytes(pc, []byte{n, 0, 0, 0}) }
	checkOutputs(t, []outputCase{
		{"recvmsg", msg(), SYS_RECVMSG, argv(3, pa, 0), 100, ranges(pa, 56, pb, 16, pd, 100, pb+0x100, 32), nil},
		{"recvmsg short, writable", hinted{msg(), false}, SYS_RECVMSG, argv(3, pa, 0), 9, ranges(pa, 56, pb, 16, pd, 9, pb+0x100, 32), nil},
		{"recvmsg EAGAIN of a stream", hinted{msg(), false}, SYS_RECVMSG, argv(3, pa, 0), fail(EAGAIN), nil, nil},
		{"recvmsg EAGAIN, datagram", hinted{msg(), true}, SYS_RECVMSG, argv(3, pa, 0), fail(EAGAIN), ranges(pa, 56, pb, 16, pd, 100, pb+0x100, 32), nil},
		{"recvmsg header absent", fourPages(), SYS_RECVMSG, argv(3, 0x90000, 0), fail(EFAULT), ranges(0x90000, 56), nil},
		{"recvmmsg", hinted{batch(), false}, SYS_RECVMMSG, argv(3, pa, 2, 0, 0), 1, ranges(pa+56, 4, pa, 56, pd, 5, pa+64+56, 4, pa+64, 56, pd, 100), nil},
		{"recvmmsg with time left", hinted{batch(), false}, SYS_RECVMMSG, argv(3, pa, 2, 0, pb), fail(EAGAIN), ranges(pb, 16), nil},
		{"sendmmsg", fourPages(), SYS_SENDMMSG, argv(3, pa, 2, 0), 1, ranges(pa+56, 4, pa+64+56, 4), nil},
		{"sendmsg", msg(), SYS_SENDMSG, argv(3, pa, 0), 100, nil, nil},
		{"recvfrom", length(16), SYS_RECVFROM, argv(3, pa, 64, 0, pb, pc), 64, ranges(pa, 64, pc, 4, pb, 16), nil},
		{"recvfrom without address", length(16), SYS_RECVFROM, argv(3, pa, 64, 0, 0, 0), 64, ranges(pa, 64), nil},
		{"recvfrom EAGAIN, unknown socket", length(16), SYS_RECVFROM, argv(3, pa, 64, 0, 0, 0), fail(EAGAIN), ranges(pa, 64), nil},
		{"recvfrom EAGAIN, stream", hinted{length(16), false}, SYS_RECVFROM, argv(3, pa, 64, 0, 0, 0), fail(EAGAIN), nil, nil},
		{"accept4", length(16), SYS_ACCEPT4, argv(3, pb, pc, 0), 4, ranges(pc, 4, pb, 16), nil},
		{"accept without address", length(16), SYS_ACCEPT, argv(3, 0, 0), 4, nil, nil},
		{"accept to NULL", length(16), SYS_ACCEPT, argv(3, 0, pc), 4, ranges(pc, 4), nil},
		{"getsockname to NULL", length(16), SYS_GETSOCKNAME, argv(3, 0, pc), fail(EFAULT), ranges(pc, 4), nil},
		{"setsockopt", fourPages(), SYS_SETSOCKOPT, argv(3, SOL_SOCKET, 2, pa, 4), 0, nil, nil},
		{"setsockopt IPT_SO_SET_REPLACE", fourPages().bytes(pa+84, []byte{3}).words(pa+88, pb), SYS_SETSOCKOPT, argv(3, SOL_IP, 64, pa, 500), 0, ranges(pb, 48), nil},
		{"setsockopt ARPT_SO_SET_REPLACE", fourPages().bytes(pa+68, []byte{2}).words(pa+72, pb), SYS_SETSOCKOPT, argv(3, SOL_IP, 96, pa, 500), 0, ranges(pb, 32), nil},
		{"setsockopt EBT_SO_SET_ENTRIES", fourPages().bytes(pa+96, []byte{1}).words(pa+104, pb), SYS_SETSOCKOPT, argv(3, SOL_IP, 128, pa, 500), 0, ranges(pb, 16), nil},
		{"getsockname, address cut", length(200), SYS_GETSOCKNAME, argv(3, pb, pc), 0, ranges(pc, 4, pb, 128), nil},
		{"getsockopt", length(4), SYS_GETSOCKOPT, argv(3, 1, 4, pa, pc), 0, ranges(pc, 4, pa, 4), nil},
		{"getsockopt SO_GET_FILTER", length(4), SYS_GETSOCKOPT, argv(3, 1, 26, pa, pc), 0, ranges(pc, 4, pa, 32), nil},
		{"getsockopt zero copy", length(64), SYS_GETSOCKOPT, argv(3, 6, 35, pa, pc), 0, nil, ErrOpaque},
		{"socketpair ENFILE, after both numbers were written", fourPages(), SYS_SOCKETPAIR, argv(1, 1, 0, pa), fail(ENFILE), ranges(pa, 8), nil},
		{"socketpair", fourPages(), SYS_SOCKETPAIR, argv(1, 1, 0, pa), 0, ranges(pa, 8), nil},
	})
}

func TestOutputsPoll(t *testing.T) {
	checkOutputs(t, []outputCase{
		{"poll", fourPages(), SYS_POLL, argv(pa, 3, 0), 1, ranges(pa, 24), nil},
		{"poll interrupted", fourPages(), SYS_POLL, argv(pa, 3, 0), fail(ERESTART_RESTARTBLOCK), ranges(pa, 24), nil},
		{"ppoll", fourPages(), SYS_PPOLL, argv(pa, 2, pb, pc, 8), 0, ranges(pa, 16, pb, 16), nil},
		{"select", fourPages(), SYS_SELECT, argv(65, pa, pb, 0, pc), 1, ranges(pc, 16, pa, 16, pb, 16), nil},
		{"pselect6 interrupted", fourPages(), SYS_PSELECT6, argv(1, pa, 0, 0, pc, pd), fail(ERESTARTNOHAND), ranges(pc, 16, pa, 8), nil},
		{"select of none", fourPages(), SYS_SELECT, argv(0, pa, pb, 0, pc), 0, ranges(pc, 16), nil},
		{"epoll_wait", fourPages(), SYS_EPOLL_WAIT, argv(3, pa, 10, 0), 2, ranges(pa, 36), nil},
		{"epoll_wait, writable", hinted{fourPages(), false}, SYS_EPOLL_WAIT, argv(3, pa, 10, 0), 2, ranges(pa, 24), nil},
		{"epoll_wait time-out", fourPages(), SYS_EPOLL_WAIT, argv(3, pa, 10, 0), 0, nil, nil},
		{"epoll_pwait2 EFAULT", fourPages(), SYS_EPOLL_PWAIT2, argv(3, pa, 10, 0, 0, 8), fail(EFAULT), ranges(pa, 12), nil},
	})
}

func TestOutputsIPC(t *testing.T) {
	checkOutputs(t, []outputCase{
		{"shmctl IPC_STAT", fourPages(), SYS_SHMCTL, argv(1, 2, pa), 0, ranges(pa, 112), nil},
		{"shmctl IPC_RMID", fourPages(), SYS_SHMCTL, argv(1, 0, 0), 0, nil, nil},
		{"shmctl unknown", fourPages(), SYS_SHMCTL, argv(1, 99, pa), 0, nil, ErrOpaque},
		{"semctl IPC_STAT", fourPages(), SYS_SEMCTL, argv(1, 0, 2|0x100, pa), 0, ranges(pa, 104), nil},
		{"semctl GETALL", fourPages(), SYS_SEMCTL, argv(1, 0, 13, pa), 0, ranges(pa, 1<<17), nil},
		{"semctl SETVAL", fourPages(), SYS_SEMCTL, argv(1, 0, 16, 5), 0, nil, nil},
		{"msgctl MSG_INFO", fourPages(), SYS_MSGCTL, argv(1, 12, pa), 0, ranges(pa, 32), nil},
		{"msgrcv", hinted{fourPages(), false}, SYS_MSGRCV, argv(1, pa, 100, 0, 0), 7, ranges(pa, 8, pa+8, 7), nil},
		{"msgrcv interrupted", fourPages(), SYS_MSGRCV, argv(1, pa, 100, 0, 0), fail(EINTR), nil, nil},
		{"mq_timedreceive", fourPages(), SYS_MQ_TIMEDRECEIVE, argv(1, pa, 64, pb, 0), 64, ranges(pa, 64, pb, 4), nil},
		{"futex wait", fourPages(), SYS_FUTEX, argv(pa, 128, 1, 0), 0, nil, nil},
		{"futex WAKE_OP", fourPages(), SYS_FUTEX, argv(pa, 5|128, 1, 1, pb, 0), 1, ranges(pb, 4), nil},
		{"futex WAKE_OP, no such comparison: after the operation", fourPages(), SYS_FUTEX, argv(pa, 5, 1, 1, pb, 0xf<<24), fail(ENOSYS), ranges(pb, 4), nil},
		{"futex LOCK_PI", fourPages(), SYS_FUTEX, argv(pa, 6, 0, 0), 0, ranges(pa, 4), nil},
		{"futex WAIT_REQUEUE_PI", fourPages(), SYS_FUTEX, argv(pa, 11, 0, 0, pb), 0, ranges(pa, 4, pb, 4), nil},
		{"futex unknown", fourPages(), SYS_FUTEX, argv(pa, 77, 0, 0, pb), 0, nil, ErrOpaque},
	})
}

func TestOutputsProc(t *testing.T) {
	clone3 := func() *fakeMemory { return fourPages().words(pa, 0, pb, pc, pd, 17) }
	checkOutputs(t, []outputCase{
		{"prctl PR_GET_NAME", fourPages(), SYS_PRCTL, argv(PR_GET_NAME, pa), 0, ranges(pa, 16), nil},
		{"prctl PR_SET_NAME", fourPages(), SYS_PRCTL, argv(PR_SET_NAME, pa), 0, nil, nil},
		{"prctl PR_GET_AUXV", fourPages(), SYS_PRCTL, argv(PR_GET_AUXV, pa, 64), 352, ranges(pa, 64), nil},
		{"prctl PR_SET_MM_MAP_SIZE", fourPages(), SYS_PRCTL, argv(PR_SET_MM, 15, pa), 0, ranges(pa, 4), nil},
		{"prctl unknown", fourPages(), SYS_PRCTL, argv(9999, pa), 0, nil, ErrOpaque},
		{"prctl unknown, EINVAL", fourPages(), SYS_PRCTL, argv(9999, pa), fail(EINVAL), nil, nil},
		{"arch_prctl ARCH_SET_FS", fourPages(), SYS_ARCH_PRCTL, argv(ARCH_SET_FS, pa), 0, nil, nil},
		{"arch_prctl ARCH_GET_FS", fourPages(), SYS_ARCH_PRCTL, argv(ARCH_GET_FS, pa), 0, ranges(pa, 8), nil},
		{"arch_prctl unknown", fourPages(), SYS_ARCH_PRCTL, argv(0x7777, pa), 0, nil, ErrOpaque},
		{"wait4", fourPages(), SYS_WAIT4, argv(1, pa, 0, pb), 5, ranges(pa, 4, pb, 144), nil},
		{"wait4 without", fourPages(), SYS_WAIT4, argv(1, 0, 0, 0), 5, nil, nil},
		{"waitid", fourPages(), SYS_WAITID, argv(0, 0, pa, 4, pb), 0, ranges(pa, 128, pb, 144), nil},
		{"waitid EBADF", fourPages(), SYS_WAITID, argv(3, 99, pa, 4, 0), fail(EBADF), ranges(pa, 128), nil},
		{"ptrace ARCH_GET_FS", fourPages(), SYS_PTRACE, argv(PTRACE_ARCH_PRCTL, 5, pa, ARCH_GET_FS), 0, ranges(pa, 8), nil},
		{"ptrace ARCH_SET_FS", fourPages(), SYS_PTRACE, argv(PTRACE_ARCH_PRCTL, 5, pa, ARCH_SET_FS), 0, nil, nil},
		{"ptrace ARCH_MAP_VDSO_64", fourPages(), SYS_PTRACE, argv(PTRACE_ARCH_PRCTL, 5, pa, ARCH_MAP_VDSO_64), 0, nil, ErrOpaque},
		{"clone", fourPages(), SYS_CLONE, argv(17, 0, pa, pb, 0), 77, ranges(pa, 4, pb, 4), nil},
		{"clone3", clone3(), SYS_CLONE3, argv(pa, 88), 77, ranges(pb, 4, pc, 4, pd, 4), nil},
		{"ptrace PEEKDATA", fourPages(), SYS_PTRACE, argv(PTRACE_PEEKDATA, 5, pa, pb), 0, ranges(pb, 8), nil},
		{"ptrace GETREGSET", fourPages().words(pb, pc, 216), SYS_PTRACE, argv(PTRACE_GETREGSET, 5, 1, pb), 0, ranges(pb, 16, pc, 216), nil},
		{"ptrace PEEKSIGINFO", fourPages().words(pa, 0, 2<<32), SYS_PTRACE, argv(PTRACE_PEEKSIGINFO, 5, pa, pb), 1, ranges(pb, 256), nil},
		{"ptrace unknown", fourPages(), SYS_PTRACE, argv(0x9999, 5, pa, pb), 0, nil, ErrOpaque},
		{"seccomp sizes", fourPages(), SYS_SECCOMP, argv(3, 0, pa), 0, ranges(pa, 6), nil},
		{"keyctl READ", fourPages(), SYS_KEYCTL, argv(11, 1, pa, 64), 64, ranges(pa, 64), nil},
		{"keyctl DESCRIBE, too small", fourPages(), SYS_KEYCTL, argv(6, 1, pa, 16), 64, ranges(pa, 16), nil},
		{"keyctl PKEY_SIGN", fourPages().bytes(pa+8, []byte{32}), SYS_KEYCTL, argv(27, pa, 0, pb, pc), 32, ranges(pc, 32), nil},
		{"lsm_list_modules", fourPages().bytes(pb, []byte{24}), SYS_LSM_LIST_MODULES, argv(pa, pb, 0), 3, ranges(pb, 4, pa, 24), nil},
		{"getgroups", fourPages(), SYS_GETGROUPS, argv(8, pa), 8, ranges(pa, 32), nil},
		{"getgroups asking", fourPages(), SYS_GETGROUPS, argv(0, pa), 8, nil, nil},
		{"sched_getaffinity", hinted{fourPages(), false}, SYS_SCHED_GETAFFINITY, argv(0, 128, pa), 8, ranges(pa, 8), nil},
		{"capget", fourPages(), SYS_CAPGET, argv(pa, pb), 0, ranges(pa, 8, pb, 24), nil},
		{"prlimit64", fourPages(), SYS_PRLIMIT64, argv(0, 3, pa, pb), 0, ranges(pb, 16), nil},
		{"restart_syscall of poll", fourPages(), SYS_RESTART_SYSCALL, argv(pa, 3, 1000), 0, ranges(pa, 24, 3, 16), nil},
		{"restart_syscall of nanosleep", fourPages(), SYS_RESTART_SYSCALL, argv(pa, 0x7fff00001000, 0), 0, ranges(0x7fff00001000, 16), nil},
		{"restart_syscall of clock_nanosleep", fourPages(), SYS_RESTART_SYSCALL, argv(1, 0, pa, pb), 0, ranges(pb, 16), nil},
	})
}

func TestOutputsTimeSignalMemory(t *testing.T) {
	checkOutputs(t, []outputCase{
		{"nanosleep", fourPages(), SYS_NANOSLEEP, argv(pa, pb), fail(EINTR), ranges(pb, 16), nil},
		{"clock_nanosleep to be restarted", fourPages(), SYS_CLOCK_NANOSLEEP, argv(0, 0, pa, pb), fail(ERESTART_RESTARTBLOCK), ranges(pb, 16), nil},
		{"clock_gettime", fourPages(), SYS_CLOCK_GETTIME, argv(1, pa), 0, ranges(pa, 16), nil},
		{"gettimeofday", fourPages(), SYS_GETTIMEOFDAY, argv(pa, pb), 0, ranges(pa, 16, pb, 8), nil},
		{"adjtimex", fourPages(), SYS_ADJTIMEX, argv(pa), 0, ranges(pa, 208), nil},
		{"timer_create", fourPages(), SYS_TIMER_CREATE, argv(0, pa, pb), 0, ranges(pb, 4), nil},
		{"rt_sigaction", fourPages(), SYS_RT_SIGACTION, argv(11, pa, pb, 8), 0, ranges(pb, 32), nil},
		{"rt_sigprocmask", fourPages(), SYS_RT_SIGPROCMASK, argv(0, pa, pb, 8), 0, ranges(pb, 8), nil},
		{"rt_sigpending", fourPages(), SYS_RT_SIGPENDING, argv(pa, 8), 0, ranges(pa, 8), nil},
		{"rt_sigtimedwait", fourPages(), SYS_RT_SIGTIMEDWAIT, argv(pa, pb, pc, 8), 10, ranges(pb, 128), nil},
		{"sigaltstack", fourPages(), SYS_SIGALTSTACK, argv(pa, pb), 0, ranges(pb, 24), nil},
		{"mincore", fourPages(), SYS_MINCORE, argv(0x400000, 0x3001, pa), 0, ranges(pa, 4), nil},
		{"mincore of everything", fourPages(), SYS_MINCORE, argv(0, 1<<64-1, pa), fail(ENOMEM), ranges(pa, 0x1000), nil},
		{"get_mempolicy", fourPages(), SYS_GET_MEMPOLICY, argv(pa, pb, 65, 0, 0), 0, ranges(pa, 4, pb, 8), nil},
		{"move_pages", fourPages(), SYS_MOVE_PAGES, argv(0, 2, pa, 0, pb, 0), 0, ranges(pb, 8), nil},
		{"process_vm_readv", fourPages().words(pa, pb, 10), SYS_PROCESS_VM_READV, argv(7, pa, 1, pc, 1, 0), 10, ranges(pb, 10), nil},
		{"process_vm_writev", fourPages().words(pa, pb, 10), SYS_PROCESS_VM_WRITEV, argv(7, pa, 1, pc, 1, 0), 10, nil, ErrOpaque},
		{"process_vm_writev refused", fourPages(), SYS_PROCESS_VM_WRITEV, argv(7, pa, 1, pc, 1, 0), fail(EPERM), nil, nil},
		{"bpf", fourPages(), SYS_BPF, argv(1, pa, 64), 0, nil, ErrOpaque},
		{"io_getevents", fourPages(), SYS_IO_GETEVENTS, argv(1, 1, 1, pa, 0), 1, nil, ErrOpaque},
		{"getrandom", fourPages(), SYS_GETRANDOM, argv(pa, 16, 0), 16, ranges(pa, 16), nil},
		{"kernel addresses are cut", fourPages(), SYS_CLOCK_GETTIME, argv(1, TaskSize-8), fail(EFAULT), ranges(TaskSize-8, 8), nil},
		{"beyond user memory", fourPages(), SYS_CLOCK_GETTIME, argv(1, 1<<63), fail(EFAULT), nil, nil},
		{"absent call", fourPages(), SYS_VSERVER, argv(pa), fail(ENOSYS), nil, nil},
	})
}

func TestEffectOf(t *testing.T) {
	tests := []struct {
		name string
		nr   int64
		args [6]uint64
		want Effect
	}{
		{"open", SYS_OPEN, argv(pa, O_RDWR|O_CREAT), EffectPlain},
		{"open with O_TRUNC", SYS_OPEN, argv(pa, O_RDWR|O_TRUNC), EffectFileWrite},
		{"openat with O_TRUNC", SYS_OPENAT, argv(3, pa, O_TRUNC), EffectFileWrite},
		{"write", SYS_WRITE, argv(1, pa, 1), EffectFileWrite},
		{"mmap", SYS_MMAP, argv(), EffectMem},
		{"mmap MAP_DROPPABLE", SYS_MMAP, argv(0, 4096, 3, MAP_DROPPABLE|MAP_ANONYMOUS), EffectRefuse},
		{"madvise", SYS_MADVISE, argv(pa, 4096, MADV_DONTNEED), EffectMem},
		{"madvise guard pages", SYS_MADVISE, argv(pa, 4096, MADV_GUARD_INSTALL), EffectRefuse},
		{"madvise poisoned pages", SYS_MADVISE, argv(pa, 4096, MADV_HWPOISON), EffectRefuse},
		{"madvise merged pages", SYS_MADVISE, argv(pa, 4096, MADV_MERGEABLE), EffectRefuse},
		{"prctl merged pages", SYS_PRCTL, argv(PR_SET_MEMORY_MERGE, 1), EffectRefuse},
		{"prctl merged pages, off", SYS_PRCTL, argv(PR_SET_MEMORY_MERGE, 0), EffectPlain},
		{"prctl PR_SET_MM_BRK", SYS_PRCTL, argv(PR_SET_MM, prSetMMBrk, pa), EffectRefuse},
		{"prctl PR_SET_MM_ARG_START", SYS_PRCTL, argv(PR_SET_MM, 8, pa), EffectPlain},
		{"ioctl userfaultfd", SYS_IOCTL, argv(3, userfaultfdNew), EffectRefuse},
		{"process_madvise guard pages", SYS_PROCESS_MADVISE, argv(3, pa, 1, MADV_GUARD_INSTALL), EffectRefuse},
		{"clone", SYS_CLONE, argv(), EffectTask},
		{"execve", SYS_EXECVE, argv(), EffectExec},
		{"exit_group", SYS_EXIT_GROUP, argv(), EffectExit},
		{"rt_sigreturn", SYS_RT_SIGRETURN, argv(), EffectSignal},
		{"io_uring_setup", SYS_IO_URING_SETUP, argv(), EffectRefuse},
		{"ioctl TCGETS", SYS_IOCTL, argv(0, 0x5401), EffectPlain},
		{"ioctl FICLONE", SYS_IOCTL, argv(0, 0x40049409), EffectFileWrite},
		{"ioctl unknown", SYS_IOCTL, argv(0, 0xc0106442), EffectOpaque},
		{"prctl", SYS_PRCTL, argv(PR_SET_NAME), EffectPlain},
		{"prctl unknown", SYS_PRCTL, argv(9999), EffectOpaque},
		{"prctl shadow stack", SYS_PRCTL, argv(PR_SET_SHADOW_STACK_STATUS), EffectRefuse},
		{"arch_prctl", SYS_ARCH_PRCTL, argv(ARCH_SET_FS), EffectPlain},
		{"arch_prctl AMX", SYS_ARCH_PRCTL, argv(ARCH_REQ_XCOMP_PERM), EffectRefuse},
		{"modify_ldt read", SYS_MODIFY_LDT, argv(0), EffectPlain},
		{"modify_ldt write", SYS_MODIFY_LDT, argv(1), EffectRefuse},
		{"setsockopt", SYS_SETSOCKOPT, argv(3, SOL_SOCKET, 2), EffectPlain},
		{"setsockopt PACKET_RX_RING", SYS_SETSOCKOPT, argv(3, SOL_PACKET, 5), EffectRefuse},
		{"setsockopt XDP_UMEM_REG", SYS_SETSOCKOPT, argv(3, SOL_XDP, 4), EffectRefuse},
		{"futex", SYS_FUTEX, argv(pa, 128|256|9), EffectPlain},
		{"unknown number", 5000, argv(), EffectOpaque},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, why := EffectOf(tt.nr, tt.args)
			if got != tt.want {
				t.Errorf("EffectOf = %v, want %v", got, tt.want)
			}
			if (got == EffectOpaque || got == EffectRefuse) && why == "" {
				t.Error("no reason")
			}
			if got == EffectRefuse && DenyErrno(tt.nr) == 0 {
				t.Error("no errno to answer")
			}
		})
	}
}
