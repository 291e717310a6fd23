package abi

// Which calls may wait for another thread or process. Where they then write is redirect.go's.

// MayBlock reports whether a call may wait for something that another thread of
// the program, or another program, does: it is then to run without the turn. An answer of
// true is only a possibility: whether a descriptor is a regular file, or does not
// wait, is for the caller to know. False is certain, for threads that only make
// calls in turn: waits for a disk and for locks inside the kernel end by themselves.
//
// Rows with a restart kind may block, but where a flag, a command or a time-out of 0
// says otherwise, and so does a parent whose child has its memory (vfork). clone3's
// flags are in memory: its caller looks there. A close that waits for a socket to be
// sent (SO_LINGER) counts as one that does not: the peer's kernel takes the bytes, or
// the linger time ends it. Numbers that the table does not have may block.
func MayBlock(nr int64, args [6]uint64) bool {
	s, known := Lookup(nr)
	if !known {
		return true
	}
	if f := mayBlock[nr]; f != nil {
		return f(args)
	}
	return s.Restart != RestartNone
}

// mayBlock has the rows whose arguments decide.
var mayBlock = map[int64]func(args [6]uint64) bool{
	SYS_POLL:        unlessNow(2),
	SYS_EPOLL_WAIT:  unlessNow(3),
	SYS_EPOLL_PWAIT: unlessNow(3),

	SYS_WAIT4:  unlessFlag(2, 1), // WNOHANG
	SYS_WAITID: unlessFlag(3, 1),

	SYS_RECVFROM: unlessFlag(3, msgDontwait),
	SYS_RECVMSG:  unlessFlag(2, msgDontwait),
	SYS_RECVMMSG: unlessFlag(3, msgDontwait),
	SYS_SENDTO:   unlessFlag(3, msgDontwait),
	SYS_SENDMSG:  unlessFlag(2, msgDontwait),
	SYS_SENDMMSG: unlessFlag(3, msgDontwait),

	SYS_MSGSND:    unlessFlag(3, ipcNowait),
	SYS_MSGRCV:    unlessFlag(4, ipcNowait),
	SYS_FLOCK:     unlessFlag(1, 4|8),        // LOCK_NB, LOCK_UN
	SYS_PREADV2:   unlessFlag(5, 8),          // RWF_NOWAIT
	SYS_PWRITEV2:  unlessFlag(5, 8),          // RWF_NOWAIT
	SYS_GETRANDOM: unlessFlag(2, 1),          // GRND_NONBLOCK
	SYS_OPEN:      unlessFlag(1, doesntWait), // A FIFO, or a file with a lease.
	SYS_OPENAT:    unlessFlag(2, doesntWait),

	SYS_SYSLOG: func(args [6]uint64) bool { return int32(args[0]) == 2 }, // SYSLOG_ACTION_READ
	SYS_FCNTL:  fcntlMayBlock,
	SYS_FUTEX:  func(args [6]uint64) bool { return futexWaits[args[1]&127] },
	SYS_IOCTL:  ioctlMayBlock,
	SYS_VFORK:  func([6]uint64) bool { return true },
	SYS_CLONE:  func(args [6]uint64) bool { return args[0]&CLONE_VFORK != 0 },
}

const (
	msgDontwait = 0x40  // MSG_DONTWAIT, include/linux/socket.h
	ipcNowait   = 0x800 // IPC_NOWAIT, linux/ipc.h
	doesntWait  = O_NONBLOCK | O_PATH
)

// unlessFlag is for calls that do not wait when argument i has one of the
// flags.
func unlessFlag(i int, flags uint64) func([6]uint64) bool {
	return func(args [6]uint64) bool { return args[i]&flags == 0 }
}

// unlessNow is for calls whose argument i is a time-out in milliseconds.
func unlessNow(i int) func([6]uint64) bool {
	return func(args [6]uint64) bool { return int32(args[i]) != 0 }
}

func fcntlMayBlock(args [6]uint64) bool {
	cmd := uint64(uint32(args[1]))
	_, known := setName("fcntl", cmd)
	return cmd == F_SETLKW || cmd == F_OFD_SETLKW || !known
}

// futexWaits has the operations that wait (linux/futex.h).
var futexWaits = map[uint64]bool{
	FUTEX_WAIT: true, FUTEX_WAIT_BITSET: true, FUTEX_LOCK_PI: true, FUTEX_LOCK_PI2: true, FUTEX_WAIT_REQUEUE_PI: true,
}

// ioctlWaits has the requests that wait: for a terminal's output to be
// taken, for its lines to change, for a console to become the one that is seen, for a call that a seccomp
// filter tells of.
var ioctlWaits = map[uint32]bool{
	0x5403: true, 0x5404: true, 0x5407: true, 0x5408: true, 0x5409: true, 0x5425: true, // TCSETSW, TCSETSF, TCSETAW, TCSETAF, TCSBRK, TCSBRKP
	0x402c542c: true, 0x402c542d: true, // TCSETSW2, TCSETSF2
	0x545c: true, 0x5607: true, // TIOCMIWAIT, VT_WAITACTIVE
	0xc0502100: true, // SECCOMP_IOCTL_NOTIF_RECV
}

func ioctlMayBlock(args [6]uint64) bool {
	req := uint32(args[1])
	_, known := ioctls[req]
	return ioctlWaits[req] || !known && !ioctlTrusted(req)
}
