//go:build linux && amd64

package abi

import (
	"flag"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
)

var redirectCalls = flag.Int("redirectcalls", 600, "calls that TestFuzzRedirected makes twice")

// TestFuzzRedirected makes random calls twice, as the rig does: pointers that
// overlap each other and their own blocks, that end too soon, are NULL, read-only or
// nothing at all; lengths too short, too long and negative.
func TestFuzzRedirected(t *testing.T) {
	calls := *redirectCalls
	f := &redirectFuzzer{rig: newRig(t), r: rand.New(rand.NewPCG(*fuzzSeed, 7)), seen: map[string]int{}}
	f.waited()
	for i := 0; i < calls && !t.Failed(); i++ {
		t.Run("", func(t *testing.T) { // its descriptors are closed when it ends
			f.t = t
			f.one()
		})
	}
	f.t = t
	t.Logf("%d calls redirected, %d not, %d wrote memory; succeeded: %v", f.redirected, f.refused, f.wrote, f.seen)
	if !t.Failed() && (f.redirected < calls/3 || f.wrote < calls/4 || len(f.seen) < len(redirectFuzz)) {
		t.Error("too few calls redirected, or too few kinds succeeded")
	}
}

type redirectFuzzer struct {
	*rig
	r      *rand.Rand
	fds    []uint64  // to be waited for
	epolls [2]uint64 // one would not do: it gives events in turn
	files  [2]uint64 // of two pages; without an offset their positions move
	used   []uint64  // addresses that this call has got
	wild   int       // percent of arguments that are no good
	seen   map[string]int
}

// redirectFuzz has the calls, each by what makes it.
var redirectFuzz = map[int64]func(*redirectFuzzer) twin{
	SYS_READ: func(f *redirectFuzzer) twin {
		return twin{args: with(f.source(), f.pointer(300), f.length(300))}
	},
	SYS_READV: func(f *redirectFuzzer) twin {
		n := f.count()
		return twin{args: with(f.source(), f.vector(n), n)}
	},
	SYS_PREADV2: func(f *redirectFuzzer) twin {
		n := f.count()
		return twin{args: with(f.source(), f.vector(n), n, ^uint64(0), ^uint64(0), 0)}
	},
	SYS_RECVFROM: func(f *redirectFuzzer) twin {
		return twin{args: with(f.socket(), f.pointer(300), f.length(300), f.flags(), f.pointer(128), f.with(le32(f.room())))}
	},
	SYS_RECVMSG: func(f *redirectFuzzer) twin {
		return twin{args: with(f.socket(), f.with(f.header()), f.flags())}
	},
	SYS_RECVMMSG: func(f *redirectFuzzer) twin {
		var b []byte
		n := f.count()
		for range min(n, 4) {
			b = append(append(b, f.header()...), le(0x5555555555555555)...)
		}
		return twin{args: with(f.socket(), f.with(b), n, f.flags(), 0)}
	},
	SYS_POLL: func(f *redirectFuzzer) twin {
		p, n := f.pollfds()
		return twin{args: same(p, n, 0)}
	},
	SYS_PPOLL: func(f *redirectFuzzer) twin {
		p, n := f.pollfds()
		return twin{args: same(p, n, f.noTime(), 0, 8)}
	},
	SYS_SELECT: func(f *redirectFuzzer) twin {
		return twin{args: same(f.descriptors(), f.with(f.bits()), f.with(f.bits()), f.with(f.bits()), f.noTime())}
	},
	SYS_PSELECT6: func(f *redirectFuzzer) twin {
		return twin{args: same(f.descriptors(), f.with(f.bits()), f.with(f.bits()), f.with(f.bits()), f.noTime(), 0)}
	},
	SYS_EPOLL_WAIT: func(f *redirectFuzzer) twin {
		return twin{args: with(f.epolls, f.pointer(60), uint64(f.r.IntN(6)), 0)}
	},
	SYS_EPOLL_PWAIT2: func(f *redirectFuzzer) twin {
		return twin{args: with(f.epolls, f.pointer(60), uint64(f.r.IntN(6)), f.noTime(), 0, 8)}
	},
	SYS_SENDMMSG: func(f *redirectFuzzer) twin {
		var b []byte
		n := f.count()
		for range min(n, 4) {
			b = append(b, le(0, 0, f.vector(2), 2, 0, 0, 0, 0x5555555555555555)...)
		}
		return twin{args: with(f.unix(syscall.SOCK_DGRAM), f.with(b), n, 0)}
	},
	SYS_SENDFILE: func(f *redirectFuzzer) twin {
		_, ends := f.bothEnds("")
		off, n := f.with(le(uint64(f.r.IntN(9000)))), f.length(100)
		return twin{args: func(run int) [6]uint64 { return argv(ends[run], f.files[run], off, n) }}
	},
	SYS_MSGRCV: func(f *redirectFuzzer) twin {
		return twin{args: with(f.queues(), f.pointer(100), f.length(92), 0, uint64(f.pick(ipcNowait, ipcNowait|0o10000)))}
	},
}

