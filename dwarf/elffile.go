package dwarf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"strings"

	"github.com/klauspost/compress/zlib"
)

// The content of an ELF file's sections, decompressed where it is compressed (ELF gABI,
// chapter 4, SHF_COMPRESSED; before that GNU's .zdebug_ sections). All of it is
// charged, for a small file can ask for much memory. What the sections mean is read
// elsewhere.

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

// inflateAtOnce is how many bytes are charged at once, so that Ctrl-C is soon heard.
const inflateAtOnce = 1 << 20

// section returns the content of a section, nil when it has none or cannot be read.
// It is not copied when it is not compressed.
func (f *file) section(s *elf.Section) []byte {
	if s.Type == elf.SHT_NOBITS || s.Offset > uint64(len(f.image)) || s.FileSize > uint64(len(f.image))-s.Offset {
		return nil
	}
	raw := f.image[s.Offset : s.Offset+s.FileSize]
	switch {
	case s.Flags&elf.SHF_COMPRESSED != 0:
		return f.inflate(raw, s.Size, func() (io.Reader, error) { return openCompressed(s, raw) })
	case strings.HasPrefix(s.Name, ".zdebug_"):
		// GNU's way before SHF_COMPRESSED: "ZLIB", and the size, big-endian.
		if len(raw) < 12 || string(raw[:4]) != "ZLIB" {
			return nil
		}
		return f.inflate(raw, binary.BigEndian.Uint64(raw[4:]), func() (io.Reader, error) { return zlib.NewReader(bytes.NewReader(raw[12:])) })
	}
	return raw
}

// openCompressed decompresses a section. debug/elf would use compress/zlib, which takes a third longer.
func openCompressed(s *elf.Section, raw []byte) (io.Reader, error) {
	const headerSize = 24 // of Elf64_Chdr: type, reserved, size, alignment
	if len(raw) >= headerSize && elf.CompressionType(binary.LittleEndian.Uint32(raw)) == elf.COMPRESS_ZLIB {
		return zlib.NewReader(bytes.NewReader(raw[headerSize:]))
	}
	return s.Open(), nil
}

// inflate decompresses raw to size bytes.
func (f *file) inflate(raw []byte, size uint64, open func() (io.Reader, error)) []byte {
	ratio := uint64(deflateRatio)
	if len(raw) >= 4 && elf.CompressionType(binary.LittleEndian.Uint32(raw)) == elf.COMPRESS_ZSTD {
		ratio = zstdRatio
	}
	if size > ratio*uint64(len(raw)) || size > 1<<40 || f.meter.take(int(size)) != nil {
		return nil
	}
	r, err := open()
	if err != nil {
		return nil
	}
	b := make([]byte, size)
	for rest := b; len(rest) > 0; {
		part := rest[:min(len(rest), inflateAtOnce)]
		if f.meter.spend(inflateWork*len(part)) != nil {
			return nil
		}
		if _, err := io.ReadFull(r, part); err != nil {
			return nil
		}
		rest = rest[len(part):]
	}
	return b
}
