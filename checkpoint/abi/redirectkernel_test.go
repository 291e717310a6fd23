//go:build linux && amd64

package abi

import (
	"encoding/binary"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Calls whose output is redirected, made on this kernel beside the same calls as they are: on pipes,
// sockets and processes in pairs that hold the same. The rig that makes both is in redirectrig_test.go.

const (
	sigpoll  = 39 // a real-time signal: it queues
	nonblock = O_NONBLOCK
)

// pipes returns the read ends of two pipes that hold the same bytes.
func (g *rig) pipes(content string) [2]uint64 {
	g.t.Helper()
	fds, _ := g.bothEnds(content)
	return fds
}

// bothEnds returns the write ends, too.
func (g *rig) bothEnds(content string) (from, to [2]uint64) {
	g.t.Helper()
	for i := range from {
		var p [2]int
		if err := syscall.Pipe2(p[:], nonblock); err != nil {
			g.t.Fatal(err)
		}
		g.closeLater(p[0], p[1])
		if _, err := syscall.Write(p[1], []byte(content)); err != nil {
			g.t.Fatal(err)
		}
		from[i], to[i] = uint64(p[0]), uint64(p[1])
	}
	return from, to
}

// numbered returns another descriptor for fd, which has the given number. Sets of descriptors
// that overlap in memory name others besides, and a test inherits open ones with any low
// number.
func (g *rig) numbered(number, fd uint64) uint64 {
	g.t.Helper()
	got := g.must(SYS_FCNTL, fd, syscall.F_DUPFD_CLOEXEC, number)
	g.closeLater(int(got))
	if got != number {
		g.t.Fatalf("descriptor %d is open", number)
	}
	return got
}

func (g *rig) closeLater(fds ...int) {
	g.t.Cleanup(func() {
		for _, fd := range fds {
			_ = syscall.Close(fd)
		}
	})
}

// packet is what a peer sends: data, control data, or the end.
type packet struct {
	data    string
	control []byte
}

// unix returns two sockets with the same packets to receive, whose senders have a
// name.
func (g *rig) unix(typ int, packets ...packet) [2]uint64 {
	g.t.Helper()
	var fds [2]uint64
	for i := range fds {
		p, err := syscall.Socketpair(syscall.AF_UNIX, typ|nonblock, 0)
		if err != nil {
			g.t.Fatal(err)
		}
		g.closeLater(p[0], p[1])
		// Linux gives both ends an abstract name, but no two the same one: the
		// sender keeps none, and packets come without.
		if err := syscall.SetsockoptInt(p[0], syscall.SOL_SOCKET, syscall.SO_PASSCRED, 0); err != nil {
			g.t.Fatal(err)
		}
		for _, k := range packets {
			if err := syscall.Sendmsg(p[1], []byte(k.data), k.control, nil, 0); err != nil {
				g.t.Fatal(err)
			}
		}
		fds[i] = uint64(p[0])
	}
	return fds
}

// udp returns two sockets with the same packets from one sender, which has an
// address.
func (g *rig) udp(packets ...packet) [2]uint64 {
	g.t.Helper()
	socket := func() int {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|nonblock, 0)
		if err != nil {
			g.t.Fatal(err)
		}
		g.closeLater(fd)
		if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			g.t.Fatal(err)
		}
		return fd
	}
	sender := socket()
	var fds [2]uint64
	for i := range fds {
		fd := socket()
		to, err := syscall.Getsockname(fd)
		if err != nil {
			g.t.Fatal(err)
		}
		if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, syscall.IP_PKTINFO, 1); err != nil {
			g.t.Fatal(err)
		}
		for _, k := range packets {
			if err := syscall.Sendto(sender, []byte(k.data), 0, to); err != nil {
				g.t.Fatal(err)
			}
		}
		fds[i] = uint64(fd)
	}
	return fds
}

