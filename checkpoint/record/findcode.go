//go:build linux && amd64

package record

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"io"
	"slices"
	"sync"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay/x86"
)

// Where the code of an ELF file has instructions of some kind: RDTSC and RDTSCP, or RDRAND and RDSEED. Their bytes, as 0F 31, are
// often part of other instructions, so each function that has them is decoded from its start. Where functions start and end the
// unwind table tells (.eh_frame, found by .eh_frame_hdr: Linux Standard Base Core Specification, 10.6), which
// compilers write for all of them. Bytes that belong to no function, or to one that cannot be decoded, stay
// in doubt: they may be data, and then nothing may be written there.

// insnClass is a kind of instructions.
type insnClass struct {
	index     func(b []byte) int     // where bytes stand first that one may begin with, but for prefixes; -1 for nowhere
	matches   func(code []byte) bool // whether code that begins so may be one; it looks at three bytes at most
	mnemonics []string
}

// The kinds.
var (
	classTSC = insnClass{func(b []byte) int { return bytes.IndexByte(b, 0x0f) }, func(code []byte) bool {
		k, _ := trapped(code)
		return k == checkpoint.InstrRDTSC || k == checkpoint.InstrRDTSCP
	}, []string{"RDTSC", "RDTSCP"}}
	classTraps = insnClass{classTSC.index, func(code []byte) bool {
		k, _ := trapped(code)
		return k != 0 && k != checkpoint.InstrRandom
	}, []string{"RDTSC", "RDTSCP", "CPUID"}}
	classRandom = insnClass{indexRandom, func(code []byte) bool { return len(code) > 2 && code[2] >= 0xf0 }, []string{"RDRAND", "RDSEED"}}
)

// foundCode is where a file has instructions of a kind.
type foundCode struct {
	known []foundInsn // by offset
	doubt []uint64    // offsets in the file of bytes that may be one, in order
}

// foundInsn is an instruction, and what the file has there.
type foundInsn struct {
	off uint64 // in the file
	own [jumpSize]byte
}

// codeLimit bounds the code of a file that is looked through.
const codeLimit = 128 << 20

// errNotOurs says that a file is no ELF file of this architecture with sections, whose code nothing is known of.
var errNotOurs = errors.New("no ELF file for x86-64 with sections")

// errTooMany says that a file has more of them than a program has.
var errTooMany = errors.New("too many instructions of a kind")

// mostFound bounds the places in a file.
const mostFound = 1 << 16

// findCode looks through the executable sections of a file. Nothing outside of them is executed.
func findCode(r io.ReaderAt, class *insnClass) (foundCode, error) {
	c, err := newCodeSearch(r, class)
	if err != nil {
		return foundCode{}, err
	}
	for _, s := range c.sections {
		if err := class.each(r, s.Offset, s.FileSize, c.look); err != nil {
			return foundCode{}, err
		}
	}
	return c.result(), nil
}

// pieceSize is how much of a file is looked through at once. Memory for that is used again: programs map tens of files, and memory that
// nobody has written to yet costs as much as to look through it.
const pieceSize = 64 << 10

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// each calls f, until that fails, with the offset of each place in n bytes of a file, from off on, that may be an instruction of the kind. It is
// asked of each file that a program maps for execution, so that it has to be fast.
func (class *insnClass) each(r io.ReaderAt, off, n uint64, f func(off uint64) error) error {
	const ahead = 2 // bytes behind the first that matches looks at
	piece := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(piece)
	b := piece[:]
	for n > 0 {
		b = b[:min(n, uint64(len(b)))]
		got, err := r.ReadAt(b, int64(off))
		begins := got // in b, before that
		if err == nil && uint64(got) < n {
			begins -= ahead
		}
		for i := 0; ; i++ {
			at := class.index(b[i:got])
			if i += at; at < 0 || i >= begins {
				break
			}
			if !class.matches(b[i:got]) {
				continue
			}
			if err := f(off + uint64(i)); err != nil {
				return err
			}
		}
		if err != nil && uint64(got) < n {
			return err
		}
		off, n = off+uint64(begins), n-uint64(begins)
	}
	return nil
}

