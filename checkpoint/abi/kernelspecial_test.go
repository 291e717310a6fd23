//go:build linux && amd64

package abi

import (
	"slices"
)

// specialArgs has generators for calls whose arguments hang together in ways that
// a row does not say.
var specialArgs = map[int64]func(*gen, *[6]uint64){
	SYS_IOCTL:             specialIoctl,
	SYS_FCNTL:             specialFcntl,
	SYS_GETSOCKOPT:        specialSockopt,
	SYS_SETSOCKOPT:        specialSetsockopt,
	SYS_PRCTL:             specialPrctl,
	SYS_ARCH_PRCTL:        func(g *gen, a *[6]uint64) { a[0], a[1] = g.enum("arch_prctl"), g.out(8) },
	SYS_KEYCTL:            specialKeyctl,
	SYS_FUTEX:             specialFutex,
	SYS_SEMCTL:            specialSemctl,
	SYS_SHMCTL:            func(g *gen, a *[6]uint64) { a[0], a[1], a[2] = g.id(g.w.shm), g.ipcCommand(), g.out(120) },
	SYS_MSGCTL:            func(g *gen, a *[6]uint64) { a[0], a[1], a[2] = g.id(g.w.msg), g.ipcCommand(), g.out(120) },
	SYS_MSGRCV:            specialMsgrcv,
	SYS_MSGSND:            specialMsgsnd,
	SYS_CLONE:             specialClone,
	SYS_CLONE3:            specialClone3,
	SYS_PTRACE:            specialPtrace,
	SYS_WAIT4:             specialWait,
	SYS_WAITID:            specialWaitid,
	SYS_FUTEX_WAKE:        specialFutex2,
	SYS_FUTEX_WAIT:        specialFutex2,
	SYS_QUOTACTL:          specialQuota,
	SYS_NAME_TO_HANDLE_AT: specialHandle,
	SYS_STATMOUNT:         specialStatmount,
	SYS_LISTMOUNT:         specialListmount,
	SYS_LISTNS:            specialListmount,
	SYS_GETXATTRAT:        specialGetxattrat,
	SYS_FILE_GETATTR:      specialFileattr,
	SYS_PROCESS_VM_READV:  specialVMRead,
	SYS_MINCORE:           specialMincore,
	SYS_MOVE_PAGES:        specialMovePages,
	SYS_SYSFS:             func(g *gen, a *[6]uint64) { a[0], a[1], a[2] = uint64(g.r.IntN(4)), uint64(g.r.IntN(9)), g.out(64) },
	SYS_SYSLOG:            func(g *gen, a *[6]uint64) { a[0], a[1], a[2] = pick[uint64](g, 3, 9, 10), g.out(256), g.size() },
	SYS_SECCOMP:           func(g *gen, a *[6]uint64) { a[0], a[1], a[2] = pick[uint64](g, 2, 3, 3, 9), 0, g.out(16) },
	SYS_SELECT:            specialSelect,
	SYS_PSELECT6:          specialSelect,
	SYS_ADJTIMEX:          func(g *gen, a *[6]uint64) { a[0] = g.at(make([]byte, 208)) },
	SYS_CLOCK_ADJTIME:     func(g *gen, a *[6]uint64) { a[0], a[1] = g.enum("clock"), g.at(make([]byte, 208)) },
	SYS_KILL:              specialKill,
	SYS_TKILL:             specialKill,
	SYS_CLOSE:             specialClose,
	SYS_DUP2:              specialDup,
	SYS_DUP3:              specialDup,
	SYS_SETRLIMIT:         func(g *gen, a *[6]uint64) { a[0], a[1] = pick[uint64](g, 8, 10, 14), g.at(le(1<<20, 1<<20)) },
	SYS_PRLIMIT64:         specialPrlimit,
	SYS_GET_MEMPOLICY:     specialMempolicy,
}