// accepting returns two listening sockets, with a client each that has the same
// name.
func (g *rig) accepting(name string) [2]uint64 {
	g.t.Helper()
	var fds [2]uint64
	for i := range fds {
		fd := int(g.must(SYS_SOCKET, syscall.AF_UNIX, syscall.SOCK_STREAM|nonblock, 0))
		g.closeLater(fd)
		if err := syscall.Bind(fd, &syscall.SockaddrUnix{}); err != nil { // the kernel finds a name
			g.t.Fatal(err)
		}
		if err := syscall.Listen(fd, 5); err != nil {
			g.t.Fatal(err)
		}
		at, err := syscall.Getsockname(fd)
		if err != nil {
			g.t.Fatal(err)
		}
		client := int(g.must(SYS_SOCKET, syscall.AF_UNIX, syscall.SOCK_STREAM, 0))
		if err := syscall.Bind(client, &syscall.SockaddrUnix{Name: name}); err != nil {
			g.t.Fatal(err)
		}
		if err := syscall.Connect(client, at); err != nil {
			g.t.Fatal(err)
		}
		_ = syscall.Close(client)
		fds[i] = uint64(fd)
	}
	return fds
}

// args returns arguments whose first is each run's descriptor.
func with(fds [2]uint64, rest ...uint64) func(int) [6]uint64 {
	return func(run int) [6]uint64 { return argv(append([]uint64{fds[run]}, rest...)...) }
}

// same returns arguments that both runs share.
func same(args ...uint64) func(int) [6]uint64 { return func(int) [6]uint64 { return argv(args...) } }

// expect makes the two calls and looks at their result, and whether there was a
// redirection.
func (g *rig) expect(name string, c twin, want int64, redirected bool) {
	g.t.Helper()
	g.name = name // no subtest: it would run on another thread
	if ret, ok := g.both(c); ret != want || ok != redirected {
		g.t.Errorf("%s: %s, redirected %v; want %s, %v", name, FormatResult(c.nr, ret), ok, FormatResult(c.nr, want), redirected)
	}
}

// iov writes a vector and returns its address.
func (g *rig) iov(addr uint64, parts ...uint64) uint64 { return g.put(addr, le(parts...)) }

func TestRedirectedReads(t *testing.T) {
	g := newRig(t)
	a, b, v := g.at(0, 100), g.at(1, 3), g.at(2, 0)
	const text = "what the pipe has in it"
	n := int64(len(text))
	g.expect("short", twin{nr: SYS_READ, args: with(g.pipes(text), a, 4096)}, n, true)
	g.expect("full", twin{nr: SYS_READ, args: with(g.pipes(text), a, 5)}, 5, true)
	g.expect("zero", twin{nr: SYS_READ, args: with(g.pipes(text), a, 0)}, 0, true)
	g.expect("NULL", twin{nr: SYS_READ, args: with(g.pipes(text), 0, 5)}, fail(EFAULT), true)
	g.expect("nothing", twin{nr: SYS_READ, args: with(g.pipes(""), a, 5)}, fail(EAGAIN), true)
	g.expect("EBADF", twin{nr: SYS_READ, args: same(1<<20, a, 5)}, fail(EBADF), true)
	g.expect("fault in the middle", twin{nr: SYS_READ, args: with(g.pipes(text), g.at(0, blockSize-4), 10)}, fail(EFAULT), false)
	g.expect("read-only", twin{nr: SYS_READ, args: with(g.pipes(text), g.at(readBlock, 0), 10)}, fail(EFAULT), false)
	g.expect("readv", twin{nr: SYS_READV, args: with(g.pipes(text), g.iov(v, a, 4, b, 8, 0, 0, a+100, 200), 4)}, n, true)
	g.expect("readv, one buffer twice", twin{nr: SYS_READV, args: with(g.pipes(text), g.iov(v, a, 4, a, 8, a+2, 9), 3)}, 21, true)
	g.expect("readv into its own vector", twin{nr: SYS_READV, args: with(g.pipes(text), g.iov(v, a, 4, v, 16, b, 30), 3), entangled: true}, n, true)
	g.expect("readv, a length below zero", twin{nr: SYS_READV, args: with(g.pipes(text), g.iov(v, a, 4, b, 1<<63), 2)}, fail(EINVAL), false)
	g.expect("readv, a hole", twin{nr: SYS_READV, args: with(g.pipes(text), g.iov(v, a, 4, g.at(1, blockSize), 8), 2)}, fail(EFAULT), false)
	g.expect("getrandom", twin{nr: SYS_GETRANDOM, args: same(a, 300, 0), ignored: ranges(a, 300)}, 300, true)

	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(strings.Repeat(text, 500)); err != nil {
		t.Fatal(err)
	}
	fd := uint64(file.Fd())
	g.expect("pread64", twin{nr: SYS_PREAD64, args: same(fd, a, 4000, 10)}, 4000, true)
	g.expect("preadv, end of file", twin{nr: SYS_PREADV, args: same(fd, g.iov(v, a, 40, b, 4000), 2, uint64(n*500)-60, 0)}, 60, true)
	g.expect("preadv2", twin{nr: SYS_PREADV2, args: same(fd, g.iov(v, b, 40, a, 4000), 2, 7, 0, 0)}, 4040, true)
	g.expect("preadv2, no such offset", twin{nr: SYS_PREADV2, args: same(fd, v, 2, 1<<63, 0, 0)}, fail(EINVAL), true)
	_, ends := g.bothEnds("")
	off := g.put(b, le(33))
	g.expect("sendfile", twin{nr: SYS_SENDFILE, args: func(run int) [6]uint64 { return argv(ends[run], fd, off, 100) }}, 100, true)
	g.expect("splice", twin{nr: SYS_SPLICE, args: func(run int) [6]uint64 { return argv(fd, off, ends[run], 0, 50, 0) }}, 50, true)
	g.expect("sendfile, read-only offset", twin{nr: SYS_SENDFILE, args: func(run int) [6]uint64 { return argv(ends[run], fd, g.at(readBlock, 0), 100) }}, fail(EFAULT), false)
}

