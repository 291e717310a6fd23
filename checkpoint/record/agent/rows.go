package agent

import (
	"encoding/binary"
	"slices"

	"vplay/checkpoint/abi"
)

// Which calls the agent makes by itself. What they write comes from the table of package abi:
// here is only which they are, and on which condition. All others are the supervisor's.

// when says on which condition a call is the agent's.
type when uint8

// The conditions, as agent.c has them.
const (
	never when = iota
	always
	truncates    // the argument has none of some bits, with which the file is emptied, or that is not mapped
	writes       // the argument is a descriptor of what is not mapped: AllowWrites, ListMapped
	closes       // the argument is a descriptor that ends
	byCommand    // the argument is a command of those listed
	isNull       // the argument is 0
	changesFlags // always, and what makes descriptors wait is not known any more
	newMemory    // of mmap(2): IsNewMemory
	otherSignals // the argument is no signal whose action the recorder has a hand in: SIGSEGV, SIGSYS
	ownMemory    // the first arguments are the address and the length of memory that AddWritable has named, or the agent has mapped
	shrinks      // of mremap(2): likewise, and it becomes less where it is
	unreferred   // no descriptor is referred to: Refer
	mask         // of rt_sigprocmask(2): it asks for the mask, or changes it as Together says
)

// waits says how a call may wait for another thread.
type waits uint8

// The ways, as agent.c has them.
const (
	notAtAll  waits = iota
	toRead          // until the descriptor has something
	toWrite         // until it takes something
	toOpen          // where the file is a FIFO or a device
	toOpenAt        // likewise, in a directory
	forEvents       // for as long as the fourth argument says: it can be tried without waiting
	inPoll          // for as long as the third argument says
	toSend          // where the descriptor does not say that it never waits
	alwaysWaits
)

// How much the kernel writes at an argument, as agent.c has it.
const (
	fixed = 1 + iota
	counted
	array   // as many as an argument says
	address // of a socket, with its length behind a pointer
)

// maxAddress is the size of struct sockaddr_storage (linux/socket.h): no address is longer.
const maxAddress = 128

// out is memory that a call writes.
type out struct {
	how, arg, of uint8
	size         uint32
}

// row is what the agent knows of a call.
type row struct {
	when  when
	arg   uint8
	waits waits
	val   uint32
	outs  []out
}

// plainCalls are those that the agent always makes: frequent ones that change nothing which
// the recorder keeps account of.
var plainCalls = []int64{
	abi.SYS_READ, abi.SYS_PREAD64, abi.SYS_GETDENTS64, abi.SYS_LSEEK, abi.SYS_GETRANDOM,
	abi.SYS_STAT, abi.SYS_FSTAT, abi.SYS_LSTAT, abi.SYS_NEWFSTATAT, abi.SYS_STATX, abi.SYS_STATFS, abi.SYS_FSTATFS,
	abi.SYS_ACCESS, abi.SYS_FACCESSAT, abi.SYS_FACCESSAT2, abi.SYS_READLINK, abi.SYS_READLINKAT, abi.SYS_GETCWD,
	abi.SYS_GETXATTR, abi.SYS_LGETXATTR, abi.SYS_FGETXATTR, abi.SYS_LISTXATTR, abi.SYS_LLISTXATTR, abi.SYS_FLISTXATTR,
	abi.SYS_CHDIR, abi.SYS_FCHDIR, abi.SYS_MKDIR, abi.SYS_MKDIRAT, abi.SYS_RMDIR, abi.SYS_UNLINK, abi.SYS_UNLINKAT,
	abi.SYS_RENAME, abi.SYS_RENAMEAT, abi.SYS_RENAMEAT2, abi.SYS_LINK, abi.SYS_LINKAT, abi.SYS_SYMLINK, abi.SYS_SYMLINKAT,
	abi.SYS_CHMOD, abi.SYS_FCHMOD, abi.SYS_FCHMODAT, abi.SYS_CHOWN, abi.SYS_FCHOWN, abi.SYS_LCHOWN, abi.SYS_FCHOWNAT,
	abi.SYS_UTIME, abi.SYS_UTIMES, abi.SYS_FUTIMESAT, abi.SYS_UTIMENSAT,
	abi.SYS_FSYNC, abi.SYS_FDATASYNC, abi.SYS_FADVISE64, abi.SYS_UMASK, abi.SYS_DUP,
	abi.SYS_CLOCK_GETTIME, abi.SYS_GETTIMEOFDAY, abi.SYS_TIME, abi.SYS_TIMES, abi.SYS_GETRUSAGE,
	abi.SYS_GETPID, abi.SYS_GETPPID, abi.SYS_GETTID, abi.SYS_GETUID, abi.SYS_GETEUID, abi.SYS_GETGID, abi.SYS_GETEGID, abi.SYS_GETPGRP,
	abi.SYS_GETPGID, abi.SYS_GETSID,
	abi.SYS_UNAME, abi.SYS_SYSINFO, abi.SYS_GETRLIMIT, abi.SYS_EPOLL_WAIT, abi.SYS_EPOLL_CTL, abi.SYS_POLL,
	abi.SYS_SOCKET, abi.SYS_BIND, abi.SYS_LISTEN, abi.SYS_SHUTDOWN, abi.SYS_CONNECT, abi.SYS_ACCEPT, abi.SYS_ACCEPT4,
	abi.SYS_GETSOCKNAME, abi.SYS_GETPEERNAME, abi.SYS_SENDTO, abi.SYS_RECVFROM,
	abi.SYS_PIPE, abi.SYS_PIPE2, abi.SYS_SOCKETPAIR, abi.SYS_EVENTFD2, abi.SYS_EPOLL_CREATE1,
}