// prepare has what is done before a call, so that there is something for it to do.
var prepare = map[int64]func(*gen){
	SYS_READ:            (*gen).send,
	SYS_READV:           (*gen).send,
	SYS_RECVFROM:        (*gen).send,
	SYS_RECVMSG:         (*gen).send,
	SYS_RECVMMSG:        (*gen).send,
	SYS_EPOLL_WAIT:      (*gen).send,
	SYS_EPOLL_PWAIT:     (*gen).send,
	SYS_ACCEPT:          (*gen).connect,
	SYS_ACCEPT4:         (*gen).connect,
	SYS_TIMER_SETTIME:   (*gen).timer,
	SYS_TIMER_GETTIME:   (*gen).timer,
	SYS_WAIT4:           (*gen).bear,
	SYS_WAITID:          (*gen).bear,
	SYS_PTRACE:          (*gen).attach,
	SYS_RT_SIGPENDING:   (*gen).signal,
	SYS_MSGRCV:          (*gen).message,
	SYS_RT_SIGTIMEDWAIT: (*gen).signal,
	SYS_MQ_TIMEDRECEIVE: func(g *gen) {
		_, _ = g.c.call(SYS_MQ_TIMEDSEND, argv(g.w.byKind["queue"], blockAddr(0), uint64(g.r.IntN(60)), 3, 0))
	},
}

// send puts data where the receiving calls find them, descriptors and errors too.
func (g *gen) send() {
	for _, kind := range []string{"stream peer", "datagram peer", "packets peer", "connected", "pipe's end", "eventfd", "terminal"} {
		if g.chance(50) {
			_, _ = g.c.call(SYS_WRITE, argv(g.w.byKind[kind], blockAddr(g.r.IntN(halfBlock)), uint64(g.r.IntN(200))))
		}
	}
	a := blockAddr(0)
	if g.chance(30) { // a descriptor, as control data
		g.c.put(a+512, append(le(20), le32(1, 1, uint32(g.w.byKind["file"]), 0)...))
		g.c.put(a+256, le(a+1024, 9))
		g.c.put(a, le(0, 0, a+256, 1, a+512, 24, 0))
		_, _ = g.c.call(SYS_SENDMSG, argv(g.w.byKind[pick(g, "stream peer", "datagram peer")], a, 0))
	}
	if g.chance(30) { // to itself, and to a port where nobody is
		g.c.put(a, inet(pick[uint16](g, 7001, 7001, 9)))
		_, _ = g.c.call(SYS_SENDTO, argv(g.w.byKind["udp"], blockAddr(1), uint64(g.r.IntN(300)), 0, a, 16))
	}
	if g.chance(30) { // netlink: a list of the interfaces
		g.c.put(a, append(le32(32, 18|0x301<<16, 1, 0), make([]byte, 16)...))
		_, _ = g.c.call(SYS_SENDTO, argv(g.w.byKind["route"], a, 32, 0, 0, 0))
	}
	if g.chance(20) {
		_, _ = g.c.call(SYS_MKDIR, argv(g.c.text(a, "dir/new"), 0o777))
		_, _ = g.c.call(SYS_RMDIR, argv(a))
	}
}

// connect has a connection wait to be accepted.
func (g *gen) connect() {
	fd, err := g.c.call(SYS_SOCKET, argv(2, 1|0o4000, 0))
	if err == nil && fd >= 0 {
		g.c.put(blockAddr(0), inet(7001))
		_, _ = g.c.call(SYS_CONNECT, argv(uint64(fd), blockAddr(0), 16))
	}
}

func (g *gen) timer() {
	_, _ = g.c.call(SYS_TIMER_CREATE, argv(1, 0, blockAddr(0)))
	_, _ = g.c.changes()
}

// bear makes a process that is killed at once, and can be waited for.
func (g *gen) bear() {
	if g.w.script == nil {
		_, _ = g.c.call(SYS_FORK, [6]uint64{})
	}
}

func (g *gen) attach() {
	_, _ = g.c.call(SYS_PTRACE, argv(PTRACE_ATTACH, g.w.other, 0, 0))
	_, _ = g.c.call(SYS_WAIT4, argv(g.w.other, 0, 0x40000000, 0))
}

// signal has a blocked signal wait.
func (g *gen) signal() {
	g.c.put(blockAddr(0), le(1<<9|1<<11))
	_, _ = g.c.call(SYS_RT_SIGPROCMASK, argv(0, blockAddr(0), 0, 8))
	_, _ = g.c.call(SYS_KILL, argv(uint64(g.c.inside), 10))
}

func (g *gen) message() {
	g.c.put(blockAddr(0), append(le(1+uint64(g.r.IntN(3))), g.bytes(64)...))
	_, _ = g.c.call(SYS_MSGSND, argv(g.w.msg, blockAddr(0), uint64(g.r.IntN(60)), 0x800))
}

func (g *gen) id(good uint64) uint64 {
	if g.chance(80) {
		return good
	}
	return g.number()
}