func TestRedirectedReceives(t *testing.T) {
	g := newRig(t)
	a, b, v, h, name, control := g.at(0, 100), g.at(1, 3), g.at(2, 0), g.at(3, 8), g.at(4, 0), g.at(5, 64)
	room := g.put(g.at(6, 40), le32(128))
	hello := packet{data: "hello from the peer"}
	g.expect("recvfrom", twin{nr: SYS_RECVFROM, args: with(g.udp(hello), a, 100, 0, name, room)}, 19, true)
	g.expect("recvfrom, short name", twin{nr: SYS_RECVFROM, args: with(g.udp(hello), a, 100, 0, name, g.put(g.at(6, 60), le32(5)))}, 19, true)
	g.expect("recvfrom, no name", twin{nr: SYS_RECVFROM, args: with(g.udp(hello), a, 5, 0, 0, 1)}, 5, true)
	g.expect("recvfrom, negative room", twin{nr: SYS_RECVFROM, args: with(g.udp(hello), a, 100, 0, name, g.put(g.at(6, 80), le32(1<<31)))}, fail(EINVAL), true)
	g.expect("recvfrom, name over its length", twin{nr: SYS_RECVFROM, args: with(g.udp(hello), a, 100, 0, room, room)}, 19, true)
	g.put(room, le32(128))
	g.expect("recvfrom, length of the name in the data", twin{nr: SYS_RECVFROM, args: with(g.udp(hello), room-8, 100, 0, name, room)}, 19, false)
	g.put(room, le32(128))
	g.expect("recvfrom, name over the data", twin{nr: SYS_RECVFROM, args: with(g.udp(hello), a, 100, 0, a+4, room)}, 19, true)
	g.expect("recvfrom, MSG_TRUNC", twin{nr: SYS_RECVFROM, args: with(g.udp(hello), a, 5, 0x20, 0, 0)}, 19, true)
	g.expect("recvfrom, nothing", twin{nr: SYS_RECVFROM, args: with(g.udp(), a, 5, 0, name, room)}, fail(EAGAIN), true)
	g.expect("recvfrom, read-only name", twin{nr: SYS_RECVFROM, args: with(g.udp(hello), a, 100, 0, g.at(readBlock, 0), room)}, fail(EFAULT), false)

	files := packet{"with files", syscall.UnixRights(0, 1, 2)}
	header := func(at uint64, words ...uint64) uint64 { return g.put(at, le(words...)) }
	two := g.iov(v, a, 4, b, 100)
	g.expect("recvmsg", twin{nr: SYS_RECVMSG, args: with(g.udp(hello), header(h, name, 128, two, 2, control, 200, 0), 0)}, 19, true)
	g.expect("recvmsg, truncated", twin{nr: SYS_RECVMSG, args: with(g.udp(hello), header(h, name, 4, two, 1, control, 20, 0), 0)}, 4, true)
	g.expect("recvmsg, MSG_TRUNC", twin{nr: SYS_RECVMSG, args: with(g.udp(hello), header(h, name, 4, two, 1, 0, 0, 0), 0x20)}, 19, true)
	g.expect("recvmsg, no vector", twin{nr: SYS_RECVMSG, args: with(g.udp(hello), header(h, name, 128, 0, 0, 0, 0, 0), 0)}, 0, true)
	g.expect("recvmsg, no name and a length", twin{nr: SYS_RECVMSG, args: with(g.udp(hello), header(h, 0, 1<<31, two, 2, 0, 8, 0), 0)}, 19, true)
	g.expect("recvmsg, negative name", twin{nr: SYS_RECVMSG, args: with(g.udp(hello), header(h, name, 1<<31, two, 2, 0, 0, 0), 0)}, fail(EINVAL), false)
	g.expect("recvmsg, nothing", twin{nr: SYS_RECVMSG, args: with(g.udp(), header(h, name, 128, two, 2, control, 200, 0), 0)}, fail(EAGAIN), true)
	for _, typ := range []int{syscall.SOCK_STREAM, syscall.SOCK_DGRAM, syscall.SOCK_SEQPACKET} {
		g.expect("descriptors", twin{nr: SYS_RECVMSG, args: with(g.unix(typ, files), header(h, name, 128, two, 2, control, 200, 0), 0)}, 10, true)
		g.expect("descriptors, room for one", twin{nr: SYS_RECVMSG, args: with(g.unix(typ, files), header(h, 0, 0, two, 2, control, 20, 0), 0)}, 10, true)
		g.expect("descriptors, no room", twin{nr: SYS_RECVMSG, args: with(g.unix(typ, files), header(h, 0, 0, two, 2, control, 8, 0), 0)}, 10, true)
		g.expect("descriptors and the vector in the buffer", twin{nr: SYS_RECVMSG,
			args: with(g.unix(typ, files), header(h, 0, 0, g.iov(v, v, 8, v+4, 100), 2, v+2, 24, 0), 0), entangled: true}, 10, true)
		g.expect("the header's tail in the buffer", twin{nr: SYS_RECVMSG,
			args: with(g.unix(typ, files), header(h, 0, 0, g.iov(v, h+38, 18), 1, control, 24, 0), 0), entangled: true}, 10, true)
		g.expect("the header's name length in the buffer", twin{nr: SYS_RECVMSG,
			args: with(g.unix(typ, files), header(h, name, 0, g.iov(v, h+4, 18), 1, control, 24, 0), 0), entangled: true}, 10, false)
		g.iov(v, a, 4, b, 100)
	}
	g.tcp(a)
}

