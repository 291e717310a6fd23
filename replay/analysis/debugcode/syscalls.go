package debugcode

import (
	"encoding/binary"
	"fmt"

	"vplay/checkpoint/abi"
	"vplay/replay"
	"vplay/replay/mem"
	"vplay/replay/sys"
)

// The system calls of debug code: it writes to its standard output and error, has memory, and ends. There are no
// files, no network and no clock for it; a call that is not here gets ENOSYS, and the user is told once.

// host is the memory of debug code, and what answers its calls.
type host struct {
	p       *Program
	space   *mem.Space
	pool    *mem.Pool
	next    uint64 // where the next mapping goes
	left    uint64 // bytes that may still be mapped
	output  func(fd int, b []byte)
	before  func() // what the program has printed comes first
	setFS   func(a uint64)
	program func(a uint64, b []byte) int // reads the program's memory
	refused map[int64]bool
}

// Where things are in the window: the image first, then these. A gap of nothing is around each.
const (
	stackAt   = 0x1_0000_0000
	stackSize = 8 << 20
	scratchAt = 0x1_8000_0000
	heapAt    = 0x2_0000_0000
)

// none is the source of memory that begins as zeroes.
type none struct{}

func (none) PageAt(uint64, *mem.Page, *mem.Mask) (mem.Content, bool) { return mem.Zero, true }
func (none) ObjectPage(uint32, uint64, *mem.Page, *mem.Mask) mem.Content {
	return mem.NotCaptured
}

// newHost loads the program. memory is what its heap may have, in bytes.
func newHost(p *Program, memory uint64) (*host, error) {
	h := &host{p: p, pool: mem.NewPool(), next: p.base + heapAt, left: memory, refused: map[int64]bool{}}
	h.space = mem.NewSpace(h.pool, none{})
	for _, s := range p.image.segments {
		if s.start < p.base || s.end > p.base+stackAt {
			h.close()
			return nil, &Error{"", "debug code and its data are larger than 4 GiB"}
		}
		h.space.Map(mem.Region{Start: s.start, End: s.end, Prot: s.prot, Fresh: true})
		h.inject(s.addr, s.data)
	}
	h.space.Map(mem.Region{Start: p.base + stackAt, End: p.base + stackAt + stackSize, Prot: mem.ProtRead | mem.ProtWrite, Fresh: true})
	at := p.base + scratchAt
	for _, s := range p.symbols {
		if s.function == nil {
			s.scratch = at
			at += uint64(min(max(s.typ.Size(), 0), maxScratch)+15) &^ 15
		}
	}
	if size := (at - p.base - scratchAt + mem.PageSize - 1) &^ (mem.PageSize - 1); size > 0 {
		h.space.Map(mem.Region{Start: p.base + scratchAt, End: p.base + scratchAt + size, Prot: mem.ProtRead, Fresh: true})
	}
	return h, nil
}

// maxScratch bounds a variable that is not in memory, in bytes.
const maxScratch = 1 << 16

// close gives the memory back.
func (h *host) close() {
	h.space.Close()
	_ = h.pool.Close() // nothing is lost by it
}

// inject stores bytes as a loader does. All of debug code's memory is there, so it cannot fail.
func (h *host) inject(a uint64, b []byte) { h.space.Inject(a, b) }

// stack puts what the kernel does on the stack of a new program, and returns its pointer (System V ABI, AMD64 supplement, 3.4.1).
func (h *host) stack() uint64 {
	p := h.p
	top := p.base + stackAt + stackSize
	name := top - 64
	h.inject(name, []byte("debugcode\x00"))
	random := top - 32
	words := []uint64{1, name, 0, 0,
		abi.AT_PHDR, p.image.phdr, abi.AT_PHENT, 56, abi.AT_PHNUM, uint64(p.image.phnum), abi.AT_PAGESZ, mem.PageSize, abi.AT_RANDOM, random, abi.AT_NULL, 0}
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	sp := (name - uint64(len(b))) &^ 15
	h.inject(sp, b)
	return sp
}

// calls are those that are answered.
var calls map[int64]func(h *host, a [6]uint64) (int64, *replay.DiversionStop)