func (g *gen) ipcCommand() uint64 {
	return pick[uint64](g, 0, 1, 2, 3, 11, 12, 13, 14, 15, 18, 19, 20, 99) | pick[uint64](g, 0, 0, 0x100)
}

// requests are all ioctls of the table, in order.
var requests = func() (all []uint32) {
	for r := range ioctls {
		all = append(all, r)
	}
	slices.Sort(all)
	return all
}()

func specialIoctl(g *gen, a *[6]uint64) {
	req := pick(g, requests...)
	a[0], a[1] = g.fd(), uint64(req)
	switch {
	case req>>8 == 0x54 || req&0xff00 == 0x5400:
		if g.chance(70) {
			a[0] = g.w.byKind[pick(g, "terminal", "terminal's end")]
		}
	case req>>8 == 0x89:
		a[0] = g.socket()
	}
	if g.chance(8) { // one of a driver that is trusted, or of nobody's
		a[1] = pick[uint64](g, 0x80404506, 0xc048ff0b, 0x8008b70a, 0xc0106442, 0x80000000|uint64(g.r.Uint32()))
	}
	content := g.bytes(pick(g, 8, 64, 256))
	switch {
	case req == 0x8912: // SIOCGIFCONF
		content = le(pick[uint64](g, 0, 40, 80, 200, ^uint64(0)), g.out(200))
	case req>>8 == 0x89 && g.chance(80):
		content = append([]byte(pick(g, "lo", "lo", "nosuch")), make([]byte, 60)...)
		content[16] = byte(g.r.IntN(2))
	case req == 0xc020660b: // FIEMAP
		content = append(le(0, 1<<40), append(le32(0, 0, uint32(g.r.IntN(4)), 0), make([]byte, 300)...)...)
	case req == 0xc0189436:
		content = append(le(0, 4096, uint64(g.r.IntN(3))), append(le(g.w.byKind["memfd"], 0, 0, 0), make([]byte, 64)...)...)
	}
	a[2] = g.at(content)
	if g.chance(10) {
		a[2] = g.number()
	}
}

func specialFcntl(g *gen, a *[6]uint64) {
	a[0], a[1], a[2] = g.fd(), g.enum("fcntl"), g.number()
	if g.chance(60) { // struct flock, f_owner_ex or delegation
		a[2] = g.at(append([]byte{byte(g.r.IntN(3)), 0, byte(g.r.IntN(3)), 0, 0, 0, 0, 0}, le(0, uint64(g.r.IntN(100)), 0)...))
	}
}

func specialSockopt(g *gen, a *[6]uint64) {
	if !g.bad() {
		of := pick(g, sockopts...)
		a[0], a[1], a[2] = g.w.byKind[of.kind], of.level, uint64(g.r.IntN(of.last+1))
		a[3], a[4] = g.out(pick(g, 4, 8, 64, 1000)), g.at(le32(pick[uint32](g, 0, 1, 3, 4, 4, 8, 16, 64, 256, 1000)))
		return
	}
	a[0] = g.socket()
	a[1] = pick[uint64](g, 0, 1, 1, 1, 6, 6, 17, 41, 58, 132, 255, 263, 270, 279, 280, 282, 283, 284, 40, g.number())
	a[2] = pick(g, uint64(g.r.IntN(80)), uint64(g.r.IntN(30)), uint64(64+g.r.IntN(6)), uint64(g.r.IntN(140)))
	a[3] = g.out(pick(g, 4, 8, 64, 1000))
	a[4] = g.at(le32(pick[uint32](g, 0, 1, 2, 3, 4, 8, 12, 16, 20, 36, 64, 104, 192, 256, 1000, ^uint32(0), 1<<31)))
}

// sockopts has the levels that a sort of socket knows, and their last option.
var sockopts = []struct {
	kind  string
	level uint64
	last  int
}{
	{"connected", 1, 85}, {"datagram", 1, 85}, {"stream", 1, 85}, {"udp", 1, 85}, {"packet", 1, 85}, {"listening", 1, 85},
	{"connected", 6, 48}, {"accepted", 6, 48}, {"connected", 0, 53}, {"udp", 0, 53}, {"raw", 0, 133}, {"udp6", 41, 90}, {"raw6", 41, 90},
	{"tcp6", 41, 90}, {"udp", 17, 110}, {"udplite", 136, 20}, {"raw", 255, 3}, {"raw6", 255, 8}, {"raw6", 58, 3}, {"packet", 263, 25},
	{"route", 270, 15}, {"xdp", 283, 9}, {"vsock", 40, 9}, {"mptcp", 284, 5}, {"mptcp", 6, 48}, {"accepted", 282, 5},
}