// tcp: with MSG_TRUNC, TCP throws the bytes away, counts them, and writes nothing.
func (g *rig) tcp(a uint64) {
	g.t.Helper()
	var fds [2]uint64
	for i := range fds {
		l := int(g.must(SYS_SOCKET, syscall.AF_INET, syscall.SOCK_STREAM, 0))
		c := int(g.must(SYS_SOCKET, syscall.AF_INET, syscall.SOCK_STREAM, 0))
		g.closeLater(l, c)
		if err := syscall.Bind(l, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			g.t.Fatal(err)
		}
		if err := syscall.Listen(l, 1); err != nil {
			g.t.Fatal(err)
		}
		at, err := syscall.Getsockname(l)
		if err != nil {
			g.t.Fatal(err)
		}
		if err := syscall.Connect(c, at); err != nil {
			g.t.Fatal(err)
		}
		s, _, err := syscall.Accept(l)
		if err != nil {
			g.t.Fatal(err)
		}
		g.closeLater(s)
		if _, err := syscall.Write(c, []byte("thrown away")); err != nil {
			g.t.Fatal(err)
		}
		fds[i] = uint64(s)
	}
	g.expect("TCP, MSG_TRUNC", twin{nr: SYS_RECVFROM, args: with(fds, a, 6, 0x20, 0, 0)}, 6, true)
	g.expect("TCP", twin{nr: SYS_RECVFROM, args: with(fds, a, 100, 0, g.at(4, 0), g.put(g.at(6, 40), le32(128)))}, 5, true)
}