// socketLevels are the levels of setsockopt(2) whose options are read and no more. Those of IP may replace tables,
// and the kernel writes counters of the old ones.
var socketLevels = []uint32{abi.SOL_SOCKET, solTCP}

const solTCP = 6 // linux/socket.h

// Requests of ioctl(2) (asm-generic/ioctls.h) and commands of fcntl(2) that are the agent's.
// F_SETLK does not wait.
var (
	ioctlCommands = []uint32{0x5401 /* TCGETS */, 0x5413 /* TIOCGWINSZ */, 0x541b /* FIONREAD */, 0x5450 /* FIONCLEX */, 0x5451 /* FIOCLEX */}
	fcntlCommands = []uint32{abi.F_DUPFD, abi.F_DUPFD_CLOEXEC, abi.F_GETFD, abi.F_SETFD, abi.F_GETFL, abi.F_SETFL, abi.F_SETLK}
)

// futexWakes are the operations of futex(2) that are the agent's, with FUTEX_PRIVATE_FLAG and
// without: they wake others.
var futexWakes = []uint32{abi.FUTEX_WAKE, abi.FUTEX_WAKE | 128, abi.FUTEX_WAKE_BITSET, abi.FUTEX_WAKE_BITSET | 128}

// futexWaits are those that wait, with FUTEX_CLOCK_REALTIME and without, too.
var futexWaits = []uint32{
	abi.FUTEX_WAIT, abi.FUTEX_WAIT | 128, abi.FUTEX_WAIT_BITSET, abi.FUTEX_WAIT_BITSET | 128,
	abi.FUTEX_WAIT_BITSET | 256, abi.FUTEX_WAIT_BITSET | 128 | 256,
}

// advice is of madvise(2) and the agent's: what gives up pages, and what changes nothing.
var advice = []uint32{abi.MADV_DONTNEED, abi.MADV_WILLNEED, abi.MADV_HUGEPAGE, abi.MADV_NOHUGEPAGE}

