package damage

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"vplay/checkpoint"
)

// Forges of ELF files: a recording in which a program's own file has debugging
// information that asks for far more than it is worth. The program stands in that file's
// code at its end, so that info and the debugger open it.

const (
	moduleAt = 1 << 32
	codeIn   = 0x1000                                     // where the file's code is
	forgedID = "0123456789abcdef0123456789abcdef01234567" // the file's build-id
)

// part of a forged ELF file.
type elfPart struct {
	name  string
	typ   elf.SectionType
	flags elf.SectionFlag
	data  []byte
	fill  byte // a byte that is repeated behind data
	n     int  // so often
	link  uint32
}

// forgeELF writes a recording of a program whose file has these sections.
func forgeELF(path string, parts ...elfPart) error {
	return record(path, 1, func(w *checkpoint.Writer, iv *checkpoint.Interval) error {
		b, size, shoff := elfFile(parts, elf.SHF_ALLOC)
		if err := w.AddObject(checkpoint.Object{ID: 1, Kind: checkpoint.ObjectFile, Path: "/forged", Size: int64(size)}); err != nil {
			return err
		}
		for off := uint64(0); off < size; off += pageSize {
			ref, err := w.AddPage(b(off))
			if err != nil {
				return err
			}
			iv.Pages = append(iv.Pages, checkpoint.PageEntry{Addr: moduleAt + off, Ref: ref})
			if off >= shoff&^(pageSize-1) {
				if err := w.AddObjectPage(checkpoint.ObjectPage{Object: 1, Index: off / pageSize, Ref: ref}); err != nil {
					return err
				}
			}
		}
		module := checkpoint.Mapping{Start: moduleAt, End: moduleAt + size, Prot: 5, Object: 1, Name: "/forged"}
		iv.Maps = []checkpoint.Mapping{iv.Maps[0], module, iv.Maps[1]}
		for _, c := range []*checkpoint.Context{&iv.Start[0], &iv.End.Contexts[0]} {
			c.Regs.RIP = moduleAt + codeIn
		}
		return w.SetFinal(&checkpoint.Final{Contexts: iv.End.Contexts, Maps: iv.Maps})
	})
}

// elfFile lays the sections out and returns the pages of the file, its size, and
// where the section table is.
func elfFile(parts []elfPart, flags elf.SectionFlag) (page func(off uint64) []byte, size, shoff uint64) {
	le := binary.LittleEndian
	head := make([]byte, 2*pageSize)
	copy(head, elfPage(0, 0)[:64])
	clear(head[64:])
	copy(head[codeIn:], bytes.Repeat([]byte{0xeb, 0xfe}, pageSize/2))
	names := []byte("\x00.shstrtab\x00")
	table := make([]byte, 64)
	type run struct {
		at uint64
		elfPart
	}
	var runs []run
	at := uint64(len(head))
	header := func(name string, typ elf.SectionType, flags elf.SectionFlag, off, n uint64, link uint32) {
		s := le.AppendUint32(nil, uint32(bytes.Index(append(names, 0), append([]byte(name), 0))))
		s = le.AppendUint32(s, uint32(typ))
		for _, v := range []uint64{uint64(flags), off, off, n} {
			s = le.AppendUint64(s, v)
		}
		s = le.AppendUint32(s, link)
		table = append(table, append(s, make([]byte, 20)...)...)
	}
	for _, p := range parts {
		names = append(append(names, p.name...), 0)
		n := uint64(len(p.data) + p.n)
		header(p.name, p.typ, p.flags|flags, at, n, p.link)
		runs = append(runs, run{at, p})
		at = (at + n + pageSize - 1) &^ (pageSize - 1)
	}
	shoff = at
	size = at + uint64(len(table)+64+len(names)+pageSize)&^(pageSize-1)
	header(".shstrtab", elf.SHT_STRTAB, 0, shoff+uint64(len(table))+64, uint64(len(names)), 0)
	end := append(table, names...)
	le.PutUint64(head[40:], shoff)
	le.PutUint16(head[60:], uint16(len(parts)+2))
	le.PutUint16(head[62:], uint16(len(parts)+1))
	le.PutUint16(head[56:], 2)
	const note = 0x200
	copy(head[note:], "\x04\x00\x00\x00\x14\x00\x00\x00\x03\x00\x00\x00GNU\x00")
	_, _ = hex.Decode(head[note+16:], []byte(forgedID)) // it is hexadecimal
	le.PutUint32(head[64+56:], uint32(elf.PT_NOTE))
	for i, v := range []uint64{note, note, note, 36, 36, 4} {
		le.PutUint64(head[64+56+8+8*i:], v)
	}
	le.PutUint32(head[64:], uint32(elf.PT_LOAD))
	le.PutUint32(head[68:], 5)
	le.PutUint64(head[64+32:], size)
	le.PutUint64(head[64+40:], size)
	runs = append(runs, run{0, elfPart{data: head}}, run{shoff, elfPart{data: end}})
	return func(off uint64) []byte {
		b := make([]byte, pageSize)
		for _, r := range runs {
			length := uint64(len(r.data))
			from, to := max(off, r.at), min(off+pageSize, r.at+length+uint64(r.n))
			for a := from; a < to; a++ {
				if o := a - r.at; o < length {
					a += uint64(copy(b[a-off:], r.data[o:])) - 1
				} else {
					b[a-off] = r.fill
				}
			}
		}
		return b
	}, size, shoff
}

