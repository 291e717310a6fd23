//go:build linux && amd64

package abi

import (
	"math/rand/v2"
	"strings"
)

// gen makes arguments for the fuzzer's calls, and the memory they point to. All
// that one call points to lies in blocks of its own, so that no output overlaps
// what tells where it is.
type gen struct {
	r    *rand.Rand
	w    *world
	c    *child
	next int  // the next free block
	wild int  // percent of the arguments of this call that are no good
	half bool // this call has a pointer to the block that becomes read-only
}

func newGen(r *rand.Rand, w *world, c *child) *gen { return &gen{r: r, w: w, c: c} }

// bad reports whether the next argument is to be a wrong one.
func (g *gen) bad() bool { return g.chance(g.wild) }

func (g *gen) chance(percent int) bool { return g.r.IntN(100) < percent }

func pick[T any](g *gen, list ...T) T { return list[g.r.IntN(len(list))] }

// bytes returns n bytes of noise, now and then all the same.
func (g *gen) bytes(n int) []byte {
	b := make([]byte, n)
	switch g.r.IntN(4) {
	case 0: // zero
	case 1:
		for i := range b {
			b[i] = 0xff
		}
	default:
		for i := range b {
			b[i] = byte(g.r.Uint32())
		}
	}
	return b
}

// block gives a new block noise for content.
func (g *gen) block() int {
	i := g.next % halfBlock
	g.next++
	g.c.fill(blockAddr(i), g.r.Uint64())
	return i
}

// at returns the address of memory that holds b, mostly a good one.
func (g *gen) at(b []byte) uint64 {
	n := uint64(len(b))
	if !g.bad() || n > PageSize {
		i := g.block()
		off := uint64(0)
		switch {
		case n > PageSize:
			b = b[:min(n, blockSize)]
		case g.chance(20): // ends where the block ends
			off = blockSize - n
		case g.chance(10): // not aligned
			off = 1 + uint64(g.r.IntN(1000))
		default:
			off = uint64(g.r.IntN(128)) * 8
		}
		g.c.put(blockAddr(i)+off, b)
		return blockAddr(i) + off
	}
	cut := uint64(0) // bytes of b that are there
	if n > 0 {
		cut = uint64(g.r.IntN(int(n)))
	}
	switch g.r.IntN(8) {
	case 0, 1: // ends too soon
		i := g.block()
		g.c.put(blockAddr(i)+blockSize-cut, b[:cut])
		return blockAddr(i) + blockSize - cut
	case 2: // becomes read-only
		if g.half {
			return 0
		}
		g.half = true
		g.c.put(blockAddr(halfBlock)+PageSize-cut, b)
		return blockAddr(halfBlock) + PageSize - cut
	case 3: // is read-only
		g.c.put(blockAddr(readBlock)+64, b)
		return blockAddr(readBlock) + 64
	case 4:
		return pick[uint64](g, TaskSize-8, 1<<63, ^uint64(0), 1, 0xffffffffff600000, blockAddr(3)+blockSize, arenaBase-8)
	default:
		return 0
	}
}

// out returns the address of room for n bytes.
func (g *gen) out(n int) uint64 { return g.at(g.bytes(n)) }

// number returns a small, an odd or an extreme number.
func (g *gen) number() uint64 {
	switch g.r.IntN(8) {
	case 0:
		return 0
	case 1:
		return uint64(g.r.IntN(16))
	case 2:
		return pick[uint64](g, 4, 8, 12, 16, 24, 28, 32, 56, 64, 88, 100, 104, 110, 112, 128, 144, 256)
	case 3:
		return pick[uint64](g, 4095, 4096, 4097, 8192, 1<<16, 1<<20)
	case 4:
		return pick[uint64](g, ^uint64(0), 1<<31-1, 1<<31, 1<<32-1, 1<<32, 1<<63-1, 1<<63, 1<<64-4096)
	case 5:
		return uint64(g.r.IntN(200))
	case 6:
		return 1 << g.r.IntN(64)
	default:
		return g.r.Uint64() >> g.r.IntN(64)
	}
}

// size returns the length of a buffer: mostly one that fits.
func (g *gen) size() uint64 {
	if !g.bad() {
		return pick[uint64](g, 0, 1, 2, 3, 4, 7, 8, 15, 16, 24, 28, 31, 32, 40, 48, 56, 63, 64, 72, 100, 112, 128, 200, 256, 512, 1000, 4096)
	}
	return g.number()
}