func TestRedirectedBatches(t *testing.T) {
	g := newRig(t)
	v, array := g.at(2, 0), g.at(3, 8)
	batch := func() {
		var b []byte
		for i := range uint64(3) {
			g.iov(v+i*32, g.at(0, i*200), 4, g.at(1, i*200), 100)
			b = append(b, le(g.at(4, i*200), 128, v+i*32, 2, g.at(5, i*200), 100, 0, 0x5555)...)
		}
		g.put(array, b)
	}
	batch()
	one, two, three := packet{data: "one"}, packet{data: "number two"}, packet{data: "the third"}
	g.expect("recvmmsg", twin{nr: SYS_RECVMMSG, args: with(g.udp(one, two, three), array, 3, 0x40, 0)}, 3, true)
	g.expect("two of three", twin{nr: SYS_RECVMMSG, args: with(g.udp(one, two), array, 3, 0x40, 0)}, 2, true)
	g.expect("none", twin{nr: SYS_RECVMMSG, args: with(g.udp(), array, 3, 0x40, 0)}, fail(EAGAIN), true)
	g.expect("no room for any", twin{nr: SYS_RECVMMSG, args: with(g.udp(one), array, 0, 0x40, 0)}, 0, true)
	limit := g.put(g.at(6, 0), le(0, 0))
	g.expect("no time", twin{nr: SYS_RECVMMSG, args: with(g.udp(one, two, three), array, 3, 0, limit)}, 1, true)
	g.put(limit, le(50, 0))
	g.expect("some time", twin{nr: SYS_RECVMMSG, args: with(g.udp(one, two, three), array, 3, 0, limit), ignored: ranges(limit, 16)}, 3, true)
	g.expect("a bad time", twin{nr: SYS_RECVMMSG, args: with(g.udp(one), array, 3, 0, g.put(limit, le(0, 1<<40)))}, fail(EINVAL), true)
	g.put(array+2*sizeofMmsghdr+16, le(0x10))
	g.expect("a vector that is not there", twin{nr: SYS_RECVMMSG, args: with(g.udp(one, two, three), array, 3, 0x40, 0)}, 2, false)
	batch()
	g.iov(v, array+sizeofMmsghdr+offMsgFlags, 4, g.at(1, 0), 100)
	g.expect("the next header in a buffer", twin{nr: SYS_RECVMMSG, args: with(g.udp(one, two, three), array, 3, 0x40, 0), entangled: true}, 3, false)

	g.put(array, le(0, 0, g.iov(v, g.at(0, 0), 10), 1, 0, 0, 0, 0x5555, 0, 0, g.iov(v+16, g.at(0, 0), 20), 1, 0, 0, 0, 0x5555))
	g.expect("sendmmsg", twin{nr: SYS_SENDMMSG, args: with(g.unix(syscall.SOCK_DGRAM), array, 2, 0)}, 2, true)
	g.iov(v+16, array, 64)
	g.expect("sendmmsg of itself", twin{nr: SYS_SENDMMSG, args: with(g.unix(syscall.SOCK_DGRAM), array, 2, 0)}, 2, false)
}

