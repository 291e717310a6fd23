package dwarf

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Bounds of the section table of a file. The standard library reads the whole
// table with a copy of each section's name.
const (
	maxSections    = 1 << 15
	maxSectionName = 4 << 20 // of all sections, in bytes
)

var errSections = errors.New("the section table is too large")

// OpenELF is elf.NewFile for a file that may be made to do harm. Errors are those
// of elf.NewFile, and say that the section table asks for too much.
func OpenELF(r io.ReaderAt) (f *elf.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("%w: %v", errFile, p)
		}
	}()
	if err := checkSections(r); err != nil {
		return nil, fmt.Errorf("%w: %w", errFile, err)
	}
	f, err = elf.NewFile(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFile, err)
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

// file is an ELF file in memory with what reading it is charged to.
type file struct {
	*elf.File
	image []byte
	meter *meter
}

// Greatest ratios of compression: of deflate (RFC 1951: 258 bytes in 2 bits), and
// of zstd's blocks (RFC 8878: 128 KiB in 4 bytes).
const (
	deflateRatio = 1032
	zstdRatio    = 32 << 10
)

// Costs of decompressing, in bytes of work for each byte that comes out.
const inflateWork = 4

// section returns the content of a section, nil when it has none or cannot be read.
// It is not copied when it is not compressed.
func (f *file) section(s *elf.Section) []byte {
	if s.Type == elf.SHT_NOBITS || s.Offset > uint64(len(f.image)) || s.FileSize > uint64(len(f.image))-s.Offset {
		return nil
	}
	raw := f.image[s.Offset : s.Offset+s.FileSize]
	switch {
	case s.Flags&elf.SHF_COMPRESSED != 0:
		return f.inflate(raw, s.Size, func() (io.Reader, error) { return s.Open(), nil })
	case strings.HasPrefix(s.Name, ".zdebug_"):
		// GNU's way before SHF_COMPRESSED: "ZLIB", and the size, big-endian.
		if len(raw) < 12 || string(raw[:4]) != "ZLIB" {
			return nil
		}
		return f.inflate(raw, binary.BigEndian.Uint64(raw[4:]), func() (io.Reader, error) { return zlib.NewReader(bytes.NewReader(raw[12:])) })
	}
	return raw
}

// inflate decompresses raw to size bytes.
func (f *file) inflate(raw []byte, size uint64, open func() (io.Reader, error)) []byte {
	ratio := uint64(deflateRatio)
	if len(raw) >= 4 && elf.CompressionType(binary.LittleEndian.Uint32(raw)) == elf.COMPRESS_ZSTD {
		ratio = zstdRatio
	}
	if size > ratio*uint64(len(raw)) || size > 1<<40 || f.meter.take(int(size)) != nil || f.meter.spend(inflateWork*int(size)) != nil {
		return nil
	}
	r, err := open()
	if err != nil {
		return nil
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil
	}
	return b
}