func specialSetsockopt(g *gen, a *[6]uint64) {
	specialSockopt(g, a)
	a[3], a[4] = g.out(256), uint64(pick(g, 0, 1, 4, 8, 16, 64, 200))
	if g.chance(70) {
		a[3], a[4] = g.at(append(le32(uint32(g.r.IntN(3))), make([]byte, 60)...)), 4
	}
}

func specialPrctl(g *gen, a *[6]uint64) {
	a[0] = g.enum("prctl")
	for i := 1; i < 5; i++ {
		a[i] = pick[uint64](g, 0, 0, 0, 1, 2, g.number())
	}
	if g.chance(75) {
		a[1+g.r.IntN(2)] = g.out(16)
	}
	switch a[0] {
	case PR_GET_AUXV:
		a[1], a[2], a[3], a[4] = g.out(400), g.size(), 0, 0
	case PR_SCHED_CORE:
		a[1], a[2], a[3], a[4] = uint64(g.r.IntN(4)), 0, uint64(g.r.IntN(3)), g.out(8)
	case PR_SET_MM:
		a[1], a[2] = prSetMMMapSize, g.out(4)
	case PR_SET_SECCOMP, PR_SET_TSC, PR_SET_NO_NEW_PRIVS:
		a[1] = 0
	}
}

func specialKeyctl(g *gen, a *[6]uint64) {
	ring := func() uint64 {
		return pick[uint64](g, ^uint64(0), ^uint64(1), ^uint64(2), ^uint64(3), ^uint64(4), g.number())
	}
	a[0], a[1], a[2], a[3], a[4] = g.enum("keyctl"), ring(), g.out(64), g.size(), g.number()
	switch a[0] {
	case 10: // SEARCH
		a[2], a[3], a[4] = g.str(), g.str(), 0
	case 23: // DH_COMPUTE
		a[1], a[4] = g.at(le32(uint32(g.r.IntN(9)), 2, 3, 0)), 0
	case 24, 25, 26, 27, 28:
		if a[0] != 24 {
			a[1] = g.at(le32(uint32(ring()), 16, 32, 0, 0, 0, 0, 0, 0))
		}
		a[2], a[3], a[4] = g.str(), g.out(32), g.out(64)
	case 31:
		a[1], a[2] = g.out(16), g.size()
	}
}

func specialFutex(g *gen, a *[6]uint64) {
	word := g.at(le32(pick[uint32](g, 0, 1, uint32(g.c.inside), 1<<30), 0))
	a[0], a[1], a[2] = word, uint64(g.r.IntN(15))|pick[uint64](g, 0, 128, 256), pick[uint64](g, 0, 1, g.number())
	a[3], a[4], a[5] = g.at(g.timespec()), g.at(le32(0, 0)), pick[uint64](g, 0, 0x10001000, g.number())
	if g.chance(30) {
		a[3] = uint64(g.r.IntN(3))
	}
}

func specialSemctl(g *gen, a *[6]uint64) {
	a[0], a[1], a[2] = g.id(g.w.sem), uint64(g.r.IntN(6)), pick[uint64](g, 13, 17, g.ipcCommand(), 16, 14)
	a[3] = g.out(200)
}

func specialMsgrcv(g *gen, a *[6]uint64) {
	a[0], a[1], a[2] = g.id(g.w.msg), g.out(72), pick[uint64](g, 0, 5, 64, g.number())
	a[3], a[4] = pick[uint64](g, 0, 1, ^uint64(0)), pick[uint64](g, 0x800, 0x1800, 0x4800, 0x5800|0x2000)
}

func specialMsgsnd(g *gen, a *[6]uint64) {
	a[0], a[1], a[2], a[3] = g.id(g.w.msg), g.at(append(le(1), g.bytes(64)...)), pick[uint64](g, 0, 5, 64, g.number()), 0x800
}

func specialClone(g *gen, a *[6]uint64) {
	a[0] = g.flags("clone") | g.flags("clone") | pick[uint64](g, 0, 17)
	a[0] &^= 0x800000 // CLONE_UNTRACED: nobody would end it
	a[1], a[2], a[3], a[4] = 0, g.out(4), g.out(4), g.number()
}

