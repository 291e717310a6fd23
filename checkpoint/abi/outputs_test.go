package abi

import (
	"encoding/binary"
	"testing"
)

// fakeMemory is sparse memory by page.
type fakeMemory struct {
	pages map[uint64]*[PageSize]byte
}

func newFake() *fakeMemory { return &fakeMemory{pages: map[uint64]*[PageSize]byte{}} }

func (f *fakeMemory) ReadAt(addr uint64, b []byte) int {
	for i := range b {
		p := f.pages[(addr+uint64(i))&^(PageSize-1)]
		if p == nil {
			return i
		}
		b[i] = p[(addr+uint64(i))%PageSize]
	}
	return len(b)
}

func (f *fakeMemory) mapPages(addr, n uint64) *fakeMemory {
	for a := addr &^ (PageSize - 1); a < addr+n; a += PageSize {
		if f.pages[a] == nil {
			f.pages[a] = new([PageSize]byte)
		}
	}
	return f
}

// words stores 64-bit words at addr.
func (f *fakeMemory) words(addr uint64, words ...uint64) *fakeMemory {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return f.bytes(addr, b)
}

func (f *fakeMemory) bytes(addr uint64, b []byte) *fakeMemory {
	f.mapPages(addr, uint64(len(b)))
	for i, c := range b {
		f.pages[(addr+uint64(i))&^(PageSize-1)][(addr+uint64(i))%PageSize] = c
	}
	return f
}

// hinted is a memory whose mapped pages are all writable.
type hinted struct {
	*fakeMemory
	datagram bool
}

func (h hinted) Writable(addr, n uint64) bool { return accessible(h.fakeMemory, addr, n) == n }
func (h hinted) Datagram(int32) bool          { return h.datagram }

// everywhere is a memory without holes, all zero.
type everywhere struct{}

func (everywhere) ReadAt(_ uint64, b []byte) int {
	clear(b)
	return len(b)
}

func fail(e Errno) int64 { return -int64(e) }

func TestOutputsRegular(t *testing.T) {
	checkOutputs(t, []outputCase{
		{"read full", fourPages(), SYS_READ, argv(3, pa, 100), 100, ranges(pa, 100), nil},
		{"read short, nothing known", fourPages(), SYS_READ, argv(3, pa, 100), 7, ranges(pa, 100), nil},
		{"read short, writable", hinted{fourPages(), false}, SYS_READ, argv(3, pa, 100), 7, ranges(pa, 7), nil},
		{"read short, hole behind", hinted{fourPages(), false}, SYS_READ, argv(3, pa, 0x2000), 7, ranges(pa, 0x2000), nil},
		{"read of SSIZE_MAX", fourPages(), SYS_READ, argv(3, pa, 1<<63-1), 7, ranges(pa, 0x1000), nil},
		{"read end of file, writable", hinted{fourPages(), false}, SYS_READ, argv(3, pa, 100), 0, nil, nil},
		{"read EFAULT", fourPages(), SYS_READ, argv(3, pa, 100), fail(EFAULT), ranges(pa, 100), nil},
		{"read EIO", fourPages(), SYS_READ, argv(3, pa, 100), fail(EIO), ranges(pa, 100), nil},
		{"read EAGAIN", fourPages(), SYS_READ, argv(3, pa, 100), fail(EAGAIN), nil, nil},
		{"read EAGAIN, datagram", hinted{fourPages(), true}, SYS_READ, argv(3, pa, 100), fail(EAGAIN), ranges(pa, 100), nil},
		{"read EBADF", fourPages(), SYS_READ, argv(3, pa, 100), fail(EBADF), nil, nil},
		{"write", fourPages(), SYS_WRITE, argv(1, pa, 100), 100, nil, nil},
		{"fstat", fourPages(), SYS_FSTAT, argv(1, pa), 0, ranges(pa, 144), nil},
		{"stat ENOENT", fourPages(), SYS_STAT, argv(pa, pb), fail(ENOENT), nil, nil},
		{"pipe", fourPages(), SYS_PIPE2, argv(pa, 0), 0, ranges(pa, 8), nil},
		{"unknown number", fourPages(), 999, argv(pa), 0, nil, ErrOpaque},
		{"unknown number, ENOSYS", fourPages(), 999, argv(pa), fail(ENOSYS), nil, nil},
		{"negative number", fourPages(), -1, argv(pa), fail(ENOSYS), nil, nil},
		{"vector count is 32 bits", newFake(), SYS_READV, argv(3, pa, 1<<40), 0, nil, nil},
		{"more than the bound", everywhere{}, SYS_READ, argv(3, pa, 1<<40), 7, nil, ErrOpaque},
		{"a long read", everywhere{}, SYS_READ, argv(3, pa, 1<<24), 1 << 24, ranges(pa, 1<<24), nil},
	})
}