// waiting has the calls that may wait for another thread.
var waiting = map[int64]waits{
	abi.SYS_READ: toRead, abi.SYS_PREAD64: toRead, abi.SYS_RECVFROM: toRead,
	abi.SYS_WRITE: toWrite, abi.SYS_PWRITE64: toWrite, abi.SYS_SENDTO: toWrite,
	abi.SYS_OPEN: toOpen, abi.SYS_OPENAT: toOpenAt,
	abi.SYS_EPOLL_WAIT: forEvents, abi.SYS_EPOLL_PWAIT: forEvents, abi.SYS_POLL: inPoll,
	abi.SYS_ACCEPT: toRead, abi.SYS_ACCEPT4: toRead, abi.SYS_CONNECT: toSend, abi.SYS_WRITEV: toSend,
	abi.SYS_NANOSLEEP: alwaysWaits, abi.SYS_CLOCK_NANOSLEEP: alwaysWaits,
}

// tableOfRows returns the rows, by number; those of commands stand behind the last call.
func tableOfRows() map[uint32]row {
	t := map[uint32]row{}
	for _, nr := range plainCalls {
		t[uint32(nr)] = row{when: always, waits: waiting[nr], outs: outsOf(nr)}
	}
	t[abi.SYS_EPOLL_PWAIT] = row{when: isNull, arg: 4, waits: forEvents, outs: outsOf(abi.SYS_EPOLL_PWAIT)} // the mask
	t[abi.SYS_NANOSLEEP] = row{when: isNull, arg: 1, waits: alwaysWaits}                                    // what is left of the time
	t[abi.SYS_CLOCK_NANOSLEEP] = row{when: isNull, arg: 3, waits: alwaysWaits}
	t[abi.SYS_OPEN] = row{when: truncates, arg: 1, val: abi.O_TRUNC, waits: toOpen}
	t[abi.SYS_OPENAT] = row{when: truncates, arg: 2, val: abi.O_TRUNC, waits: toOpenAt}
	t[abi.SYS_WRITE] = row{when: writes, waits: toWrite}
	t[abi.SYS_PWRITE64] = row{when: writes, waits: toWrite}
	t[abi.SYS_WRITEV] = row{when: writes, waits: toSend}
	t[abi.SYS_SENDFILE] = row{when: writes, waits: toSend, outs: outsOf(abi.SYS_SENDFILE)}
	t[abi.SYS_COPY_FILE_RANGE] = row{when: writes, arg: 2, waits: toSend, outs: outsOf(abi.SYS_COPY_FILE_RANGE)}
	t[abi.SYS_SENDMSG] = row{when: unreferred, waits: toSend} // it may give descriptors to others, which may read there
	t[abi.SYS_CLOSE] = row{when: closes}
	t[abi.SYS_DUP2] = row{when: closes, arg: 1}
	t[abi.SYS_DUP3] = row{when: closes, arg: 1}
	t[abi.SYS_BRK] = row{when: always}
	t[abi.SYS_MMAP] = row{when: newMemory}
	t[abi.SYS_MUNMAP] = row{when: ownMemory}
	t[abi.SYS_MREMAP] = row{when: shrinks}
	t[abi.SYS_RT_SIGACTION] = row{when: otherSignals, outs: outsOf(abi.SYS_RT_SIGACTION)}
	t[abi.SYS_RT_SIGPROCMASK] = row{when: mask, outs: outsOf(abi.SYS_RT_SIGPROCMASK)}
	next := uint32(rowCount)
	for _, c := range []struct {
		nr       int64
		arg      uint8
		when     when
		commands []uint32
	}{
		{abi.SYS_IOCTL, 1, always, ioctlCommands}, {abi.SYS_FCNTL, 1, always, fcntlCommands}, {abi.SYS_SETSOCKOPT, 1, always, socketLevels},
		{abi.SYS_FUTEX, 1, always, slices.Concat(futexWakes, futexWaits)}, {abi.SYS_MADVISE, 2, ownMemory, advice},
	} {
		n := uint32(len(c.commands))
		next -= n
		t[uint32(c.nr)] = row{when: byCommand, arg: c.arg, val: next | n<<16}
		for i, cmd := range c.commands {
			r := row{when: c.when, val: cmd, outs: outsOfCommand(c.nr, cmd)}
			if c.nr == abi.SYS_FCNTL && cmd == abi.F_SETFL {
				r.when = changesFlags
			}
			if c.nr == abi.SYS_FUTEX && slices.Contains(futexWaits, cmd) {
				r.waits = alwaysWaits
			}
			t[next+uint32(i)] = r
		}
	}
	return t
}