// inflated is a section that becomes n zero bytes: compressed as files have it today, or
// in GNU's old way, which loaded sections may be, too.
func inflated(name string, n int, way elf.CompressionType) elfPart {
	le := binary.LittleEndian
	var b bytes.Buffer
	if way == elf.COMPRESS_ZSTD {
		e, _ := zstd.NewWriter(nil) // the options are good
		b.Write(e.EncodeAll(make([]byte, n), nil))
	} else {
		z := zlib.NewWriter(&b)
		_, _ = z.Write(make([]byte, n)) // to memory
		_ = z.Close()
	}
	if way == 0 {
		return elfPart{name: ".zdebug_" + name, typ: elf.SHT_PROGBITS, data: append(binary.BigEndian.AppendUint64([]byte("ZLIB"), uint64(n)), b.Bytes()...)}
	}
	h := le.AppendUint64(nil, uint64(way))
	h = le.AppendUint64(le.AppendUint64(h, uint64(n)), 1)
	return elfPart{name: ".debug_" + name, typ: elf.SHT_PROGBITS, flags: elf.SHF_COMPRESSED, data: append(h, b.Bytes()...)}
}

func debug(name string, data []byte, fill byte, n int) elfPart {
	return elfPart{name: ".debug_" + name, typ: elf.SHT_PROGBITS, data: data, fill: fill, n: n}
}

// The abbreviations of the forges: 1 is a unit with a name, a line table and code, 2 has
// children and no attributes, 3 is a function with a name in .debug_str.
func abbreviations() []byte {
	return []byte{
		1, 0x11, 1, 0x03, 0x08, 0x10, 0x17, 0x11, 0x01, 0x12, 0x07, 0, 0,
		2, 0x39, 1, 0, 0,
		3, 0x2e, 0, 0x03, 0x0e, 0x11, 0x01, 0x12, 0x07, 0, 0,
		0,
	}
}

// unitOf is a unit of DWARF 4 that has all code, and body below it.
func unitOf(abbrev, lines uint32, body []byte, more int) []byte {
	le := binary.LittleEndian
	b := le.AppendUint16(nil, 4)
	b = le.AppendUint32(b, abbrev)
	b = append(b, 8, 1, 'u', 0)
	b = le.AppendUint32(b, lines)
	b = le.AppendUint64(b, 0)
	b = le.AppendUint64(b, 1<<40)
	b = append(b, body...)
	return append(le.AppendUint32(nil, uint32(len(b)+more)), b...)
}

// forgeInflated has sections that become a gigabyte.
func forgeInflated(path string) error {
	return forgeELF(path, manyInflated(0)...)
}

func manyInflated(ways ...elf.CompressionType) (parts []elfPart) {
	for i, name := range []string{"info", "abbrev", "line", "str", "ranges"} {
		parts = append(parts, inflated(name, 200<<20, ways[i%len(ways)]))
	}
	return parts
}

// forgeSymbolFile has a file of its build-id in a folder beside the recording, with
// sections that become a gigabyte.
func forgeSymbolFile(path string) error {
	page, size, _ := elfFile(manyInflated(elf.COMPRESS_ZLIB, elf.COMPRESS_ZSTD), 0)
	var b []byte
	for off := uint64(0); off < size; off += pageSize {
		b = append(b, page(off)...)
	}
	dir := filepath.Join(symbolFolder(path), forgedID[:2])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, forgedID[2:]+".debug"), b, 0o600); err != nil {
		return err
	}
	return forgeELF(path)
}

// symbolFolder is the folder beside a recording that has symbol files for it.
func symbolFolder(path string) string { return path + ".symbols" }

// forgeEhFrame has a megabyte of frames, and for the code one whose program
// goes on for ever.
func forgeEhFrame(path string) error {
	le := binary.LittleEndian
	cie := append([]byte{0, 0, 0, 0, 1, 0, 1, 0x78, 16}, make([]byte, 3)...)
	b := append(le.AppendUint32(nil, uint32(len(cie))), cie...)
	fde := func(low, n uint64, program []byte) {
		at := len(b) + 4
		body := le.AppendUint32(nil, uint32(at))
		body = le.AppendUint64(le.AppendUint64(body, low), n)
		body = append(body, program...)
		b = append(append(b, le.AppendUint32(nil, uint32(len(body)))...), body...)
	}
	fde(codeIn, 0x100, bytes.Repeat([]byte{0x0a, 0x0b}, 8<<20))
	for i := range uint64(2_000_000) {
		fde(1<<20+i, 1, nil)
	}
	return forgeELF(path, elfPart{name: ".eh_frame", typ: elf.SHT_PROGBITS, data: b})
}