// codeSearch finds out what is an instruction of a kind.
type codeSearch struct {
	r         io.ReaderAt
	class     *insnClass
	sections  []*elf.Section                      // with code
	functions func(addr uint64) (abi.Range, bool) // which one has an address
	found     foundCode
	guesses   bool // what is in doubt is taken for an instruction where it looks like one

	// What it is in. Places come in order, so that each function is decoded once.
	fn   abi.Range
	code []byte // of fn, and some bytes behind it
	at   uint64 // of an instruction in it, up to which it has been decoded
}

func newCodeSearch(r io.ReaderAt, class *insnClass) (*codeSearch, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, err
	}
	if f.Class != elf.ELFCLASS64 || f.Machine != elf.EM_X86_64 || len(f.Sections) == 0 {
		return nil, errNotOurs
	}
	c := &codeSearch{r: r, class: class}
	size := uint64(0)
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 || s.Type == elf.SHT_NOBITS {
			continue
		}
		if size += s.FileSize; s.FileSize > codeLimit || size > codeLimit {
			return nil, errNotOurs
		}
		c.sections = append(c.sections, s)
	}
	table := sync.OnceValue(func() *unwindTable { return readUnwindTable(f, r) })
	symbols := sync.OnceValue(func() []abi.Range { return readSymbols(f) })
	c.functions = func(addr uint64) (abi.Range, bool) {
		fn, ok := table().holding(addr)
		if !ok && c.guesses {
			return holdingOf(symbols(), addr)
		}
		return fn, ok
	}
	return c, nil
}

// result returns what was found, in order.
func (c *codeSearch) result() foundCode {
	slices.SortFunc(c.found.known, func(a, b foundInsn) int { return cmp.Compare(a.off, b.off) })
	slices.Sort(c.found.doubt)
	return c.found
}

// look looks at a place that may be an instruction of the kind, by its offset in the file.
func (c *codeSearch) look(off uint64) error {
	i := slices.IndexFunc(c.sections, func(s *elf.Section) bool { return off-s.Offset < s.FileSize })
	if i < 0 {
		return nil
	}
	s := c.sections[i]
	at, is, err := c.insnAt(s, s.Addr+off-s.Offset)
	switch own := c.code[min(at-c.fn.Addr, uint64(len(c.code))):]; {
	case errors.Is(err, errOutside) && c.isAmidData(s, off):
	case err != nil && c.guesses && c.guess(s, off):
	case err != nil, is && len(own) < jumpSize:
		c.found.doubt = append(c.found.doubt, off)
	case is:
		c.found.known = append(c.found.known, foundInsn{s.Offset + at - s.Addr, [jumpSize]byte(own)})
	}
	if len(c.found.known)+len(c.found.doubt) > mostFound {
		return errTooMany
	}
	return nil
}

// Why it is not known whether bytes are an instruction.
var (
	errOutside = errors.New("in no function that is known")
	errDecode  = errors.New("in a function that cannot be decoded")
)

// insnAt finds the instruction that has the byte at an address in a section, and reports whether it is of the kind.
func (c *codeSearch) insnAt(s *elf.Section, addr uint64) (at uint64, is bool, err error) {
	if addr-c.fn.Addr >= c.fn.Len || addr < c.at {
		if err := c.enter(s, addr); err != nil {
			return 0, false, err
		}
	}
	for {
		d, err := x86.Decode(c.code[c.at-c.fn.Addr:])
		if err != nil {
			return 0, false, errDecode
		}
		if addr-c.at < uint64(d.Len) {
			return c.at, slices.Contains(c.class.mnemonics, d.Mnemonic), nil
		}
		c.at += uint64(d.Len)
	}
}