func (g *gen) fd() uint64 {
	if g.bad() && g.chance(10) {
		return g.number()
	}
	if g.bad() {
		return pick(g, g.w.fds[len(g.w.fds)-badFDs:]...)
	}
	return pick(g, g.w.fds...)
}

// wantedFD has the sort of descriptor that calls are made for, by the beginning
// of their names.
var wantedFD = []struct{ call, kind string }{
	{"timerfd_", "timerfd"}, {"inotify_", "inotify"}, {"fanotify_mark", "fanotify"}, {"getdents", "directory"}, {"fsconfig", "context"},
	{"fsmount", "context"}, {"landlock_", "ruleset"}, {"accept", "listening"}, {"epoll_", "epoll"}, {"mq_", "queue"}, {"pidfd_", "pidfd"},
	{"process_m", "pidfd"}, {"setns", "namespace"}, {"cachestat", "file"}, {"fgetxattr", "file"}, {"fsetxattr", "file"}, {"flistxattr", "file"},
	{"copy_file_range", "file"}, {"fallocate", "memfd"}, {"pread", "file"}, {"lseek", "file"}, {"bind", "unix"}, {"connect", "udp"},
}

func (g *gen) socket() uint64 {
	if g.bad() {
		return g.fd()
	}
	return pick(g, g.w.sockets...)
}

func (g *gen) path() uint64 {
	p := pick(g, "file", "file", "file", "file", "dir", "dir", "link", "dir/inner", "/", ".", "..", "", "/t/file", "nowhere", "file/x", "new", "/proc/self/exe",
		"/proc/self/fd/3", "/proc/self/status", "/proc/self/ns/net", "pts/0", "dir/../link", "\xff\xfe", string(make([]byte, 300)))
	return g.at(append([]byte(p), 0))
}

func (g *gen) str() uint64 {
	s := pick(g, "user", "user.a", "user.a", "user.a", "trusted.b", "security.c", "user.new", "key", "m", "q", "/q", "keyring", "logon", "", "lo", "filter", "tmpfs", "ext4", "#us.a")
	return g.at(append([]byte(s), 0))
}

func (g *gen) pid() uint64 {
	return pick(g, 0, 0, uint64(g.c.inside), 1, g.w.other, ^uint64(0), 99999, g.number())
}

// timespec is a short time, or no time at all.
func (g *gen) timespec() []byte {
	if !g.bad() {
		return le(0, uint64(g.r.IntN(300000)))
	}
	return le(g.number(), g.number())
}

// inside returns the address of the rest of a block behind what it begins with,
// for what a struct points to.
func (g *gen) iov(count int) []byte {
	var b []byte
	for range count {
		n := pick[uint64](g, 0, 1, 5, 16, 100, 2000, 4096)
		p := g.out(int(n))
		if g.bad() && g.chance(20) {
			n = g.number()
		}
		b = append(b, le(p, n)...)
	}
	return b
}

func (g *gen) sockaddr() []byte {
	switch g.r.IntN(6) {
	case 0, 1:
		return inet(pick[uint16](g, 7001, 7001, 0, 7002))
	case 2:
		return append(le32(10|0x591b<<16, 0), append(make([]byte, 15), 1, 0, 0, 0, 0)...)
	case 3:
		return append([]byte{1, 0, 0}, "name"...)
	case 4:
		return append([]byte{1, 0}, append([]byte("sock"), 0)...)
	default:
		return g.bytes(g.r.IntN(130))
	}
}

func (g *gen) msghdr() []byte {
	n := g.r.IntN(4)
	var name, control uint64
	nameLen, controlLen := pick[uint64](g, 0, 2, 16, 28, 110, 128, 1<<31, 200), pick[uint64](g, 0, 8, 16, 20, 24, 64, 256)
	if g.chance(50) {
		name = g.out(128)
		if !g.bad() {
			nameLen = 128
		}
	}
	if g.chance(50) {
		control = g.out(256)
		if !g.bad() {
			control, controlLen = g.at(append(le(20), append(le32(1, 1, uint32(g.w.byKind["file"])), make([]byte, 300)...)...)), 24
		} else if g.chance(50) { // a control message of one descriptor
			control = g.at(append(le(20), append(le32(1, 1, uint32(g.fd())), make([]byte, 300)...)...))
		}
	}
	return le(name, nameLen, g.at(g.iov(n)), uint64(n), control, controlLen, 0)
}

