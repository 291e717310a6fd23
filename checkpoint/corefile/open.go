package corefile

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"unsafe"

	"vplay/checkpoint"
)

// The header of a core file and its segments: which range of memory it holds where (elf(5),
// man 5 core). What the notes say is in notes.go.

// ErrNotCore is wrapped by the errors of Open for a file that is no core file of an x86-64 Linux program.
var ErrNotCore = errors.New("not a core file of an x86-64 Linux program")

// FormatError says what is wrong in a core file.
type FormatError struct {
	File string
	What string
}

// Error names the file.
func (e *FormatError) Error() string { return fmt.Sprintf("corefile: %s: %s", e.File, e.What) }

// Core is an opened core file. It is used by one goroutine.
type Core struct {
	name   string
	r      io.ReaderAt
	size   int64
	budget *checkpoint.Budget

	segments  []segment // by address, disjoint
	truncated uint64    // bytes that segments claim behind the end of the file
	notes
}

// segment is a range of memory, of which the core file has the first bytes.
type segment struct {
	start, end uint64 // page-aligned
	off        int64  // of its bytes in the file
	stored     uint64 // bytes that the file has
	prot       uint8  // checkpoint.ProtRead and so on
	unlisted   bool   // there is no such segment: NT_FILE tells of a mapping, and of its protection nothing
}

const (
	pageSize = checkpoint.PageSize

	// userEnd is the end of the addresses of programs, with four levels of page tables.
	userEnd = 1 << 47
	// vsyscallPage is the one page above that a program can read (Linux, uapi/asm/vsyscall.h).
	vsyscallPage = 0xffffffffff600000

	headerSize  = 64
	programSize = 56
	// manySegments is PN_XNUM of elf.h: the number stands in section 0.
	manySegments = 0xffff
)