// forgeAbbreviations has 20,000 units, each with abbreviations that begin elsewhere
// in one table of 4 MB.
func forgeAbbreviations(path string) error {
	var table, info []byte
	for code := range uint64(100_000) {
		table = binary.AppendUvarint(table, code+1)
		table = append(table, 0x11, 1)
		for range 16 {
			table = append(table, 0x03, 0x19)
		}
		table = append(table, 0, 0)
	}
	for i := range uint32(20_000) {
		info = append(info, unitOf(i, 0, nil, 0)...)
	}
	return forgeELF(path, debug("abbrev", append(table, 0), 0, 0), debug("info", info, 0, 0))
}

// forgeAttributes has an entry with more attributes than there are, none of which
// takes a byte, and refers to it a hundred million times.
func forgeAttributes(path string) error {
	table := []byte{1, 0x11, 1}
	for range 5_000_000 {
		table = append(table, 0x03, 0x19)
	}
	return forgeELF(path, debug("abbrev", append(table, 0, 0, 0), 0, 0), debug("info", unitOf(0, 0, nil, 100<<20), 1, 100<<20))
}

// forgeDeep has a hundred million entries, each inside of the one before.
func forgeDeep(path string) error {
	return forgeELF(path, debug("abbrev", abbreviations(), 0, 0), debug("info", unitOf(0, 0, nil, 100<<20), 2, 100<<20))
}

// forgeNames has four million functions whose name is a megabyte long.
func forgeNames(path string) error {
	le := binary.LittleEndian
	var body []byte
	for i := range uint64(2_000_000) {
		body = append(body, 3)
		body = le.AppendUint32(body, uint32(i%1000))
		body = le.AppendUint64(body, i)
		body = le.AppendUint64(body, 1<<30)
	}
	return forgeELF(path, debug("abbrev", abbreviations(), 0, 0), debug("info", unitOf(0, 0, body, 0), 0, 0), debug("str", nil, 'x', 1<<20))
}

// forgeLines has 1,000 units with one line table of a hundred million rows.
func forgeLines(path string) error {
	le := binary.LittleEndian
	const rows = 100 << 20
	program := append([]byte{1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0}, "f\x00\x00\x00\x00\x00"...)
	b := le.AppendUint32(nil, uint32(2+4+len(program)+rows))
	b = le.AppendUint16(b, 4)
	b = le.AppendUint32(b, uint32(len(program)))
	b = append(b, program...)
	var info []byte
	for range 1000 {
		info = append(info, unitOf(0, 0, nil, 0)...)
	}
	return forgeELF(path, debug("abbrev", abbreviations(), 0, 0), debug("info", info, 0, 0), debug("line", b, 0x20, rows))
}

// forgeFiles has a line table of a hundred thousand files in a folder with a name of
// 60 kB.
func forgeFiles(path string) error {
	le := binary.LittleEndian
	program := []byte{1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1}
	program = append(append(program, bytes.Repeat([]byte{'/'}, 1)...), bytes.Repeat([]byte{'d'}, 60_000)...)
	program = append(program, 0, 0)
	for range 100_000 {
		program = append(program, 'f', 0, 1, 0, 0)
	}
	program = append(program, 0)
	b := le.AppendUint32(nil, uint32(2+4+len(program)+1))
	b = le.AppendUint16(b, 4)
	b = le.AppendUint32(b, uint32(len(program)))
	b = append(append(b, program...), 0x20)
	return forgeELF(path, debug("abbrev", abbreviations(), 0, 0), debug("info", unitOf(0, 0, nil, 0), 0, 0), debug("line", b, 0, 0))
}

// forgeSymbols has two million symbols whose names are what is left of one long
// name.
func forgeSymbols(path string) error {
	le := binary.LittleEndian
	b := make([]byte, 24)
	for i := range uint64(2_000_000) {
		b = le.AppendUint32(b, uint32(i%100))
		b = append(b, 0x12, 0, 1, 0)
		b = le.AppendUint64(b, 1+i)
		b = le.AppendUint64(b, 1<<30)
	}
	return forgeELF(path,
		elfPart{name: ".strtab", typ: elf.SHT_STRTAB, fill: 'x', n: 8 << 20},
		elfPart{name: ".symtab", typ: elf.SHT_SYMTAB, data: b, link: 1})
}

var elfForges = []forge{
	{"inflated sections", forgeInflated, true},
	{"symbol file", forgeSymbolFile, true},
	{"frames", forgeEhFrame, true},
	{"abbreviations", forgeAbbreviations, true},
	{"attributes", forgeAttributes, true},
	{"deep entries", forgeDeep, true},
	{"names", forgeNames, true},
	{"line tables", forgeLines, true},
	{"source files", forgeFiles, true},
	{"symbols", forgeSymbols, true},
}
