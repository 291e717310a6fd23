//go:build linux && amd64

package jit

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Executable memory: one file of memory, mapped twice. Code is written through one mapping
// and executed through the other, so no address is ever writable and executable. The second lies behind the
// first, so that code knows how far away what it writes is.

const (
	// chunkSize is what an engine has; when it is full, all its code is dropped. A compiler that translates a large file
	// executes 60,000 units again and again, which take half of that.
	chunkSize = 64 << 20
	// hotDirect is how much of it is for tables and for code that is executed again and again, and the rest for
	// the ways out; hotChecked is likewise where accesses are checked, which have more of these.
	hotDirect  = 46 << 20
	hotChecked = 38 << 20
	// tableSize is how much of that is for tables: the jump cache, and the bytes of seen.go.
	tableSize = jumpTables + maxUnits
	// stubSize is for the code that all engines share, at the beginning.
	stubSize = 4096
)

// Pool is executable memory, divided among engines. There is one in a process.
type Pool struct {
	rw, rx  []byte
	exit    int                   // where generated code leaves
	enter   int                   // and where Go enters
	fault   int                   // where the signal handler sends what faulted
	partial [2 * partialSizes]int // look for a page with unknown bytes, by size, for loads and for stores
	vectors int                   // loads vector registers and goes on at the address in rax

	// Max is how many units are translated at most by all engines together, 0 for any
	// number. Halving it, with one engine at work, finds the unit that is wrong.
	Max uint64

	translated atomic.Uint64
	used       atomic.Int64 // bytes of code of all engines

	setsGS bool // the way in sets the base of GS

	dead    uintptr // the window of all parts that have none; 0: there are no windows
	windows [chunks]windows
	borders atomic.Int64 // of all windows

	mu   sync.Mutex
	free []int     // offsets of chunks
	idle []*Engine // that may be used again, the last one last
}

// Usage returns how many engines have memory, how many there can be, and how many bytes of code they have,
// of which each can have so many.
func (p *Pool) Usage() (engines, most int, bytes, each int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return chunks - len(p.free), chunks, p.used.Load(), chunkSize - tableSize
}

// mayTranslate counts a unit, and reports whether it is among the first Max.
func (p *Pool) mayTranslate() bool { return p.translated.Add(1) <= p.Max || p.Max == 0 }

const (
	sysMemfdCreate = 319 // linux arch/x86/entry/syscalls/syscall_64.tbl
	mfdCloexec     = 1   // linux include/uapi/linux/memfd.h
	mfdNoexecSeal  = 8   // since Linux 6.3; it is about execve, not about mappings
)

// memoryFile returns a file of memory. One that execve refuses is allowed even where vm.memfd_noexec is 2.
func memoryFile() (fd int, err error) {
	name := [...]byte{'v', 'p', 'l', 'a', 'y', '-', 'j', 'i', 't', 0}
	for _, flags := range []uintptr{mfdCloexec | mfdNoexecSeal, mfdCloexec} {
		n, _, errno := syscall.Syscall(sysMemfdCreate, uintptr(unsafe.Pointer(&name)), flags, 0)
		if errno == 0 {
			return int(n), nil
		}
		if err = fmt.Errorf("memfd_create: %w", errno); errno != syscall.EINVAL {
			break
		}
	}
	return 0, err
}

// mayGrow returns an error when a file of so many bytes is not allowed: to make one would raise SIGXFSZ (man 2
// setrlimit).
func mayGrow(size int) error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil || l.Cur >= uint64(size) {
		return err
	}
	return fmt.Errorf("files of %d bytes are not allowed (ulimit -f)", size)
}

// newPool maps memory for n engines.
func newPool(n int) (*Pool, error) {
	size := stubSize + n*chunkSize
	if err := mayGrow(size); err != nil {
		return nil, err
	}
	fd, err := memoryFile()
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	if err := syscall.Ftruncate(fd, int64(size)); err != nil {
		return nil, fmt.Errorf("ftruncate: %w", err)
	}
	both, err := syscall.Mmap(-1, 0, 2*size, syscall.PROT_NONE, windowFlags)
	if err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	p := &Pool{rw: both[:size], rx: both[size:]}
	const flags = syscall.MAP_SHARED | syscall.MAP_FIXED
	if _, err := mmap(p.writable(0), uintptr(size), syscall.PROT_READ|syscall.PROT_WRITE, flags, fd, 0); err != nil {
		return nil, errors.Join(err, syscall.Munmap(both))
	}
	if _, err := mmap(p.address(0), uintptr(size), syscall.PROT_READ|syscall.PROT_EXEC, flags, fd, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("executable memory: %w", err), syscall.Munmap(both))
	}
	for i := range n {
		p.free = append(p.free, stubSize+i*chunkSize)
	}
	return p, nil
}

// address returns the address at which the code at an offset is executed.
func (p *Pool) address(offset int) uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData(p.rx))) + uintptr(offset)
}

// writable returns the address at which what is at an offset is written.
func (p *Pool) writable(offset int) uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData(p.rw))) + uintptr(offset)
}

// take returns the offset of a free chunk, or 0.
func (p *Pool) take() int {
	if p.isTaken() {
		p.freeIdle()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		return 0
	}
	at := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return at
}

// madvRemove gives the memory of a shared mapping back to the system (linux include/uapi/asm-generic/mman-common.h).
const madvRemove = 9

// give takes a chunk back, of which used bytes were written. Giving their memory back to the system
// is advice: what it does not take is used again.
func (p *Pool) give(at, used int) {
	_ = syscall.Madvise(p.rw[at&^(pageSize-1):at+used], madvRemove)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, at)
}

// windowsOf returns the windows of the engine that has the chunk at an offset.
func (p *Pool) windowsOf(chunk int) *windows { return &p.windows[(chunk-stubSize)/chunkSize] }

// addressOf returns the address of a log's first word. It never moves.
func addressOf(words []uint64) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(words))))
}