func TestRedirectedWaits(t *testing.T) {
	g := newRig(t)
	from, to := g.bothEnds("")
	full, empty, fullEnd, emptyEnd := g.numbered(200, from[0]), g.numbered(300, from[1]), g.numbered(400, to[0]), g.numbered(450, to[1])
	for _, shift := range []uint64{8, 24} { // what the sets below name that begin 1 and 3 bytes later
		g.numbered(full-shift, from[0])
		g.numbered(empty-shift, from[1])
	}
	g.must(SYS_WRITE, fullEnd, g.put(g.at(0, 0), []byte("x")), 1)
	fds, left := g.at(0, 4), g.at(1, 16)
	g.put(fds, append(append(le32(uint32(full)), 1, 0, 0xaa, 0xbb), append(le32(uint32(empty), 0xffff0001), le32(1<<20, 1)...)...))
	g.put(left, le(50, 0))
	timed := ranges(left, 16)
	g.expect("poll", twin{nr: SYS_POLL, args: same(fds, 3, 0)}, 2, true)
	g.expect("poll, none ready", twin{nr: SYS_POLL, args: same(fds+8, 1, 1)}, 0, true)
	g.expect("poll, none", twin{nr: SYS_POLL, args: same(0, 0, 1)}, 0, true)
	g.expect("poll, read-only", twin{nr: SYS_POLL, args: same(g.at(readBlock, 0), 2, 0)}, fail(EFAULT), false)
	g.expect("ppoll", twin{nr: SYS_PPOLL, args: same(fds, 3, left, 0, 8), ignored: timed}, 2, true)
	g.expect("ppoll, a bad time", twin{nr: SYS_PPOLL, args: same(fds, 3, g.put(g.at(1, 64), le(0, 1<<40)), 0, 8)}, fail(EINVAL), true)
	g.expect("ppoll, read-only time", twin{nr: SYS_PPOLL, args: same(fds, 3, g.at(readBlock, 0), 0, 8)}, 2, true)
	g.expect("ppoll, time over the descriptors", twin{nr: SYS_PPOLL, args: same(g.put(g.at(7, 0), make([]byte, 24)), 1, g.at(7, 2), 0, 8)}, 0, true)
	bits := func(fds ...uint64) []byte {
		b := make([]byte, 64)
		for _, fd := range fds {
			b[fd/8] |= 1 << (fd % 8)
		}
		return b
	}
	r, w, e := g.put(g.at(2, 0), bits(full, empty)), g.put(g.at(3, 0), bits(full, fullEnd, emptyEnd)), g.put(g.at(4, 0), bits(empty))
	n := max(full, empty, fullEnd, emptyEnd) + 1
	g.expect("select", twin{nr: SYS_SELECT, args: same(n, r, w, e, left), ignored: timed}, 3, true)
	g.expect("select, one set twice", twin{nr: SYS_SELECT, args: same(n, w, w, 0, 0)}, 3, true)
	g.expect("select, sets that overlap", twin{nr: SYS_SELECT, args: same(n, r, r+3, r+1, g.put(g.at(1, 96), make([]byte, 16)))}, 1, true)
	g.expect("select, EBADF", twin{nr: SYS_SELECT, args: same(n+50, g.put(g.at(5, 0), bits(n+45)), 0, 0, 0)}, fail(EBADF), true)
	g.expect("select, many more than there are", twin{nr: SYS_SELECT, args: same(30000, r, w, 0, 0)}, 3, true)
	g.expect("pselect6", twin{nr: SYS_PSELECT6, args: same(n, r, w, e, left, 0), ignored: timed}, 3, true)
	g.expect("pselect6, read-only set", twin{nr: SYS_PSELECT6, args: same(n, r, w, g.at(readBlock, 0), left, 0), ignored: timed}, fail(EFAULT), false)

	epoll := g.must(SYS_EPOLL_CREATE1, 0)
	g.closeLater(int(epoll))
	for i, fd := range []uint64{full, fullEnd, emptyEnd} {
		ev := append(le32(5), le(uint64(i)<<32|7)...) // EPOLLIN, EPOLLOUT
		g.must(SYS_EPOLL_CTL, epoll, 1, fd, g.put(g.at(6, 0), ev))
	}
	events := g.at(7, 1)
	g.expect("epoll_wait", twin{nr: SYS_EPOLL_WAIT, args: same(epoll, events, 10, 50)}, 3, true)
	g.expect("epoll_wait, no room", twin{nr: SYS_EPOLL_WAIT, args: same(epoll, events, 0, 50)}, fail(EINVAL), true)
	g.expect("epoll_pwait", twin{nr: SYS_EPOLL_PWAIT, args: same(epoll, events, 3, 50, 0, 8)}, 3, true)
	g.expect("epoll_pwait2", twin{nr: SYS_EPOLL_PWAIT2, args: same(epoll, events, 3, 0, 0, 8)}, 3, true)
	g.expect("accept", twin{nr: SYS_ACCEPT, args: with(g.accepting("@vplay-redirect-a"), g.at(8, 0), g.put(g.at(9, 0), le32(110)))}, int64(n0(g)), true)
	g.expect("accept4, short room", twin{nr: SYS_ACCEPT4, args: with(g.accepting("@vplay-redirect-b"), g.at(8, 0), g.put(g.at(9, 0), le32(7)), 0)}, int64(n0(g)), true)
	g.expect("accept, no address", twin{nr: SYS_ACCEPT, args: with(g.accepting("@vplay-redirect-c"), 0, 0x10)}, int64(n0(g)), true)
	g.expect("accept, negative room", twin{nr: SYS_ACCEPT, args: with(g.accepting("@vplay-redirect-d"), g.at(8, 0), g.put(g.at(9, 0), le32(1<<31)))}, fail(EINVAL), true)
	g.expect("accept, none", twin{nr: SYS_ACCEPT, args: with([2]uint64{full, full}, g.at(8, 0), g.at(9, 0))}, fail(ENOTSOCK), true)
}