func specialClone3(g *gen, a *[6]uint64) {
	flags := (g.flags("clone") | g.flags("clone")) &^ (0x800000 | 0xff)
	b := le(flags, g.out(4), g.out(4), g.out(4), pick[uint64](g, 0, 17), 0, 0, 0, 0, 0, 0)
	a[0], a[1] = g.at(b), pick[uint64](g, 64, 80, 88, 88, 88, 96, g.number())
}

// specialPtrace traces the world's other process: it is attached to first.
func specialPtrace(g *gen, a *[6]uint64) {
	a[0], a[1], a[2], a[3] = g.enum("ptrace"), g.w.other, pick[uint64](g, 0, 1, 2, 8, 16, 64, g.number()), g.out(512)
	switch a[0] {
	case PTRACE_TRACEME: // its tracer is the fuzzer
		a[0] = PTRACE_GETREGS
	case PTRACE_PEEKDATA, PTRACE_PEEKTEXT:
		a[2] = childCode
	case PTRACE_GETREGSET:
		a[2], a[3] = pick[uint64](g, 1, 2, 0x202, 7), g.at(le(g.out(700), pick[uint64](g, 0, 8, 216, 512, 700)))
	case PTRACE_PEEKSIGINFO:
		a[2] = g.at(append(le(0), le32(uint32(g.r.IntN(2)), uint32(g.r.IntN(3)))...))
	case PTRACE_ARCH_PRCTL:
		a[2], a[3] = g.out(8), g.enum("arch_prctl")
	case PTRACE_CONT, PTRACE_SYSCALL, PTRACE_DETACH, PTRACE_KILL, PTRACE_SINGLESTEP, PTRACE_SINGLEBLOCK, PTRACE_SYSEMU,
		PTRACE_SYSEMU_SINGLESTEP, PTRACE_SETREGS, PTRACE_SETREGSET:
		if g.chance(80) { // it would run, and die
			a[0] = PTRACE_GETSIGMASK
			a[2] = 8
		}
	}
}

func specialWait(g *gen, a *[6]uint64) {
	a[0], a[1], a[2], a[3] = ^uint64(0), g.out(4), pick[uint64](g, 0, 1, 0x40000000, g.number()), g.out(144)
}

func specialWaitid(g *gen, a *[6]uint64) {
	a[0], a[1], a[2] = uint64(g.r.IntN(5)), pick(g, 0, g.w.other, g.w.byKind["pidfd"], 99, g.number()), g.out(128)
	a[3], a[4] = pick[uint64](g, 4, 4|1, 4|0x1000000, 0x4000000e, 0, g.number()), g.out(144)
}

func specialFutex2(g *gen, a *[6]uint64) {
	a[0], a[1], a[2] = g.at(le32(0, 0)), pick[uint64](g, 0, 1), pick[uint64](g, 1, ^uint64(0)>>32)
	a[3], a[4], a[5] = pick[uint64](g, 2, 2|128, g.number()), g.at(g.timespec()), 1
}

func specialQuota(g *gen, a *[6]uint64) {
	a[0] = pick[uint64](g, 0x800001, 0x800004, 0x800005, 0x800007, 0x800009, 'X'<<8+3, 'X'<<8+5, 'X'<<8+8)<<8 | uint64(g.r.IntN(3))
	a[1], a[2], a[3] = g.path(), uint64(g.r.IntN(3)), g.out(160)
}

func specialHandle(g *gen, a *[6]uint64) {
	a[0], a[1] = ^uint64(99), g.path()
	a[2], a[3] = g.at(append(le32(pick[uint32](g, 0, 8, 12, 20, 128, 129, ^uint32(0)), 0), make([]byte, 128)...)), g.out(8)
	a[4] = pick[uint64](g, 0, 1, 2, 0x200, 0x400, 0x1000)
}

func specialStatmount(g *gen, a *[6]uint64) {
	size := pick[uint32](g, 24, 32, 16, 40)
	a[0] = g.at(append(le32(size, 0), le(pick[uint64](g, 1, g.number(), ^uint64(0)), pick[uint64](g, 0x1ff, 1, 0xffff, g.number()), 0, 0)...))
	a[1], a[2], a[3] = g.out(1000), pick[uint64](g, 512, 1000, 100, 0, g.number()), pick[uint64](g, 0, 0, g.number())
	if g.chance(60) { // the root's own mount
		var b [256]byte
		g.c.put(blockAddr(1), append([]byte("/t"), 0))
		if ret, err := g.c.call(SYS_STATX, argv(^uint64(99), blockAddr(1), 0, 0x5000, blockAddr(2))); err == nil && ret == 0 {
			g.c.ReadAt(blockAddr(2), b[:])
			a[0] = g.at(append(le32(24, 0), append(slices.Clone(b[0x90:0x98]), le(0x1ff)...)...))
		}
		_, _ = g.c.changes()
	}
}