// Open reads the header, the segments and the notes of a core file of size bytes. r stays the
// caller's and must live as long as the Core. What is read and kept is charged to budget, which may be nil.
// Errors: ErrNotCore (wrapped), *FormatError, *checkpoint.LimitError, and those of r.
func Open(r io.ReaderAt, size int64, name string, budget *checkpoint.Budget) (*Core, error) {
	budget.AddFile(size)
	c := &Core{name: name, r: r, size: size, budget: budget}
	h, err := c.header()
	if err != nil {
		return nil, err
	}
	noted, err := c.readSegments(h)
	if err != nil {
		return nil, err
	}
	for _, s := range noted {
		if err := c.readNotes(s); err != nil {
			return nil, err
		}
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, c.addUnlisted()
}

// addUnlisted adds what is mapped from files and no segment has: gdb leaves read-only data and code out
// of its core files altogether.
func (c *Core) addUnlisted() error {
	if err := c.take(int64(len(c.files))*int64(unsafe.Sizeof(segment{})), "segments"); err != nil {
		return err
	}
	listed := c.segments
	for _, a := range disjoint(c.files) {
		at := a.start
		for len(listed) > 0 && listed[0].end <= at {
			listed = listed[1:]
		}
		for _, s := range listed {
			if s.start >= a.end {
				break
			}
			c.addGap(at, s.start)
			at = s.end
		}
		c.addGap(at, a.end)
	}
	return c.sortSegments()
}

// addGap adds a segment of which nothing is stored.
func (c *Core) addGap(start, end uint64) {
	if start < end {
		c.segments = append(c.segments, segment{start: start, end: end, prot: checkpoint.ProtRead, unlisted: true})
	}
}

// damaged returns an error about the file.
func (c *Core) damaged(format string, args ...any) error {
	return &FormatError{File: c.name, What: fmt.Sprintf(format, args...)}
}

// limited names the file in an error of the budget.
func (c *Core) limited(err error) error {
	var limit *checkpoint.LimitError
	if errors.As(err, &limit) {
		return &checkpoint.LimitError{File: c.name, Part: limit.Part, Work: limit.Work, Limit: limit.Limit}
	}
	return err
}

// take charges memory that is kept, and the way through as many bytes.
func (c *Core) take(n int64, part string) error {
	err := c.budget.Take(n, part)
	if err == nil {
		err = c.budget.Spend(n, part)
	}
	return c.limited(err)
}

// table is where the program headers are.
type table struct{ off, count uint64 }

// header reads the ELF header.
func (c *Core) header() (t table, err error) {
	var h [headerSize]byte
	if n, err := c.r.ReadAt(h[:], 0); n < len(h) {
		if err != nil && !errors.Is(err, io.EOF) {
			return t, fmt.Errorf("corefile: %w", err)
		}
		return t, fmt.Errorf("corefile: %s: %w", c.name, ErrNotCore)
	}
	le := binary.LittleEndian
	isCore := string(h[:4]) == elf.ELFMAG && elf.Class(h[elf.EI_CLASS]) == elf.ELFCLASS64 && elf.Data(h[elf.EI_DATA]) == elf.ELFDATA2LSB &&
		elf.Type(le.Uint16(h[16:])) == elf.ET_CORE && elf.Machine(le.Uint16(h[18:])) == elf.EM_X86_64
	if !isCore {
		return t, fmt.Errorf("corefile: %s: %w", c.name, ErrNotCore)
	}
	t = table{le.Uint64(h[32:]), uint64(le.Uint16(h[56:]))}
	if le.Uint16(h[54:]) != programSize {
		return t, c.damaged("its program headers have %d bytes each, not %d", le.Uint16(h[54:]), programSize)
	}
	if t.count == manySegments {
		if t.count, err = c.manySegments(le.Uint64(h[40:])); err != nil {
			return t, err
		}
	}
	size := uint64(max(c.size, 0))
	if t.off > size || t.count > (size-t.off)/programSize {
		return t, c.damaged("it claims %d program headers at %#x, which is behind its end", t.count, t.off)
	}
	return t, nil
}

// manySegments reads how many program headers there are from the first section header.
func (c *Core) manySegments(at uint64) (uint64, error) {
	var s [64]byte
	if at > uint64(max(c.size, 0)) {
		return 0, c.damaged("its section header lies behind its end")
	}
	if n, _ := c.r.ReadAt(s[:], int64(at)); n < len(s) {
		return 0, c.damaged("its section header lies behind its end")
	}
	return uint64(binary.LittleEndian.Uint32(s[44:])), nil
}

// readSegments reads the program headers. It returns those of notes.
func (c *Core) readSegments(t table) (noted []segment, err error) {
	const each = int64(unsafe.Sizeof(segment{}))
	if err := c.take(int64(t.count)*(each+programSize), "segments"); err != nil {
		return nil, err
	}
	b := make([]byte, t.count*programSize)
	if n, err := c.r.ReadAt(b, int64(t.off)); n < len(b) {
		return nil, fmt.Errorf("corefile: %s: %w", c.name, err)
	}
	c.segments = make([]segment, 0, t.count)
	for ; len(b) > 0; b = b[programSize:] {
		p := programHeader(b)
		if p.Type == elf.PT_NOTE {
			s := segment{off: int64(min(p.Off, 1<<62))}
			s.stored, _ = c.stored(&p)
			noted = append(noted, s)
			continue
		}
		if p.Type != elf.PT_LOAD || p.Memsz == 0 {
			continue
		}
		if err := c.addSegment(&p); err != nil {
			return nil, err
		}
	}
	return noted, c.sortSegments()
}

// programHeader decodes one Elf64_Phdr.
func programHeader(b []byte) elf.ProgHeader {
	le := binary.LittleEndian
	return elf.ProgHeader{
		Type: elf.ProgType(le.Uint32(b)), Flags: elf.ProgFlag(le.Uint32(b[4:])),
		Off: le.Uint64(b[8:]), Vaddr: le.Uint64(b[16:]), Filesz: le.Uint64(b[32:]), Memsz: le.Uint64(b[40:]),
	}
}

// stored returns how many bytes of a segment the file has, and how many it claims and has not.
func (c *Core) stored(p *elf.ProgHeader) (n, missing uint64) {
	size := uint64(max(c.size, 0))
	there := size - min(p.Off, size)
	return min(p.Filesz, there), p.Filesz - min(p.Filesz, there)
}

// addSegment adds a loaded segment.
func (c *Core) addSegment(p *elf.ProgHeader) error {
	if p.Vaddr == vsyscallPage && p.Memsz == pageSize {
		return nil // it is the same in each process, and its code is never executed
	}
	if p.Vaddr%pageSize != 0 {
		return c.damaged("a segment begins at %#x, which is no page's start", p.Vaddr)
	}
	if p.Vaddr >= userEnd || p.Memsz > userEnd-p.Vaddr {
		return c.damaged("a segment of %#x bytes at %#x lies behind the addresses of programs", p.Memsz, p.Vaddr)
	}
	p.Filesz = min(p.Filesz, p.Memsz)
	s := segment{start: p.Vaddr, end: (p.Vaddr + p.Memsz + pageSize - 1) &^ (pageSize - 1), off: int64(min(p.Off, 1<<62))}
	var missing uint64
	s.stored, missing = c.stored(p)
	c.truncated += missing // of disjoint ranges of addresses: no overflow, else they are refused
	s.prot = protOf(p.Flags)
	c.segments = append(c.segments, s)
	return nil
}

// protOf converts the flags of a segment.
func protOf(f elf.ProgFlag) (prot uint8) {
	if f&elf.PF_R != 0 {
		prot = checkpoint.ProtRead
	}
	if f&elf.PF_W != 0 {
		prot |= checkpoint.ProtWrite
	}
	if f&elf.PF_X != 0 {
		prot |= checkpoint.ProtExec
	}
	return prot
}

// sortSegments sorts the segments and refuses those that overlap: no writer of core files makes them,
// and what would be there is anybody's guess.
func (c *Core) sortSegments() error {
	slices.SortStableFunc(c.segments, func(a, b segment) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(c.segments); i++ {
		if a, b := &c.segments[i-1], &c.segments[i]; b.start < a.end {
			return c.damaged("its segments at %#x and %#x overlap", a.start, b.start)
		}
	}
	return nil
}

// check says what a core file must have.
func (c *Core) check() error {
	if len(c.threads) == 0 {
		return c.damaged("it has no thread (no NT_PRSTATUS note)")
	}
	if len(c.segments) == 0 {
		return c.damaged("it has no memory")
	}
	seen := make(map[checkpoint.TID]bool, len(c.threads))
	for i := range c.threads {
		tid := c.threads[i].tid
		if tid < 1 || seen[tid] {
			return c.damaged("thread %d is none, or there twice", tid)
		}
		seen[tid] = true
	}
	return nil
}

// segmentAt returns the segment that holds an address, nil when none does.
func (c *Core) segmentAt(addr uint64) *segment {
	i, ok := slices.BinarySearchFunc(c.segments, addr, func(s segment, a uint64) int {
		switch {
		case a < s.start:
			return 1
		case a >= s.end:
			return -1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return &c.segments[i]
}

// read fills b with what the file has at addr and returns how many bytes: the readable prefix, within
// one segment.
func (c *Core) read(addr uint64, b []byte) int {
	s := c.segmentAt(addr)
	if s == nil || addr-s.start >= s.stored {
		return 0
	}
	b = b[:min(uint64(len(b)), s.stored-(addr-s.start))]
	n, _ := c.r.ReadAt(b, s.off+int64(addr-s.start)) // a short read is one
	return n
}
