//go:build linux && amd64

package abi

import (
	"encoding/binary"
	"syscall"
	"testing"
)

// world is the template of the fuzzer's processes: a child with a descriptor of
// each sort, objects of System V, and a process to be traced.
type world struct {
	*child
	fds     []uint64 // good and bad
	sockets []uint64
	byKind  map[string]uint64
	shm     uint64
	sem     uint64
	msg     uint64
	other   uint64 // a process of its own, in the child's numbers
	timer   uint64
}

// newWorld makes one. With a script what it takes to make it is written there,
// and there are no other processes.
func newWorld(t *testing.T, log *script) *world {
	t.Helper()
	w := &world{child: startChild(t), byKind: map[string]uint64{}}
	w.script = log
	w.layout()
	w.readAreas()
	w.limits()
	w.files()
	w.network()
	w.descriptors()
	w.objects()
	if log != nil {
		return w
	}
	if f, err := w.fork(); err == nil {
		// Left to itself, not traced: it waits for ever, for the fuzzer to trace it.
		w.other = uint64(f.inside)
		f.pause()
	}
	w.readAreas()
	return w
}

// pause lets a forked child sleep, on its own.
func (c *child) pause() {
	r := syscall.PtraceRegs{Orig_rax: ^uint64(0), Rax: SYS_PAUSE, Rip: childSite, Cs: 0x33, Ss: 0x2b, Eflags: 0x202}
	if err := syscall.PtraceSetRegs(c.pid, &r); err != nil {
		c.t.Fatal(err)
	}
	if err := syscall.PtraceDetach(c.pid); err != nil {
		c.t.Fatal(err)
	}
	c.mem.Close()
}

func le(v ...uint64) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

