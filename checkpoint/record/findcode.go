//go:build linux && amd64

package record

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
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
	first     []byte                 // that their bytes begin with, but for prefixes
	matches   func(code []byte) bool // whether code that begins so may be one
	mnemonics []string
}

// The kinds.
var (
	classTSC = insnClass{[]byte{0x0f}, func(code []byte) bool {
		k, _ := trapped(code)
		return k == checkpoint.InstrRDTSC || k == checkpoint.InstrRDTSCP
	}, []string{"RDTSC", "RDTSCP"}}
	classRandom = insnClass{[]byte{0x0f, 0xc7}, func(code []byte) bool { return len(code) > 2 && code[2] >= 0xf0 }, []string{"RDRAND", "RDSEED"}}
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

// findCode looks through the executable sections of a file. Nothing outside of them is executed.
func findCode(r io.ReaderAt, class *insnClass) (foundCode, error) {
	var c foundCode
	f, err := elf.NewFile(r)
	if err != nil {
		return c, err
	}
	if f.Class != elf.ELFCLASS64 || f.Machine != elf.EM_X86_64 || len(f.Sections) == 0 {
		return c, errNotOurs
	}
	functions := sync.OnceValue(func() []abi.Range { return functionsOf(f) })
	size := uint64(0)
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 || s.Type == elf.SHT_NOBITS {
			continue
		}
		if size += s.FileSize; s.FileSize > codeLimit || size > codeLimit {
			return c, errNotOurs
		}
		b := make([]byte, s.FileSize)
		if _, err := r.ReadAt(b, int64(s.Offset)); err != nil {
			return c, err
		}
		c.look(b, s, class, functions)
	}
	slices.SortFunc(c.known, func(a, b foundInsn) int { return int(a.off) - int(b.off) })
	slices.Sort(c.doubt)
	return c, nil
}

// look looks through the code b of a section.
func (c *foundCode) look(b []byte, s *elf.Section, class *insnClass, functions func() []abi.Range) {
	for i := 0; ; i++ {
		n := bytes.Index(b[i:], class.first)
		if n < 0 {
			return
		}
		if i += n; !class.matches(b[i:]) {
			continue
		}
		at, found, err := class.at(b, s.Addr, s.Addr+uint64(i), functions())
		switch off := s.Offset + at - s.Addr; {
		case errors.Is(err, errOutside) && isAmidData(b, i):
		case err != nil, found && uint64(len(b))-(at-s.Addr) < jumpSize:
			c.doubt = append(c.doubt, s.Offset+uint64(i))
		case found:
			insn := foundInsn{off: off}
			copy(insn.own[:], b[at-s.Addr:])
			c.known = append(c.known, insn)
		}
	}
}

// Why it is not known whether bytes are an instruction.
var (
	errOutside = errors.New("in no function that is known")
	errDecode  = errors.New("in a function that cannot be decoded")
)

// at finds the instruction that has the bytes at an address in b, which lies at base, and reports whether it is of the kind.
func (class *insnClass) at(b []byte, base, addr uint64, functions []abi.Range) (at uint64, is bool, err error) {
	i, found := slices.BinarySearchFunc(functions, addr, func(f abi.Range, addr uint64) int {
		switch {
		case addr < f.Addr:
			return 1
		case addr-f.Addr >= f.Len:
			return -1
		}
		return 0
	})
	if !found || functions[i].Addr < base {
		return 0, false, errOutside
	}
	for at = functions[i].Addr; ; {
		d, err := x86.Decode(b[at-base:])
		if err != nil {
			return 0, false, errDecode
		}
		if addr-at < uint64(d.Len) {
			return at, slices.Contains(class.mnemonics, d.Mnemonic), nil
		}
		at += uint64(d.Len)
	}
}

// isAmidData reports whether what surrounds b[i], which is in no function, cannot be code: tables of constants stand among the code of some
// libraries. On both sides there are several instructions that no program can execute; code without an entry in the unwind table
// has none.
func isAmidData(b []byte, i int) bool {
	const around, enough = 2048, 24
	return impossible(b[max(i-around, 0):i]) >= enough && impossible(b[i:min(i+around, len(b))]) >= enough
}

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

// Encodings of pointers in .eh_frame_hdr (DW_EH_PE_* of the Linux Standard Base, 10.5.1), as all linkers write it.
const (
	pcrelInt32   = 0x1b
	uint32Plain  = 0x03
	datarelInt32 = 0x3b
)

// functionsOf returns the functions of a file by its unwind table, in order; none where that is not as usual.
func functionsOf(f *elf.File) []abi.Range {
	s, h := f.Section(".eh_frame"), f.Section(".eh_frame_hdr")
	if s == nil || h == nil || s.FileSize > codeLimit || h.FileSize > codeLimit || s.Type == elf.SHT_NOBITS || h.Type == elf.SHT_NOBITS {
		return nil
	}
	frames, err := s.Data()
	table, terr := h.Data()
	if err != nil || terr != nil || len(table) < 12 || !bytes.Equal(table[:4], []byte{1, pcrelInt32, uint32Plain, datarelInt32}) {
		return nil
	}
	var list []abi.Range
	for row := table[12:]; len(row) >= 8; row = row[8:] {
		start, entry := h.Addr+offset32(row), h.Addr+offset32(row[4:])
		if fn, ok := functionOf(frames, s.Addr, entry); ok && fn.Addr == start {
			list = append(list, fn)
		}
	}
	slices.SortFunc(list, func(a, b abi.Range) int {
		if a.Addr < b.Addr {
			return -1
		}
		return 1
	})
	return list
}

// functionOf reads the function that the entry at an address of the unwind table is for. Its start is taken for an offset from where that
// stands, which is right where it is what the sorted table says, too.
func functionOf(frames []byte, base, entry uint64) (fn abi.Range, ok bool) {
	const start, size = 8, 12 // behind a length and the offset of what it has in common with others
	at := entry - base
	if entry < base || at > uint64(len(frames)) || uint64(len(frames))-at < size+4 {
		return fn, false
	}
	b := frames[at:]
	return abi.Range{Addr: entry + start + offset32(b[start:]), Len: uint64(binary.LittleEndian.Uint32(b[size:]))}, true
}

// offset32 is a signed offset of 32 bits.
func offset32(b []byte) uint64 { return uint64(int64(int32(binary.LittleEndian.Uint32(b)))) }
