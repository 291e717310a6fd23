package replay

import (
	"encoding/binary"
	"time"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay/mem"
)

// The model of the kernel in a diversion. It holds what printf, malloc and their
// like need: the process writes to its terminal, has memory, knows who it is and
// what time it was. No call reaches the machine that replays; a call that is not
// listed gets ENOSYS, and the user sees its name.

// systemCalls holds the calls that a diversion answers, by number. A function
// returns what RAX becomes: a result, or a negated errno. It may set d.stop to
// end the run, or d.failed where the recording lacks what the call needs.
var systemCalls map[int64]func(d *Diversion, a [6]uint64) int64

func init() { // not a literal: some of them refer to d.systemCall
	systemCalls = map[int64]func(d *Diversion, a [6]uint64) int64{
		abi.SYS_WRITE:  (*Diversion).sysWrite,
		abi.SYS_WRITEV: (*Diversion).sysWritev,
		abi.SYS_FSTAT:  func(d *Diversion, a [6]uint64) int64 { return d.sysFstat(int32(a[0]), a[1]) },
		abi.SYS_NEWFSTATAT: func(d *Diversion, a [6]uint64) int64 {
			const emptyPath = 0x1000 // AT_EMPTY_PATH, fcntl.h
			if a[3]&emptyPath == 0 {
				return -int64(abi.ENOSYS)
			}
			return d.sysFstat(int32(a[0]), a[2])
		},
		abi.SYS_IOCTL: (*Diversion).sysIoctl,
		abi.SYS_LSEEK: func(d *Diversion, a [6]uint64) int64 {
			if d.isOutput(int32(a[0])) {
				return -int64(abi.ESPIPE)
			}
			return -int64(abi.EBADF)
		},

		abi.SYS_BRK:      (*Diversion).sysBrk,
		abi.SYS_MMAP:     (*Diversion).sysMmap,
		abi.SYS_MUNMAP:   (*Diversion).sysMunmap,
		abi.SYS_MPROTECT: (*Diversion).sysMprotect,
		abi.SYS_MREMAP:   (*Diversion).sysMremap,
		abi.SYS_MADVISE:  (*Diversion).sysMadvise,

		abi.SYS_GETPID:  func(d *Diversion, _ [6]uint64) int64 { return int64(d.pid) },
		abi.SYS_GETTID:  func(d *Diversion, _ [6]uint64) int64 { return int64(d.tid) },
		abi.SYS_GETUID:  func(d *Diversion, _ [6]uint64) int64 { return d.auxv(abi.AT_UID) },
		abi.SYS_GETEUID: func(d *Diversion, _ [6]uint64) int64 { return d.auxv(abi.AT_EUID) },
		abi.SYS_GETGID:  func(d *Diversion, _ [6]uint64) int64 { return d.auxv(abi.AT_GID) },
		abi.SYS_GETEGID: func(d *Diversion, _ [6]uint64) int64 { return d.auxv(abi.AT_EGID) },
		abi.SYS_GETCPU: func(d *Diversion, a [6]uint64) int64 {
			return first(d.storeIf(a[0], make([]byte, 4)), d.storeIf(a[1], make([]byte, 4)))
		},
		abi.SYS_GETRANDOM: (*Diversion).sysGetrandom,

		abi.SYS_CLOCK_GETTIME: func(d *Diversion, a [6]uint64) int64 { return d.store(a[1], d.clock(int32(a[0]))) },
		abi.SYS_CLOCK_GETRES: func(d *Diversion, a [6]uint64) int64 {
			return d.storeIf(a[1], timespec(0, 1))
		},
		abi.SYS_GETTIMEOFDAY: func(d *Diversion, a [6]uint64) int64 {
			t := d.clock(abi.CLOCK_REALTIME)
			binary.LittleEndian.PutUint64(t[8:], binary.LittleEndian.Uint64(t[8:])/1000)
			return first(d.storeIf(a[0], t), d.storeIf(a[1], make([]byte, 8)))
		},
		abi.SYS_TIME: func(d *Diversion, a [6]uint64) int64 {
			t := d.clock(abi.CLOCK_REALTIME)
			if e := d.storeIf(a[0], t[:8]); e != 0 {
				return e
			}
			return int64(binary.LittleEndian.Uint64(t))
		},
		abi.SYS_NANOSLEEP:       func(*Diversion, [6]uint64) int64 { return 0 },
		abi.SYS_CLOCK_NANOSLEEP: func(*Diversion, [6]uint64) int64 { return 0 },
		abi.SYS_SCHED_YIELD:     func(*Diversion, [6]uint64) int64 { return 0 },

		abi.SYS_RT_SIGPROCMASK: (*Diversion).sysSigprocmask,
		abi.SYS_RT_SIGACTION: func(d *Diversion, a [6]uint64) int64 {
			return d.storeIf(a[2], make([]byte, 32)) // struct kernel_sigaction: SIG_DFL
		},
		abi.SYS_FUTEX: (*Diversion).sysFutex,
		abi.SYS_KILL: func(d *Diversion, a [6]uint64) int64 {
			return d.kill(int32(a[0]) == d.pid, a[1], abi.SI_USER)
		},
		abi.SYS_TKILL: func(d *Diversion, a [6]uint64) int64 {
			return d.kill(checkpoint.TID(a[0]) == d.tid, a[1], abi.SI_TKILL)
		},
		abi.SYS_TGKILL: func(d *Diversion, a [6]uint64) int64 {
			return d.kill(checkpoint.TID(a[1]) == d.tid, a[2], abi.SI_TKILL)
		},
		abi.SYS_EXIT:       (*Diversion).sysExit,
		abi.SYS_EXIT_GROUP: (*Diversion).sysExit,
	}
}