func le32(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

// badFDs is how many numbers at the end of world.fds are no descriptors.
const badFDs = 4

// limits bounds what a child can use up.
func (w *world) limits() {
	for _, l := range [][2]uint64{{0, 60}, {1, 1 << 20}, {4, 0}, {7, 256}, {9, 4 << 30}} { // CPU, FSIZE, CORE, NOFILE, AS
		w.put(blockAddr(0), le(l[1], l[1]))
		w.must(SYS_PRLIMIT64, 0, l[0], blockAddr(0), 0)
	}
}

// files makes a file system of the child's own and what is in it.
func (w *world) files() {
	a, b, c := blockAddr(0), blockAddr(1), blockAddr(2)
	w.must(SYS_MOUNT, w.text(a, "none"), w.text(b, "/t"), w.text(c, "tmpfs"), 0, w.text(c+64, "size=8m"))
	if w.script == nil {
		w.may(SYS_MOUNT, w.text(a, "proc"), w.text(b, "/proc"), w.text(c, "proc"), 0, 0)
	}
	w.must(SYS_CHDIR, w.text(a, "/t"))
	w.must(SYS_MKDIR, w.text(a, "dir"), 0o777)
	w.must(SYS_MKDIR, w.text(a, "pts"), 0o777)
	w.may(SYS_MOUNT, w.text(a, "devpts"), w.text(b, "pts"), w.text(c, "devpts"), 0, w.text(c+64, "newinstance,ptmxmode=0666"))
	fd := w.must(SYS_OPEN, w.text(a, "file"), O_RDWR|O_CREAT, 0o666)
	w.must(SYS_WRITE, fd, blockAddr(3), 8192)
	w.add("file", fd)
	w.must(SYS_OPEN, w.text(a, "dir/inner"), O_RDWR|O_CREAT, 0o666)
	w.must(SYS_SYMLINK, w.text(a, "file"), w.text(b, "link"))
	w.may(SYS_SETXATTR, w.text(a, "file"), w.text(b, "user.a"), w.text(c, "value"), 5, 0)
	w.may(SYS_SETXATTR, w.text(a, "file"), w.text(b, "trusted.b"), w.text(c, "value"), 5, 0)
}

func (w *world) add(kind string, fd uint64) {
	if int64(fd) >= 0 {
		w.byKind[kind] = fd
		w.fds = append(w.fds, fd)
	}
}

// sockaddr_in of 127.0.0.1.
func inet(port uint16) []byte {
	return []byte{2, 0, byte(port >> 8), byte(port), 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}
}

func (w *world) socket(kind string, domain, typ, protocol uint64) uint64 {
	fd := w.may(SYS_SOCKET, domain, typ, protocol)
	w.add(kind, fd)
	if int64(fd) >= 0 {
		w.sockets = append(w.sockets, fd)
	}
	return fd
}

// network makes sockets of many families.
func (w *world) network() {
	const nonblock = 0o4000
	a, b := blockAddr(0), blockAddr(1)
	lo := append([]byte("lo"), make([]byte, 38)...)
	lo[16] = 1 | 0x40 // IFF_UP, IFF_RUNNING
	s := w.socket("udp", 2, 2|nonblock, 0)
	w.put(a, lo)
	w.may(SYS_IOCTL, s, 0x8914, a) // SIOCSIFFLAGS
	w.put(a, inet(7001))
	w.may(SYS_BIND, s, a, 16)
	tcp := w.socket("listening", 2, 1|nonblock, 0)
	w.may(SYS_BIND, tcp, a, 16)
	w.may(SYS_LISTEN, tcp, 5)
	for _, kind := range []string{"connected", "connected too"} {
		fd := w.socket(kind, 2, 1, 0)
		w.may(SYS_CONNECT, fd, a, 16)
		w.may(SYS_FCNTL, fd, 4, nonblock)
	}
	if fd := w.may(SYS_ACCEPT4, tcp, 0, 0, nonblock); int64(fd) >= 0 {
		w.add("accepted", fd)
		w.sockets = append(w.sockets, fd)
	}
	for _, pair := range []struct {
		kind string
		typ  uint64
	}{{"stream", 1}, {"datagram", 2}, {"packets", 5}} {
		w.must(SYS_SOCKETPAIR, 1, pair.typ|nonblock, 0, b)
		var fds [8]byte
		w.ReadAt(b, fds[:])
		for i, kind := range []string{pair.kind, pair.kind + " peer"} {
			fd := uint64(binary.LittleEndian.Uint32(fds[4*i:]))
			w.add(kind, fd)
			w.sockets = append(w.sockets, fd)
		}
	}
	w.socket("unix", 1, 1|nonblock, 0)
	w.socket("udp6", 10, 2|nonblock, 0)
	w.socket("tcp6", 10, 1|nonblock, 0)
	w.socket("raw", 2, 3|nonblock, 1)
	w.socket("raw6", 10, 3|nonblock, 58)
	w.socket("packet", 17, 3|nonblock, 0x0300)
	w.socket("route", 16, 3|nonblock, 0)
	w.socket("uevent", 16, 3|nonblock, 15)
	w.socket("crypto", 38, 5|nonblock, 0)
	w.socket("vsock", 40, 1|nonblock, 0)
	w.socket("sctp", 2, 1|nonblock, 132)
	w.socket("mptcp", 2, 1|nonblock, 262)
	w.socket("udplite", 2, 2|nonblock, 136)
	w.socket("xdp", 44, 3|nonblock, 0)
}

// descriptors makes one of each other sort.
func (w *world) descriptors() {
	const nonblock = 0o4000
	a, b := blockAddr(0), blockAddr(1)
	open := func(kind, path string, flags uint64) { w.add(kind, w.may(SYS_OPEN, w.text(a, path), flags, 0)) }
	open("read-only", "file", 0)
	open("path", "file", O_PATH)
	open("directory", "dir", O_DIRECTORY)
	open("root", "/", O_DIRECTORY)
	open("status", "/proc/self/status", 0)
	open("namespace", "/proc/self/ns/user", 0)
	open("mounts", "/proc/self/ns/mnt", 0)
	open("terminal", "pts/ptmx", O_RDWR|O_NOCTTY|nonblock)
	w.put(b, le32(0))
	w.may(SYS_IOCTL, w.byKind["terminal"], 0x40045431, b) // TIOCSPTLCK
	open("terminal's end", "pts/0", O_RDWR|O_NOCTTY|nonblock)
	w.must(SYS_PIPE2, b, nonblock)
	var fds [8]byte
	w.ReadAt(b, fds[:])
	w.add("pipe", uint64(binary.LittleEndian.Uint32(fds[:])))
	w.add("pipe's end", uint64(binary.LittleEndian.Uint32(fds[4:])))
	epoll := w.must(SYS_EPOLL_CREATE1, 0)
	w.add("epoll", epoll)
	w.put(a, append(le32(4, 7), le32(9)...)) // EPOLLOUT
	w.may(SYS_EPOLL_CTL, epoll, 1, w.byKind["pipe's end"], a)
	w.put(a, append(le32(5, 8), le32(9)...))
	w.may(SYS_EPOLL_CTL, epoll, 1, w.byKind["stream"], a)
	w.add("eventfd", w.must(SYS_EVENTFD2, 5, nonblock))
	w.add("timerfd", w.must(SYS_TIMERFD_CREATE, 1, nonblock))
	w.put(a, le(0x400, 0))
	w.add("signalfd", w.must(SYS_SIGNALFD4, ^uint64(0), a, 8, nonblock))
	w.add("memfd", w.must(SYS_MEMFD_CREATE, w.text(a, "m"), 3))
	w.may(SYS_FTRUNCATE, w.byKind["memfd"], 8192)
	w.add("inotify", w.must(SYS_INOTIFY_INIT1, nonblock))
	w.may(SYS_INOTIFY_ADD_WATCH, w.byKind["inotify"], w.text(a, "/t"), 0xfff)
	w.add("fanotify", w.may(SYS_FANOTIFY_INIT, 0x202, 0))
	w.add("pidfd", w.may(SYS_PIDFD_OPEN, 1, 0))
	w.put(b, le(0, 4, 64, 0, 0, 0, 0, 0))
	w.add("queue", w.may(SYS_MQ_OPEN, w.text(a, "q"), O_RDWR|O_CREAT|nonblock, 0o600, b))
	w.add("context", w.may(SYS_FSOPEN, w.text(a, "tmpfs"), 0))
	w.add("tree", w.may(SYS_OPEN_TREE, ^uint64(99), w.text(a, "dir"), 0))
	w.put(a, le(1, 0, 0))
	w.add("ruleset", w.may(SYS_LANDLOCK_CREATE_RULESET, a, 8, 0))
	w.fds = append(w.fds, 200, ^uint64(0), ^uint64(99), 1<<31) // closed, -1, AT_FDCWD, no number at all
}

// objects makes what has other numbers than descriptors.
func (w *world) objects() {
	a := blockAddr(0)
	w.shm = w.may(SYS_SHMGET, 0, 8192, 0o1600)
	w.sem = w.may(SYS_SEMGET, 0, 5, 0o1600)
	w.msg = w.may(SYS_MSGGET, 0, 0o1600)
	w.put(a, append(le(1), "hello"...))
	w.may(SYS_MSGSND, w.msg, a, 5, 0)
	w.may(SYS_TIMER_CREATE, 1, 0, a)
	w.may(SYS_ADD_KEY, w.text(a, "user"), w.text(a+64, "key"), a, 8, ^uint64(2)) // the session's ring
}