// one makes a call of a random kind.
func (f *redirectFuzzer) one() {
	var numbers []int64
	for nr := range redirectFuzz {
		numbers = append(numbers, nr)
	}
	slices.Sort(numbers) // a map's order is not the seed's
	nr := numbers[f.r.IntN(len(numbers))]
	f.used, f.wild = nil, []int{0, 0, 5, 20}[f.r.IntN(4)]
	for i := range numBlocks {
		b := f.part(f.at(i, 0), blockSize)
		if i == halfBlock {
			b = b[:PageSize]
		}
		for k := 0; i != readBlock && k < len(b); k++ {
			b[k] = byte(f.r.Uint32())
		}
	}
	c := redirectFuzz[nr](f)
	c.nr, c.entangled = nr, true // random pointers overlap what Outputs looks at
	if ret, _ := f.both(c); ret >= 0 {
		f.seen[Name(nr)]++
	}
}

func (f *redirectFuzzer) chance(percent int) bool { return f.r.IntN(100) < percent }

func (f *redirectFuzzer) pick(v ...int64) int64 { return v[f.r.IntN(len(v))] }

// pointer returns the address of room for n bytes, mostly.
func (f *redirectFuzzer) pointer(n uint64) uint64 {
	addr := f.at(f.r.IntN(halfBlock), uint64(f.r.IntN(blockSize-int(n))))
	switch {
	case f.chance(f.wild):
		return []uint64{0, 0, 8, f.at(readBlock, 50), f.at(3, blockSize-n/2), f.at(halfBlock, PageSize-n/2), f.at(2, blockSize), 1 << 63, ^uint64(0)}[f.r.IntN(9)]
	case len(f.used) > 0 && f.chance(25): // near another
		addr = f.used[f.r.IntN(len(f.used))] + uint64(f.r.IntN(80)) - 40
		if len(f.part(addr, n)) < int(n) {
			addr = f.at(4, 0)
		}
	}
	f.used = append(f.used, addr)
	return addr
}

// with returns the address of memory that holds b, if it can.
func (f *redirectFuzzer) with(b []byte) uint64 { return f.put(f.pointer(uint64(len(b))), b) }

// length returns one for room of n bytes.
func (f *redirectFuzzer) length(n int) uint64 {
	if f.chance(f.wild) {
		return uint64(f.pick(0, int64(n), 4096, 1<<20, 1<<31, 1<<40, -1, -1<<63))
	}
	return uint64(f.r.IntN(n + 1))
}

func (f *redirectFuzzer) count() uint64 {
	if f.chance(f.wild / 4) {
		return uint64(f.pick(1<<31, -1, MaxIov+1, 1<<32))
	}
	return uint64(f.r.IntN(4))
}

func (f *redirectFuzzer) room() uint32 {
	if f.chance(f.wild) {
		return f.r.Uint32()
	}
	return uint32(f.r.IntN(140))
}

// flags of a receive that does not wait.
func (f *redirectFuzzer) flags() uint64 {
	return msgDontwait | uint64(f.pick(0, 0, 0, msgTrunc, 2, 2|msgTrunc, 0x100, 1, 0x40000000, 0x2000))
}

func (f *redirectFuzzer) vector(n uint64) uint64 {
	var b []byte
	for range min(n, 4) {
		b = append(b, le(f.pointer(100), f.length(100))...)
	}
	return f.with(b)
}

func (f *redirectFuzzer) header() []byte {
	n := f.count()
	name, control := f.pointer(128), f.pointer(128)
	if f.chance(30) {
		name = 0
	}
	if f.chance(30) {
		control = 0
	}
	return le(name, uint64(f.room()), f.vector(n), n, control, uint64(f.r.IntN(129)), f.r.Uint64())
}