// first returns the first result that is not 0.
func first(results ...int64) int64 {
	for _, r := range results {
		if r != 0 {
			return r
		}
	}
	return 0
}

// load reads n bytes for a system call. It returns a negated errno for memory
// that the program cannot read.
func (d *Diversion) load(a, n uint64) ([]byte, int64) {
	b := make([]byte, n)
	switch f := d.memory(a).Read(a, b); f.Kind {
	case mem.FaultNone:
		return b, 0
	case mem.FaultNotCaptured:
		if d.supply(f.Addr) {
			return d.load(a, n)
		}
		d.failed = d.notCaptured(f.Addr)
		return nil, 0
	default:
		return nil, -int64(abi.EFAULT)
	}
}

// store writes a system call's output: 0 or -EFAULT.
func (d *Diversion) store(a uint64, b []byte) int64 {
	space := d.memory(a)
	f := space.Write(a, b)
	if f.Kind == mem.FaultNotMapped && space.Grow(f.Addr, stackLimit) {
		f = space.Write(a, b)
	}
	if f.Kind != mem.FaultNone {
		return -int64(abi.EFAULT)
	}
	return 0
}

// storeIf is store where a is not NULL.
func (d *Diversion) storeIf(a uint64, b []byte) int64 {
	if a == 0 {
		return 0
	}
	return d.store(a, b)
}

// maxWrite bounds what one write is taken of, in bytes.
const maxWrite = 1 << 20

// isOutput reports whether what is written to fd is for the user to see: the
// standard output and error, and what the interval's log knows as a terminal, a
// pipe, or a copy of these.
func (d *Diversion) isOutput(fd int32) bool {
	return fd == 1 || fd == 2 || d.isTerminal(fd) || d.isPipe(fd)
}

// tcgets is the ioctl by which isatty asks (asm-generic/ioctls.h).
const tcgets = 0x5401

// isTerminal reports whether the log has an answer of a terminal at fd.
func (d *Diversion) isTerminal(fd int32) bool {
	return d.logged(func(enter, exit *checkpoint.Event) bool {
		return enter.NR == abi.SYS_IOCTL && int32(enter.Args[0]) == fd && uint32(enter.Args[1]) == tcgets && exit.Result == 0
	})
}