// enter reads the function that has an address in a section.
func (c *codeSearch) enter(s *elf.Section, addr uint64) error {
	const behind = 16 // the last instruction, which may be too long, and the bytes that a jump takes
	fn, ok := c.functions(addr)
	if !ok || fn.Addr < s.Addr {
		return errOutside
	}
	code := make([]byte, min(s.FileSize-(fn.Addr-s.Addr), fn.Len+behind))
	if _, err := c.r.ReadAt(code, int64(s.Offset+fn.Addr-s.Addr)); err != nil {
		return errDecode
	}
	c.fn, c.code, c.at = fn, code, fn.Addr
	return nil
}

// guess takes a place in a section that belongs to no function that is known for an instruction where all says so. Go has no unwind table, and hand-written
// assembly often none.
func (c *codeSearch) guess(s *elf.Section, off uint64) bool {
	from, to := max(off, s.Offset+guessBefore)-guessBefore, min(off+guessBehind, s.Offset+s.FileSize)
	b := make([]byte, to-from)
	if _, err := c.r.ReadAt(b, int64(from)); err != nil || !looksLikeTrap(b, int(off-from)) {
		return false
	}
	c.found.known = append(c.found.known, foundInsn{off, [jumpSize]byte(b[off-from:])})
	return true
}

// How much of what surrounds a place is looked at, before and behind it.
const guessBefore, guessBehind = 64, 32

// looksLikeTrap reports whether b[i] looks like the start of RDTSC, RDTSCP or CPUID. From whatever byte in front of it one begins to decode, one
// comes to it, for nearly all: code that is decoded from the midst of an instruction soon is as it should be. And the two halves of a
// time are put together nearby, or what CPUID says is moved elsewhere right behind it.
func looksLikeTrap(b []byte, i int) bool {
	const soon = 12
	if len(b) < i+soon {
		return false
	}
	switch k, _ := trapped(b[i:]); k {
	case checkpoint.InstrRDTSC, checkpoint.InstrRDTSCP:
		if shift := []byte{0x48, 0xc1, 0xe2, 0x20}; !bytes.Contains(b, shift) { // SHL RDX, 32
			return false
		}
	case checkpoint.InstrCPUID:
		if mov := byte(0x89); bytes.IndexByte(b[i:i+soon], mov) < 0 {
			return false
		}
	default:
		return false
	}
	reached, missed := 0, 0
	for from := range i {
		at := from
		for at < i {
			d, err := x86.Decode(b[at:])
			if err != nil {
				break
			}
			at += int(d.Len)
		}
		switch {
		case at == i:
			reached++
		case at > i:
			missed++
		default: // what it came to is no instruction, so it began in the midst of one
		}
	}
	return reached >= i/2 && missed <= reached/8
}

// isAmidData reads what surrounds a place in a section that is in no function.
func (c *codeSearch) isAmidData(s *elf.Section, off uint64) bool {
	from, to := max(off, s.Offset+dataAround)-dataAround, min(off+dataAround, s.Offset+s.FileSize)
	b := make([]byte, to-from)
	_, err := c.r.ReadAt(b, int64(from))
	return err == nil && isAmidData(b, int(off-from))
}

// isAmidData reports whether b, what surrounds b[i], which is in no function, cannot be code: tables of constants stand among the code of some
// libraries. On both sides there are several instructions that no program can execute; code without an entry in the unwind table
// has none.
func isAmidData(b []byte, i int) bool {
	const enough = 24
	return impossible(b[:i]) >= enough && impossible(b[i:]) >= enough
}

// dataAround is how much of what surrounds a place, on each side, is looked at.
const dataAround = 2048

// impossible counts the instructions in b that no program can execute.
func impossible(b []byte) (n int) {
	for len(b) > 0 {
		d, err := x86.Decode(b)
		switch {
		case errors.Is(err, x86.ErrTruncated):
			return n
		case err != nil, needsPrivilege[d.Mnemonic]:
			n++
			b = b[1:]
		default:
			b = b[d.Len:]
		}
	}
	return n
}

// needsPrivilege are instructions of an operating system (Intel SDM volume 3, 6.9), those of a single byte.
var needsPrivilege = map[string]bool{"HLT": true, "CLI": true, "STI": true, "IN": true, "OUT": true, "INS": true, "OUTS": true, "IRET": true}