// structure returns the content of a struct by its name in the table.
func (g *gen) structure(name string) []byte {
	if g.bad() && g.chance(30) {
		return g.bytes(int(structSizes[name]))
	}
	small := func() uint64 { return uint64(g.r.IntN(4)) }
	switch name {
	case "timespec", "timeval":
		return g.timespec()
	case "itimerspec", "itimerval":
		return le(0, 0, 0, uint64(g.r.IntN(900000)))
	case "sigset":
		return le(pick[uint64](g, 0, 0x400, 1<<11, 1<<22, 0x10000))
	case "pollfd":
		return append(le32(uint32(g.fd())), byte(g.r.Uint32()), 0, 0xaa, 0xaa)
	case "epoll_event":
		return append(le32(g.r.Uint32()&0xf), le(g.r.Uint64())...)
	case "msghdr":
		return g.msghdr()
	case "mmsghdr":
		return append(g.msghdr(), le(0x5555555555555555)...)
	case "cap_header":
		return le32(pick[uint32](g, 0x19980330, 0x20071026, 0x20080522, 7), uint32(g.pid()))
	case "sigevent":
		return append(le(7), append(le32(23, pick[uint32](g, 0, 1, 4, 9)), make([]byte, 48)...)...)
	case "open_how":
		return le(pick[uint64](g, 0, 2, O_PATH, O_CREAT|2), 0, small())
	case "cachestat_range":
		return le(0, pick[uint64](g, 0, 4096, 1<<40))
	case "sembuf":
		return []byte{byte(small()), 0, byte(small()), 0, 0, 8}
	case "rlimit":
		return le(1<<20, 1<<20)
	case "mq_attr":
		return le(0o4000*small()/3, 4, 64, 0, 0, 0, 0, 0)
	case "stack_t":
		return le(blockAddr(5), pick[uint64](g, 0, 2), 8192)
	case "sigaction":
		return le(pick[uint64](g, 0, 1, childSite), 0x4000000, childSite, 0)
	case "siginfo":
		return append(le32(23, 0, 0xffffffff), make([]byte, 116)...)
	case "user_desc":
		return le32(uint32(small()), 0, 0, 0x51)
	case "futex_waitv":
		return append(le(small(), g.out(4)), le32(2|128, 0)...)
	case "off":
		return le(uint64(g.r.IntN(9000)))
	case "int", "long":
		return le(pick(g, small(), g.size(), g.number()))[:structSizes[name]]
	case "timex":
		return make([]byte, 208)
	case "sched_attr":
		return append(le32(56, 0), make([]byte, 48)...)
	}
	return g.bytes(int(structSizes[name]))
}

// flags returns some of a set's flags.
func (g *gen) flags(name string) uint64 {
	set, ok := sets[name].(flagSet)
	switch name {
	case "open":
		set, ok = openFlags, true
	case "clone":
		set, ok = cloneFlags, true
	case "ipc":
		set, ok = ipcFlags, true
	}
	switch {
	case !g.bad() && g.chance(70):
		return 0
	case !ok || g.bad():
		return pick[uint64](g, 0, 0, 0, 1, 2, 4, g.number())
	}
	v := set[g.r.IntN(len(set))].value
	if g.chance(30) {
		v |= set[g.r.IntN(len(set))].value
	}
	return v
}

func (g *gen) enum(name string) uint64 {
	if set, ok := sets[name].(enumSet); ok && !(g.bad() && g.chance(20)) {
		return set[g.r.IntN(len(set))].value
	}
	return uint64(g.r.IntN(40))
}

// args returns the arguments of a call by its row.
func (g *gen) args(s *Syscall) (args [6]uint64) {
	g.next = g.r.IntN(halfBlock)
	g.wild, g.half = pick(g, 0, 0, 12, 12, 40), false
	if f := prepare[s.NR]; f != nil && g.chance(70) {
		f(g)
	}
	if f := specialArgs[s.NR]; f != nil && g.chance(90) {
		f(g, &args)
		return args
	}
	for i := len(s.Args) - 1; i >= 0; i-- { // lengths stand behind what they measure
		args[i] = g.arg(s, i, &args)
	}
	for i := len(s.Args); i < 6; i++ {
		args[i] = g.number()
	}
	return args
}