// isPipe reports whether the log has a call that made fd a pipe's end.
func (d *Diversion) isPipe(fd int32) bool {
	return d.logged(func(enter, exit *checkpoint.Event) bool {
		switch enter.NR {
		case abi.SYS_PIPE, abi.SYS_PIPE2:
			for _, w := range exit.Writes {
				if len(w.Data) == 8 && (holds(w.Data, fd) || holds(w.Data[4:], fd)) {
					return exit.Result == 0
				}
			}
		case abi.SYS_DUP, abi.SYS_DUP2, abi.SYS_DUP3:
			return int32(exit.Result) == fd && (int32(enter.Args[0]) == 1 || int32(enter.Args[0]) == 2)
		}
		return false
	})
}

func holds(b []byte, fd int32) bool { return int32(binary.LittleEndian.Uint32(b)) == fd }

// logged reports whether f holds of a call of the interval before the copy was
// made.
func (d *Diversion) logged(f func(enter, exit *checkpoint.Event) bool) bool {
	var enter *checkpoint.Event
	for i := range d.events {
		switch e := &d.events[i]; {
		case e.Kind == checkpoint.EventEnter:
			enter = e
		case e.Kind == checkpoint.EventExit && enter != nil:
			if f(enter, e) {
				return true
			}
			enter = nil
		}
	}
	return false
}

func (d *Diversion) sysWrite(a [6]uint64) int64 {
	if !d.isOutput(int32(a[0])) {
		return -int64(abi.EBADF)
	}
	b, e := d.load(a[1], min(a[2], maxWrite))
	if e != 0 {
		return e
	}
	d.print(b)
	return int64(len(b))
}

func (d *Diversion) sysWritev(a [6]uint64) int64 {
	const maxVectors = 1024 // UIO_MAXIOV, linux/uio.h
	if !d.isOutput(int32(a[0])) {
		return -int64(abi.EBADF)
	}
	if a[2] > maxVectors {
		return -int64(abi.EINVAL)
	}
	vecs, e := d.load(a[1], a[2]*16)
	if e != 0 || d.failed != nil {
		return e
	}
	var all []byte
	for ; len(vecs) >= 16 && len(all) < maxWrite; vecs = vecs[16:] {
		at, n := binary.LittleEndian.Uint64(vecs), binary.LittleEndian.Uint64(vecs[8:])
		b, e := d.load(at, min(n, uint64(maxWrite-len(all))))
		if e != 0 || d.failed != nil {
			return e
		}
		all = append(all, b...)
	}
	d.print(all)
	return int64(len(all))
}

// sysFstat describes an output as a terminal, so that programs flush each line
// (struct stat: asm/stat.h).
func (d *Diversion) sysFstat(fd int32, at uint64) int64 {
	if !d.isOutput(fd) {
		return -int64(abi.EBADF)
	}
	b := make([]byte, 144)
	le := binary.LittleEndian
	le.PutUint64(b, 0x19)         // st_dev
	le.PutUint64(b[8:], 3)        // st_ino
	le.PutUint64(b[16:], 1)       // st_nlink
	le.PutUint32(b[24:], 0o20620) // st_mode: S_IFCHR
	le.PutUint32(b[28:], uint32(d.auxv(abi.AT_UID)))
	le.PutUint64(b[40:], 136<<8) // st_rdev: /dev/pts/0
	le.PutUint64(b[56:], 1024)   // st_blksize
	return d.store(at, b)
}

// sysIoctl answers TCGETS for a terminal as it is after login: struct termios of
// asm-generic/termbits.h, icrnl, opost and onlcr, 38400 baud, isig, icanon and echo.
func (d *Diversion) sysIoctl(a [6]uint64) int64 {
	if !d.isOutput(int32(a[0])) || uint32(a[1]) != tcgets {
		return -int64(abi.ENOTTY)
	}
	b := make([]byte, 36)
	for i, v := range [4]uint32{0o400, 0o5, 0o277, 0o105073} {
		binary.LittleEndian.PutUint32(b[4*i:], v)
	}
	return d.store(a[2], b)
}

// auxv returns an entry of the auxiliary vector, 0 when it is not there.
func (d *Diversion) auxv(tag uint64) int64 {
	p, _ := d.s.Rec.Process(d.pid)
	for _, e := range abi.ParseAuxv(p.Auxv) {
		if e.Type == tag {
			return int64(e.Value)
		}
	}
	return 0
}