// mapAdvice are flags of mmap(2) that change nothing of what is mapped.
const mapAdvice = abi.MAP_NORESERVE | abi.MAP_STACK

// IsNewMemory reports whether mmap(2) with these arguments makes memory that is the program's alone and holds no code, where the
// kernel chooses: that changes the map in a way that follows from the call's result. The agent makes such calls.
func IsNewMemory(args *[6]uint64) bool {
	return args[2]&abi.PROT_EXEC == 0 && args[3]&^mapAdvice == abi.MAP_PRIVATE|abi.MAP_ANONYMOUS
}

// IsShrunk reports whether mremap(2) with these arguments takes away a part of what is mapped, and moves nothing. The agent makes such calls.
func IsShrunk(args *[6]uint64) bool {
	pages := func(n uint64) uint64 { return (n + 0xfff) &^ 0xfff }
	size := pages(args[2])
	return args[3]&^abi.MREMAP_MAYMOVE == 0 && size != 0 && size <= pages(args[1])
}

// outsOf returns what a call writes, from its row in the table of calls.
func outsOf(nr int64) []out {
	s, _ := abi.Lookup(nr)
	var outs []out
	for i := range s.Args {
		a := &s.Args[i]
		if a.Kind == abi.KindSockOut {
			outs = append(outs, out{how: address, arg: uint8(i), of: a.Of, size: maxAddress})
			continue
		}
		if a.Kind != abi.KindOut && a.Kind != abi.KindInOut {
			continue
		}
		o := out{how: fixed, arg: uint8(i), size: a.Size}
		switch a.Len {
		case abi.LenN:
			o.size *= a.N
		case abi.LenRet:
			o.how, o.of = counted, a.Of
		case abi.LenArg:
			o.how, o.of = array, a.Of
		case abi.LenOne:
		}
		outs = append(outs, o)
	}
	return outs
}

// outsOfCommand asks what a call with a command writes at its third argument.
func outsOfCommand(nr int64, cmd uint32) []out {
	const somewhere = 1 << 20
	ranges, err := abi.Outputs(nil, nowhere{}, nr, [6]uint64{0, uint64(cmd), somewhere}, 0)
	if err != nil || len(ranges) != 1 {
		return nil
	}
	return []out{{how: fixed, arg: 2, size: uint32(ranges[0].Len)}}
}

// nowhere is memory of which there is none.
type nowhere struct{}

// ReadAt implements abi.Memory.
func (nowhere) ReadAt(uint64, []byte) int { return 0 }

// putRows writes the rows as agent.c has them.
func putRows(b []byte) {
	for nr, r := range tableOfRows() {
		at := b[rowSize*nr:]
		at[0], at[1], at[2], at[3] = byte(r.when), byte(len(r.outs)), r.arg, byte(r.waits)
		binary.LittleEndian.PutUint32(at[4:], r.val)
		for i, o := range r.outs {
			at := at[8+8*i:]
			at[0], at[1], at[2] = o.how, o.arg, o.of
			binary.LittleEndian.PutUint32(at[4:], o.size)
		}
	}
}

// Makes reports whether the agent may make calls with this number.
func Makes(nr uint64) bool { return nr < callCount && byNumber[nr].makes }

// WritesTo reports whether a call writes to a descriptor whose file must not be mapped, and which argument that is.
func WritesTo(nr int64) (arg int, writes bool) {
	if !Makes(uint64(nr)) {
		return 0, false
	}
	return int(byNumber[nr].descriptor), byNumber[nr].writes
}

// number is what is known of calls with a number.
type number struct {
	makes, writes bool
	descriptor    uint8 // the argument that it writes to
}

// byNumber says which calls have a row.
var byNumber = func() (list [rowCount]number) {
	for nr, r := range tableOfRows() {
		list[nr] = number{makes: r.when != never, writes: r.when == writes, descriptor: r.arg}
	}
	return list
}()
