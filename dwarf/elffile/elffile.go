// Package elffile opens ELF files that may be made to do harm: debug/elf reads the whole
// section table, with a copy of each name, before anybody can look at it. It is for
// those who read debugging information and for those who rebuild files, and knows
// neither.
package elffile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrNotELF is wrapped by the errors of Open.
var ErrNotELF = errors.New("not an ELF file for x86-64")

// Bounds of the section table of a file. The standard library reads the whole
// table with a copy of each section's name.
const (
	maxSections    = 1 << 15
	maxSectionName = 4 << 20 // of all sections, in bytes
)

var errSections = errors.New("the section table is too large")

// Open is elf.NewFile for a file that may be made to do harm. Errors are those of
// elf.NewFile, and say that the section table asks for too much.
func Open(r io.ReaderAt) (f *elf.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("%w: %v", ErrNotELF, p)
		}
	}()
	if err := checkSections(r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotELF, err)
	}
	f, err = elf.NewFile(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotELF, err)
	}
	return f, nil
}

// checkSections reads the section table of a 64-bit file before anybody trusts it.
// What makes no sense is left to the standard library, which says what it is.
func checkSections(r io.ReaderAt) error {
	var h [64]byte
	if n, _ := r.ReadAt(h[:], 0); n < len(h) || elf.Class(h[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(h[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return errors.New("no 64-bit ELF header")
	}
	le := binary.LittleEndian
	off, count, names := le.Uint64(h[40:]), int(le.Uint16(h[60:])), int(le.Uint16(h[62:]))
	switch {
	case off == 0 && count == 0:
		return nil
	case count == 0, count > maxSections, off > 1<<62: // 0: section 0 has the number, 65,280 or more
		return errSections
	case le.Uint16(h[58:]) != 64 || names >= count:
		return nil
	}
	table := make([]byte, 64*count)
	if n, _ := r.ReadAt(table, int64(off)); n < len(table) {
		return nil
	}
	s := table[64*names:]
	flags, at, size := elf.SectionFlag(le.Uint64(s[8:])), le.Uint64(s[24:]), le.Uint64(s[32:])
	if flags&elf.SHF_COMPRESSED != 0 || size > maxSectionName || at > 1<<62 {
		return errSections
	}
	strtab := make([]byte, size)
	if n, _ := r.ReadAt(strtab, int64(at)); n < len(strtab) {
		return nil
	}
	sum := 0
	for i := range count {
		if name := le.Uint32(table[64*i:]); uint64(name) < size {
			if n := bytes.IndexByte(strtab[name:], 0); n > 0 {
				sum += n
			}
		}
		if sum > maxSectionName {
			return errSections
		}
	}
	return nil
}