func init() {
	constant := func(n int64) func(*host, [6]uint64) (int64, *replay.DiversionStop) {
		return func(*host, [6]uint64) (int64, *replay.DiversionStop) { return n, nil }
	}
	signal := func(arg int) func(h *host, a [6]uint64) (int64, *replay.DiversionStop) {
		return func(_ *host, a [6]uint64) (int64, *replay.DiversionStop) {
			if a[arg] == 0 {
				return 0, nil
			}
			return 0, &replay.DiversionStop{Reason: replay.StopSignal, Signo: int32(a[arg])}
		}
	}
	end := func(_ *host, a [6]uint64) (int64, *replay.DiversionStop) {
		return 0, &replay.DiversionStop{Reason: replay.StopEnd, Code: int(a[0] & 0xff)}
	}
	calls = map[int64]func(h *host, a [6]uint64) (int64, *replay.DiversionStop){
		abi.SYS_WRITE:   (*host).write,
		abi.SYS_WRITEV:  (*host).writev,
		abi.SYS_IOCTL:   constant(-int64(abi.ENOTTY)),
		abi.SYS_BRK:     constant(0), // so that malloc uses mmap
		abi.SYS_MMAP:    (*host).mmap,
		abi.SYS_MUNMAP:  (*host).munmap,
		abi.SYS_MADVISE: constant(0), abi.SYS_MPROTECT: constant(0),
		abi.SYS_ARCH_PRCTL: func(h *host, a [6]uint64) (int64, *replay.DiversionStop) {
			if a[0] != abi.ARCH_SET_FS {
				return -int64(abi.EINVAL), nil
			}
			h.setFS(a[1])
			return 0, nil
		},
		abi.SYS_SET_TID_ADDRESS: constant(1), abi.SYS_GETPID: constant(1), abi.SYS_GETTID: constant(1),
		abi.SYS_RT_SIGPROCMASK: constant(0), abi.SYS_RT_SIGACTION: constant(0), abi.SYS_FUTEX: constant(0),
		abi.SYS_KILL: signal(1), abi.SYS_TKILL: signal(1), abi.SYS_TGKILL: signal(2),
		abi.SYS_EXIT: end, abi.SYS_EXIT_GROUP: end,
	}
}

// syscall is replay.DebugCode.Syscall.
func (h *host) syscall(nr int64, a [6]uint64) (int64, *replay.DiversionStop) {
	if f := calls[nr]; f != nil {
		return f(h, a)
	}
	if !h.refused[nr] {
		h.refused[nr] = true
		h.before()
		h.output(2, fmt.Appendf(nil, "vplay: debug code calls %s, which gets ENOSYS: it has no files, no network and no clock\n", sys.Name(nr)))
	}
	return -int64(abi.ENOSYS), nil
}

// read reads memory, of debug code or of the program.
func (h *host) read(a, n uint64) ([]byte, bool) {
	b := make([]byte, n)
	if a >= h.p.base && a < h.p.base+windowSize {
		got, _ := h.space.Peek(a, b)
		return b, got == len(b)
	}
	return b, h.program(a, b) == len(b)
}

// Bounds on one write.
const (
	maxWrite   = 1 << 20
	maxVectors = 1024 // UIO_MAXIOV, linux/uio.h
)

func (h *host) write(a [6]uint64) (int64, *replay.DiversionStop) {
	if a[0] != 1 && a[0] != 2 {
		return -int64(abi.EBADF), nil
	}
	b, ok := h.read(a[1], min(a[2], maxWrite))
	if !ok {
		return -int64(abi.EFAULT), nil
	}
	h.before()
	h.output(int(a[0]), b)
	return int64(len(b)), nil
}

func (h *host) writev(a [6]uint64) (int64, *replay.DiversionStop) {
	if a[0] != 1 && a[0] != 2 {
		return -int64(abi.EBADF), nil
	}
	vectors, ok := h.read(a[1], min(a[2], maxVectors)*16)
	if !ok {
		return -int64(abi.EFAULT), nil
	}
	var all []byte
	for ; len(vectors) >= 16 && len(all) < maxWrite; vectors = vectors[16:] {
		b, ok := h.read(binary.LittleEndian.Uint64(vectors), min(binary.LittleEndian.Uint64(vectors[8:]), uint64(maxWrite-len(all))))
		if !ok {
			return -int64(abi.EFAULT), nil
		}
		all = append(all, b...)
	}
	h.before()
	h.output(int(a[0]), all)
	return int64(len(all)), nil
}

// mmap gives anonymous memory, each time at addresses that nothing was at before.
func (h *host) mmap(a [6]uint64) (int64, *replay.DiversionStop) {
	size := (a[1] + mem.PageSize - 1) &^ (mem.PageSize - 1)
	switch {
	case a[3]&abi.MAP_ANONYMOUS == 0:
		return -int64(abi.ENOSYS), nil
	case size == 0 || size < a[1]:
		return -int64(abi.EINVAL), nil
	case size > h.left || h.next+size+mem.PageSize > h.p.base+windowSize:
		return -int64(abi.ENOMEM), nil
	}
	at := h.next
	h.left -= size
	h.next += size + mem.PageSize
	h.space.Map(mem.Region{Start: at, End: at + size, Prot: mem.ProtRead | mem.ProtWrite, Fresh: true})
	return int64(at), nil
}

func (h *host) munmap(a [6]uint64) (int64, *replay.DiversionStop) {
	end := (a[0] + a[1] + mem.PageSize - 1) &^ (mem.PageSize - 1)
	if a[0]%mem.PageSize != 0 || a[0] < h.p.base+heapAt || end > h.next || end < a[0] {
		return -int64(abi.EINVAL), nil
	}
	for _, r := range h.space.Regions() {
		if from, to := max(r.Start, a[0]), min(r.End, end); from < to {
			h.left += to - from
		}
	}
	h.space.Unmap(a[0], end)
	return 0, nil
}