func (g *gen) arg(s *Syscall, i int, args *[6]uint64) uint64 {
	a := &s.Args[i]
	switch a.Kind {
	case KindFD, KindDirFD:
		if a.Kind == KindDirFD && g.chance(50) {
			return ^uint64(99) // AT_FDCWD
		}
		for _, want := range wantedFD {
			if strings.HasPrefix(s.Name, want.call) && !g.bad() && g.chance(80) {
				return g.w.byKind[want.kind]
			}
		}
		for k := range s.Args {
			if kind := s.Args[k].Kind; kind == KindSockIn || kind == KindSockOut || s.Args[k].Set == "msg" || s.Args[k].Set == "sol" {
				return g.socket()
			}
		}
		return g.fd()
	case KindSize, KindUlong, KindUint:
		if isVector(s, i) && !g.bad() {
			return uint64(g.r.IntN(4))
		}
		if (a.Name == "sigsetsize" || a.Name == "sizemask") && !g.bad() {
			return 8
		}
		return g.size()
	case KindInt, KindLong, KindOff, KindMode, KindDev, KindUID:
		return g.integer(a)
	case KindPID:
		return g.pid()
	case KindSigno:
		return pick[uint64](g, 0, 10, 17, 23, 28, 34, 64, 65, ^uint64(0))
	case KindFlags:
		return g.flags(a.Set)
	case KindEnum:
		return g.enum(a.Set)
	case KindPath:
		return g.path()
	case KindStr:
		switch {
		case strings.Contains(s.Name, "xattr") && !g.bad():
			return g.at([]byte("user.a\x00"))
		case s.Name == "fsopen" && !g.bad():
			return g.at([]byte("tmpfs\x00"))
		}
		return g.str()
	case KindStrv:
		return 0
	case KindHex, KindPtr:
		if a.Name == "flags" && !g.bad() && g.chance(80) {
			return 0
		}
		if g.chance(50) {
			return g.out(pick(g, 8, 64, 128, 1024))
		}
		return g.number()
	default:
		return g.pointer(s, a, args)
	}
}

// isVector reports whether argument i is the number of elements of structs.
func isVector(s *Syscall, i int) bool {
	for k := range s.Args {
		a := &s.Args[k]
		if a.Kind == KindIovIn || a.Kind == KindIovOut || a.Struct != "" && (a.Len == LenArg || a.Len == LenRet) {
			if int(a.Of) == i {
				return true
			}
		}
	}
	return false
}

func (g *gen) integer(a *Arg) uint64 {
	switch a.Name {
	case "timeout":
		return pick[uint64](g, 0, 0, 1, ^uint64(0))
	case "maxevents", "nfds":
		return pick[uint64](g, 1, 2, 10, 64, 65, 200, 0, g.number())
	case "which", "who", "whence":
		return pick[uint64](g, 0, 1, 2, ^uint64(0), g.number())
	}
	if !g.bad() {
		return pick[uint64](g, 0, 0, 1, uint64(g.r.IntN(32)))
	}
	return g.number()
}

// pointer returns the address for an argument that the kernel reads or writes.
func (g *gen) pointer(s *Syscall, a *Arg, args *[6]uint64) uint64 {
	count := uint64(1)
	switch a.Len {
	case LenN:
		count = uint64(a.N)
	case LenArg, LenRet:
		count = args[a.Of]
	}
	switch a.Kind {
	case KindIovIn, KindIovOut:
		return g.at(g.iov(int(min(args[a.Of], 4))))
	case KindSockIn:
		return g.at(g.sockaddr())
	case KindSockOut:
		return g.out(128)
	case KindLenPtr:
		return g.at(le32(pick[uint32](g, 0, 1, 2, 4, 16, 28, 110, 128, 200, 1<<31, ^uint32(0))))
	}
	if a.Struct == "" {
		return g.out(int(min(count, PageSize)))
	}
	var b []byte
	for range min(count, 8) {
		b = append(b, g.structure(a.Struct)...)
	}
	return g.at(b)
}