func specialListmount(g *gen, a *[6]uint64) {
	a[0] = g.at(append(le32(pick[uint32](g, 24, 32), 0), le(pick[uint64](g, ^uint64(0), g.number()), 0, 0)...))
	a[1], a[2], a[3] = g.out(128), pick[uint64](g, 0, 1, 2, 16, g.number()), pick[uint64](g, 0, 1, g.number())
}

func specialGetxattrat(g *gen, a *[6]uint64) {
	n := pick[uint32](g, 0, 3, 5, 100, 70000)
	a[0], a[1], a[2], a[3] = ^uint64(99), g.path(), 0, g.str()
	a[4], a[5] = g.at(append(le(g.out(100)), le32(n, 0)...)), pick[uint64](g, 16, 16, 8, 24)
}

func specialFileattr(g *gen, a *[6]uint64) {
	a[0], a[1], a[2], a[3], a[4] = ^uint64(99), g.path(), g.out(64), pick[uint64](g, 24, 32, 64, 20, 4096), 0
}

func specialVMRead(g *gen, a *[6]uint64) {
	a[0], a[1], a[2] = pick(g, uint64(g.c.inside), g.w.other, 1), g.at(g.iov(2)), pick[uint64](g, 1, 2)
	a[3], a[4] = g.at(le(childCode, 100, blockAddr(g.r.IntN(numBlocks))+4000, 4096)), pick[uint64](g, 1, 2)
}

func specialMincore(g *gen, a *[6]uint64) {
	a[0], a[1], a[2] = blockAddr(g.r.IntN(numBlocks)), pick[uint64](g, 0, 1, 4096, 8192, 12288, 1<<20, g.number()), g.out(8)
}

func specialMovePages(g *gen, a *[6]uint64) {
	a[0], a[1] = pick(g, 0, uint64(g.c.inside)), uint64(g.r.IntN(4))
	a[2], a[4] = g.at(le(blockAddr(0), childCode, 0, blockAddr(3)+blockSize)), g.out(16)
	if g.chance(30) {
		a[3] = g.at(le32(0, 0, 1, 2))
	}
}

func specialSelect(g *gen, a *[6]uint64) {
	bits := func() uint64 { return g.at(le(g.r.Uint64(), g.r.Uint64()&g.r.Uint64(), 0, 0)) }
	a[0] = pick[uint64](g, 0, 1, 8, 63, 64, 65, 128, 200, g.number())
	a[1], a[2], a[3], a[4] = bits(), bits(), bits(), g.at(g.timespec())
	if g.chance(40) {
		a[5] = g.at(le(g.at(le(0)), 8))
	}
}

func specialKill(g *gen, a *[6]uint64) {
	a[0], a[1] = pick(g, uint64(g.c.inside), 99999), pick[uint64](g, 0, 10, 23, 28, 64, 65)
}

// specialClose closes what other calls of the batch do not need.
func specialClose(g *gen, a *[6]uint64) { a[0] = pick[uint64](g, 150, 200, ^uint64(0), 1<<31) }

func specialDup(g *gen, a *[6]uint64) {
	a[0], a[1], a[2] = g.fd(), pick[uint64](g, 150, 151, g.fd()), g.flags("fdcreate")
	if slices.Contains(g.w.fds[:len(g.w.fds)-badFDs], a[1]) {
		a[1] = 150
	}
}

func specialPrlimit(g *gen, a *[6]uint64) {
	a[0], a[1], a[2], a[3] = g.pid(), uint64(g.r.IntN(17)), 0, g.out(16)
}

func specialMempolicy(g *gen, a *[6]uint64) {
	a[0], a[1], a[2] = g.out(4), g.out(64), pick[uint64](g, 0, 1, 64, 65, 1024, 1<<15, g.number())
	a[3], a[4] = pick(g, 0, blockAddr(0)), uint64(g.r.IntN(5))
}