// sysGetrandom gives bytes that look random and are the same in every diversion
// (xorshift64*).
func (d *Diversion) sysGetrandom(a [6]uint64) int64 {
	b := make([]byte, min(a[1], 256))
	if d.random == 0 {
		d.random = 0x9e3779b97f4a7c15
	}
	for i := range b {
		d.random ^= d.random >> 12
		d.random ^= d.random << 25
		d.random ^= d.random >> 27
		b[i] = byte(d.random * 0x2545f4914f6cdd1d >> 56)
	}
	if e := d.store(a[0], b); e != 0 {
		return e
	}
	return int64(len(b))
}

func timespec(sec, nsec int64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(sec))
	return binary.LittleEndian.AppendUint64(b, uint64(nsec))
}

// clock returns the time of a clock, a timespec: what the program saw last,
// or else when the recording began, an hour after the machine did.
func (d *Diversion) clock(id int32) []byte {
	var last []byte
	d.logged(func(enter, exit *checkpoint.Event) bool {
		if enter.NR == abi.SYS_CLOCK_GETTIME && int32(enter.Args[0]) == id && exit.Result == 0 && len(exit.Writes) == 1 && len(exit.Writes[0].Data) == 16 {
			last = exit.Writes[0].Data
		}
		return false
	})
	if last != nil {
		return append([]byte(nil), last...)
	}
	switch id {
	case abi.CLOCK_REALTIME, abi.CLOCK_REALTIME_COARSE, abi.CLOCK_TAI, abi.CLOCK_REALTIME_ALARM:
		t := d.s.Rec.Manifest().Start
		return timespec(t.Unix(), int64(t.Nanosecond()))
	case abi.CLOCK_PROCESS_CPUTIME_ID, abi.CLOCK_THREAD_CPUTIME_ID:
		return timespec(1, 0)
	}
	return timespec(int64(time.Hour/time.Second), 0)
}

// sysSigprocmask keeps the mask; nothing is ever blocked by it, for no signal
// comes.
func (d *Diversion) sysSigprocmask(a [6]uint64) int64 {
	old := d.mask
	if a[1] != 0 {
		b, e := d.load(a[1], 8)
		if e != 0 || d.failed != nil {
			return e
		}
		v := binary.LittleEndian.Uint64(b)
		switch int32(a[0]) {
		case abi.SIG_BLOCK:
			d.mask |= v
		case abi.SIG_UNBLOCK:
			d.mask &^= v
		case abi.SIG_SETMASK:
			d.mask = v
		default:
			return -int64(abi.EINVAL)
		}
	}
	return d.storeIf(a[2], binary.LittleEndian.AppendUint64(nil, old))
}

// sysFutex wakes nobody. To wait is to wait for ever, because no other thread
// runs: the diversion stops there.
func (d *Diversion) sysFutex(a [6]uint64) int64 {
	const command = 0x7f // FUTEX_CMD_MASK without FUTEX_PRIVATE_FLAG
	switch a[1] & command {
	case abi.FUTEX_WAKE, abi.FUTEX_WAKE_BITSET:
		return 0
	case abi.FUTEX_WAIT, abi.FUTEX_WAIT_BITSET:
		b, e := d.load(a[0], 4)
		if e != 0 || d.failed != nil {
			return e
		}
		if binary.LittleEndian.Uint32(b) != uint32(a[2]) {
			return -int64(abi.EAGAIN)
		}
		d.failed = d.cannot("it waits for another thread, or for a lock that is held here, and no other thread runs in it")
	}
	return -int64(abi.ENOSYS)
}

// kill is a signal that the program sends itself, as abort and raise do.
func (d *Diversion) kill(self bool, signo uint64, code int32) int64 {
	if !self {
		return -int64(abi.ESRCH)
	}
	if signo != 0 {
		d.signal(abi.Signal(signo), code, uint64(uint32(d.pid)))
	}
	return 0
}

func (d *Diversion) sysExit(a [6]uint64) int64 {
	d.stop = &DiversionStop{Reason: StopEnd, Code: int(a[0] & 0xff)}
	return 0
}