func (f *redirectFuzzer) packets() []packet {
	var list []packet
	for range f.r.IntN(4) {
		p := packet{data: string(make([]byte, 1+f.r.IntN(150)))}
		b := []byte(p.data)
		for i := range b {
			b[i] = byte(f.r.Uint32())
		}
		p.data = string(b)
		if f.chance(40) {
			p.control = syscall.UnixRights([]int{0, 1, 2}[:1+f.r.IntN(3)]...)
		}
		list = append(list, p)
	}
	return list
}

// socket returns two sockets with packets for them.
func (f *redirectFuzzer) socket() [2]uint64 {
	if f.chance(40) {
		return f.udp(f.packets()...)
	}
	return f.unix([]int{syscall.SOCK_STREAM, syscall.SOCK_DGRAM, syscall.SOCK_SEQPACKET}[f.r.IntN(3)], f.packets()...)
}

// source returns two descriptors to read.
func (f *redirectFuzzer) source() [2]uint64 {
	if f.chance(50) {
		return f.socket()
	}
	content := ""
	for _, p := range f.packets() {
		content += p.data
	}
	return f.pipes(content)
}

// queues returns two message queues with a message each.
func (f *redirectFuzzer) queues() [2]uint64 {
	var q [2]uint64
	text := string(make([]byte, f.r.IntN(90)))
	keep := append([]byte(nil), f.part(f.at(5, 0), 128)...)
	for i := range q {
		q[i] = f.must(SYS_MSGGET, 0, 0o1600)
		id := q[i]
		f.t.Cleanup(func() { rawCall(SYS_MSGCTL, argv(id, ipcRmid)) })
		f.must(SYS_MSGSND, id, f.put(f.at(5, 0), append(le(9), text...)), uint64(len(text)), 0)
	}
	f.put(f.at(5, 0), keep)
	return q
}

// waited makes what poll, select and epoll wait for: it does not change.
func (f *redirectFuzzer) waited() {
	full, fullEnds := f.bothEnds("x")
	empty, emptyEnds := f.bothEnds("")
	f.fds = []uint64{full[0], fullEnds[0], empty[0], emptyEnds[0]}
	for run := range f.files {
		f.files[run] = f.must(SYS_MEMFD_CREATE, f.put(f.at(6, 0), []byte("m\x00")), 0)
		f.must(SYS_FTRUNCATE, f.files[run], 8192)
		f.closeLater(int(f.files[run]))
	}
	for run := range f.epolls {
		f.epolls[run] = f.must(SYS_EPOLL_CREATE1, 0)
		f.closeLater(int(f.epolls[run]))
		for i, fd := range f.fds {
			f.must(SYS_EPOLL_CTL, f.epolls[run], 1, fd, f.put(f.at(6, 0), append(le32(5), le(uint64(i))...)))
		}
	}
}

func (f *redirectFuzzer) pollfds() (addr, n uint64) {
	var b []byte
	n = uint64(f.r.IntN(6))
	for range min(n, 4) {
		fd := f.fds[f.r.IntN(len(f.fds))]
		if f.chance(20) {
			fd = uint64(f.pick(-1, 1<<20, 1<<31))
		}
		b = append(b, le32(uint32(fd), f.r.Uint32())...)
	}
	if f.chance(f.wild / 4) {
		n = uint64(f.pick(1<<31, -1, 1<<21))
	}
	return f.with(b), n
}

// noTime returns the address of a time-out that is over, or is none. Without one
// the call would wait for ever, as it would where the memory has kept its noise.
func (f *redirectFuzzer) noTime() uint64 {
	b := le(0, 0)
	if f.chance(f.wild) {
		b = le(1<<63, 0) // select takes any number of microseconds
	}
	addr := f.with(b)
	if addr == 0 || addr >= f.at(halfBlock, 0) && addr < f.at(halfBlock, blockSize) {
		return f.at(readBlock, 50) // zeros
	}
	return addr
}

func (f *redirectFuzzer) descriptors() uint64 {
	if f.chance(f.wild) {
		return uint64(f.pick(0, -1, 1, 30000, 1<<31))
	}
	return slices.Max(f.fds) + uint64(f.r.IntN(70))
}

// bits is a set of descriptors: mostly of those there are.
func (f *redirectFuzzer) bits() []byte {
	b := make([]byte, 32)
	for _, fd := range f.fds {
		if f.chance(50) {
			b[fd/8%32] |= 1 << (fd % 8)
		}
	}
	return b
}