// n0 returns the number that the next descriptor gets.
func n0(g *rig) uint64 {
	fd := g.must(SYS_DUP, 0)
	_ = syscall.Close(int(fd))
	return fd
}

func TestRedirectedProcesses(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g := newRig(t)
	status, usage, info := g.at(0, 8), g.at(1, 0), g.at(2, 0)
	zero := func(int64) int64 { return 0 }
	child := func() uint64 {
		p, err := os.StartProcess("/proc/self/exe", []string{"child", "-test.run=^$"}, &os.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		pid := uint64(p.Pid)
		t.Cleanup(func() { _ = p.Release() })
		g.must(SYS_WAITID, 1, pid, 0, 4|0x01000000, 0) // WEXITED, WNOWAIT
		return pid
	}
	pids := [2]uint64{child(), child()}
	g.expect("waitid, not yet waited for", twin{nr: SYS_WAITID, args: func(run int) [6]uint64 { return argv(1, pids[run], info, 4|0x01000000, usage) },
		ignored: ranges(info+16, 4, usage, 144)}, 0, true)
	g.expect("wait4", twin{nr: SYS_WAIT4, args: func(run int) [6]uint64 { return argv(pids[run], status, 0, usage) }, result: zero, ignored: ranges(usage, 144)}, 0, true)
	g.expect("wait4, ECHILD", twin{nr: SYS_WAIT4, args: func(run int) [6]uint64 { return argv(pids[run], status, 0, usage) }}, fail(ECHILD), true)
	g.expect("waitid, ECHILD", twin{nr: SYS_WAITID, args: func(run int) [6]uint64 { return argv(1, pids[run], info, 4, usage) }}, fail(ECHILD), true)

	queue := [2]uint64{g.must(SYS_MSGGET, 0, 0o1600), g.must(SYS_MSGGET, 0, 0o1600)}
	for _, q := range queue {
		t.Cleanup(func() { rawCall(SYS_MSGCTL, argv(q, ipcRmid)) })
		for range 2 {
			g.must(SYS_MSGSND, q, g.put(g.at(3, 0), append(le(5), "a message"...)), 9, 0)
		}
	}
	g.expect("msgrcv", twin{nr: SYS_MSGRCV, args: with(queue, g.at(4, 0), 100, 0, 0)}, 9, true)
	g.expect("msgrcv, too big", twin{nr: SYS_MSGRCV, args: with(queue, g.at(4, 0), 3, 0, 0)}, fail(E2BIG), true)
	g.expect("msgrcv, truncated", twin{nr: SYS_MSGRCV, args: with(queue, g.at(4, 0), 3, 0, 0o10000)}, 3, true)
	g.expect("msgrcv, none", twin{nr: SYS_MSGRCV, args: with(queue, g.at(4, 0), 3, 0, ipcNowait)}, fail(ENOMSG), true)
	g.posixQueues()
	g.signals()
}

func (g *rig) posixQueues() {
	name := g.put(g.at(3, 0), []byte("vplay-redirect\x00"))
	attr := g.put(g.at(3, 64), le(0, 4, 64, 0, 0, 0, 0, 0))
	var fds [2]uint64
	for i := range fds {
		fds[i] = g.must(SYS_MQ_OPEN, name, O_RDWR|O_CREAT|O_EXCL|nonblock, 0o600, attr)
		g.closeLater(int(fds[i]))
		g.must(SYS_MQ_UNLINK, name)
		for k := range uint64(2) {
			g.must(SYS_MQ_TIMEDSEND, fds[i], attr, 20, 7+k, 0)
		}
	}
	msg, prio := g.at(4, 0), g.at(5, 0)
	g.expect("mq_timedreceive", twin{nr: SYS_MQ_TIMEDRECEIVE, args: with(fds, msg, 64, prio, 0)}, 20, true)
	g.expect("mq_timedreceive, priority in the message", twin{nr: SYS_MQ_TIMEDRECEIVE, args: with(fds, msg, 64, msg+8, 0)}, 20, true)
	g.expect("mq_timedreceive, too small", twin{nr: SYS_MQ_TIMEDRECEIVE, args: with(fds, msg, 63, prio, 0)}, fail(EMSGSIZE), true)
	g.expect("mq_timedreceive, none", twin{nr: SYS_MQ_TIMEDRECEIVE, args: with(fds, msg, 64, prio, 0)}, fail(EAGAIN), true)
}

// signals: a wait for one, and sleeps that one ends. The thread is locked.
func (g *rig) signals() {
	set, info := g.put(g.at(5, 64), le(1<<(sigpoll-1))), g.at(6, 0)
	old := g.at(7, 0)
	g.must(SYS_RT_SIGPROCMASK, 0, set, old, 8)
	defer func() { g.must(SYS_RT_SIGPROCMASK, 2, old, 0, 8) }()
	pid, tid := uint64(os.Getpid()), uint64(syscall.Gettid())
	raise := func(int) { g.must(SYS_TGKILL, pid, tid, sigpoll) }
	g.expect("rt_sigtimedwait", twin{nr: SYS_RT_SIGTIMEDWAIT, args: same(set, info, 0, 8), before: raise}, sigpoll, true)
	g.expect("rt_sigtimedwait, info over the set", twin{nr: SYS_RT_SIGTIMEDWAIT, args: same(set, set-4, 0, 8), before: raise}, sigpoll, true)
	g.expect("rt_sigtimedwait, none", twin{nr: SYS_RT_SIGTIMEDWAIT, args: same(set, info, g.put(g.at(8, 0), le(0, 1000)), 8)}, fail(EAGAIN), true)
	request, rest := g.put(g.at(9, 0), le(0, 300_000_000)), g.at(10, 0)
	// A timer's signal ends the sleep: Go's runtime has a handler for SIGURG, and nothing to do then.
	interrupt := func(int) {
		event := g.put(g.at(11, 0), append(append(le(0), le32(uint32(syscall.SIGURG), 4, uint32(tid))...), make([]byte, 44)...)) // SIGEV_THREAD_ID
		id := g.at(11, 128)
		g.must(SYS_TIMER_CREATE, 1, event, id)
		n := uint64(binary.LittleEndian.Uint32(g.part(id, 4)))
		g.t.Cleanup(func() { rawCall(SYS_TIMER_DELETE, argv(n)) })
		g.must(SYS_TIMER_SETTIME, n, 0, g.put(g.at(11, 192), le(0, 0, 0, 5_000_000)), 0)
		clear(g.part(g.at(11, 0), 256))
	}
	clear(g.part(g.at(11, 0), 256))
	g.expect("nanosleep", twin{nr: SYS_NANOSLEEP, args: same(request, rest), before: interrupt, ignored: ranges(rest, 16)}, fail(EINTR), true)
	g.expect("nanosleep, one block", twin{nr: SYS_NANOSLEEP, args: same(request, request), before: interrupt, ignored: ranges(request, 16)}, fail(EINTR), true)
	g.put(request, le(0, 300_000_000))
	g.expect("clock_nanosleep", twin{nr: SYS_CLOCK_NANOSLEEP, args: same(1, 0, request, rest), before: interrupt, ignored: ranges(rest, 16)}, fail(EINTR), true)
	g.expect("clock_nanosleep, to the end", twin{nr: SYS_CLOCK_NANOSLEEP, args: same(1, 1, request, rest)}, 0, true)
}
