package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"

	"vplay/checkpoint"
	"vplay/dwarf"
	"vplay/loader/image/imagetest"
)

// onDisk is memory with the file of its only module.
type onDisk struct {
	imagetest.Memory
	file []byte
}

func (f onDisk) ReadFile(object uint32, off uint64, b []byte) int {
	if object != 1 || off > uint64(len(f.file)) {
		return 0
	}
	return copy(b, f.file[off:])
}

// tabled is the library with a section table in its file, behind what is mapped,
// and with a second function in its unwind table, without a symbol.
func tabled() onDisk {
	le := binary.LittleEndian
	m := imagetest.Library(imagetest.Base)
	m.Put(imagetest.Base+0x600, twoFunctions(0x600))
	names := []byte("\x00.text\x00.comment\x00.dynsym\x00.dynstr\x00.note.gnu.build-id\x00.eh_frame\x00.shstrtab\x00")
	at := func(s string) uint32 { return uint32(bytes.Index(names, []byte(s+"\x00"))) }
	const shoff = 0x5000
	file := append(make([]byte, shoff+8*64), names...)
	for i, s := range []struct {
		name string
		s    section
	}{
		{".text", section{typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, addr: 0x1010, off: 0x1010, size: 0x30, align: 16}},
		{".comment", section{typ: elf.SHT_PROGBITS, off: 0x3000, size: 5}},
		{".dynsym", section{typ: elf.SHT_DYNSYM, flags: elf.SHF_ALLOC, addr: 0x400, off: 0x400, size: 48, link: 4, info: 1, align: 8, entsize: 24}},
		{".dynstr", section{typ: elf.SHT_STRTAB, flags: elf.SHF_ALLOC, addr: 0x440, off: 0x440, size: 3}},
		{".note.gnu.build-id", section{typ: elf.SHT_NOTE, flags: elf.SHF_ALLOC, addr: 0x300, off: 0x300, size: 36, align: 4}},
		{".eh_frame", section{typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC, addr: 0x600, off: 0x600, size: 68, align: 8}},
		{".shstrtab", section{typ: elf.SHT_STRTAB, off: shoff + 8*64, size: uint64(len(names))}},
	} {
		copy(file[shoff+64*(i+1):], appendSection(nil, at(s.name), &s.s))
	}
	h := le.AppendUint64(nil, shoff)
	m.Put(imagetest.Base+40, h)
	m.Put(imagetest.Base+58, le.AppendUint16(le.AppendUint16(le.AppendUint16(nil, 64), 8), 7))
	m.Put(imagetest.Base+0x400+24+6, []byte{1, 0}) // f is in section 1
	return onDisk{m, file}
}

// twoFunctions is an unwind table for f and for a function at 0x1020.
func twoFunctions(at uint32) []byte {
	le := binary.LittleEndian
	b := imagetest.EhFrame(at, 0x1010, 16)
	b = b[:len(b)-4]
	b = le.AppendUint32(b, 16)
	b = le.AppendUint32(b, uint32(len(b)))
	b = le.AppendUint32(b, 0x1020-at-uint32(len(b)))
	return append(le.AppendUint32(b, 32), 0, 0, 0, 0, 0, 0, 0, 0)
}

// TestRecordedSections: with the file's own section table the image has its
// sections, and the build-id, at the addresses that a debug file of it has.
func TestRecordedSections(t *testing.T) {
	m := tabled()
	mod := Modules(imagetest.Maps(), m)[0]
	b, err := BuildELF(mod, m, testSymbols(nil, false))
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if s := f.Section(".text"); s == nil || s.Addr != 0x1010 || s.Type != elf.SHT_PROGBITS {
		t.Errorf(".text is %+v", s)
	}
	if s := f.Section(".note.gnu.build-id"); s == nil || s.Type != elf.SHT_NOTE {
		t.Errorf("the note is %+v", s)
	} else if raw, err := s.Data(); err != nil || buildID(raw) != mod.BuildID {
		t.Errorf("build-id %q, %v", buildID(raw), err)
	}
	if f.Section(".comment") != nil {
		t.Error("there is a section that no memory holds")
	}
	if syms, err := f.DynamicSymbols(); err != nil || len(syms) != 1 || f.Sections[syms[0].Section].Name != ".text" {
		t.Errorf("symbols %+v, %v", syms, err)
	}
	pages := SectionTablePages(imagetest.Maps(), m)
	if want := []FilePage{{Object: 1, Index: 5}, {Object: 1, Index: 5}}; !slices.Equal(pages, want) {
		t.Errorf("pages %v, want %v", pages, want)
	}
	m.file = m.file[:0x5100]
	if b, err = BuildELF(mod, m, testSymbols(nil, false)); err != nil {
		t.Fatal(err)
	}
	if f, err = elf.NewFile(bytes.NewReader(b)); err != nil || f.Section(".note.gnu.build-id") != nil {
		t.Errorf("half a table is believed: %v", err)
	}
}

// TestFunctionsWithoutSymbols: the function that only the unwind table knows has a
// symbol in .gnu_debugdata, and a name for us.
func TestFunctionsWithoutSymbols(t *testing.T) {
	for name, m := range map[string]Memory{"recorded sections": tabled(), "made-up sections": tabled().Memory} {
		b, err := BuildELF(Modules(imagetest.Maps(), m)[0], m, testSymbols(nil, false))
		if err != nil {
			t.Fatal(err)
		}
		f, err := elf.NewFile(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		s := f.Section(".gnu_debugdata")
		if s == nil {
			t.Fatalf("%s: no .gnu_debugdata", name)
		}
		xz, _ := s.Data()
		inner, err := elf.NewFile(bytes.NewReader(unpack(t, xz)))
		if err != nil {
			t.Fatal(err)
		}
		syms, err := inner.Symbols()
		if err != nil || len(syms) != 1 || syms[0].Name != "fun_1020" || syms[0].Value != 0x1020 || syms[0].Size != 32 {
			t.Errorf("%s: symbols %+v, %v", name, syms, err)
		} else if text := inner.Sections[syms[0].Section]; text.Name != ".text" || text.Addr != f.Section(".text").Addr || text.Size != f.Section(".text").Size {
			t.Errorf("%s: it is in section %+v", name, text)
		}
		d, err := dwarf.Open(b, nil)
		if err != nil {
			t.Fatal(err)
		}
		if fn, entry, ok := d.Function(0x1025); !ok || fn != "fun_1020" || entry != 0x1020 {
			t.Errorf("%s: the function at 0x1025 is %q at %#x", name, fn, entry)
		}
		if a, ok := d.Lookup("fun_1020"); !ok || a != 0x1020 {
			t.Errorf("%s: fun_1020 is at %#x", name, a)
		}
		if a, ok := d.Lookup("fun_1024"); ok {
			t.Errorf("%s: fun_1024 is at %#x", name, a)
		}
		if low, high, ok := d.Extent(0x1030); !ok || low != 0x1020 || high != 0x1040 {
			t.Errorf("%s: it reaches from %#x to %#x", name, low, high)
		}
	}
}

// unpack reads what xzStored wrote, by the specification and not by its code.
func unpack(t *testing.T, b []byte) (out []byte) {
	t.Helper()
	le := binary.LittleEndian
	if !bytes.HasPrefix(b, []byte("\xfd7zXZ\x00")) || !bytes.HasSuffix(b, []byte("YZ")) || len(b)%4 != 0 {
		t.Fatal("no xz file")
	}
	header := (int(b[12]) + 1) * 4
	if le.Uint32(b[12+header-4:]) != crc32.ChecksumIEEE(b[12:12+header-4]) {
		t.Fatal("the block header's check is wrong")
	}
	at := 12 + header
	for b[at] != 0 {
		if b[at] > 2 {
			t.Fatalf("chunk of kind %d", b[at])
		}
		n := int(binary.BigEndian.Uint16(b[at+1:])) + 1
		out = append(out, b[at+3:at+3+n]...)
		at += 3 + n
	}
	at = (at + 4) &^ 3
	if le.Uint32(b[at:]) != crc32.ChecksumIEEE(out) {
		t.Fatal("the content's check is wrong")
	}
	return out
}

// TestXZChunks: more than one chunk, and the sizes in the index.
func TestXZChunks(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcdef!"), 10_000)
	b := xzStored(want)
	if got := unpack(t, b); !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back", len(got))
	}
	le := binary.LittleEndian
	foot := b[len(b)-12:]
	index := b[len(b)-12-(int(le.Uint32(foot[4:]))+1)*4 : len(b)-12]
	unpadded, n := binary.Uvarint(index[2:])
	size, _ := binary.Uvarint(index[2+n:])
	if block := uint64(len(b) - 12 - 12 - len(index)); size != uint64(len(want)) || (unpadded+3)&^3 != block {
		t.Errorf("index: %d bytes in %d; the block has %d", size, unpadded, block)
	}
}

// TestHostileSectionTable: sizes and numbers that lie give made-up sections, not a
// panic and not memory.
func TestHostileSectionTable(t *testing.T) {
	for _, poke := range []struct {
		at int
		v  uint64
	}{
		{0x5000 + 64*1 + 32, 1 << 62}, {0x5000 + 64*3 + 40, 99}, {0x5000 + 64*6 + 16, 1 << 63}, {0x5000 + 64*7 + 32, 1 << 40},
		{0x5000 + 64*7 + 24, 1 << 60}, {0x5000 + 64*1, 1 << 31}, {0x5000 + 64*1 + 48, 1 << 60}, {0x5000 + 64*3 + 32, 1},
	} {
		m := tabled()
		binary.LittleEndian.PutUint64(m.file[poke.at:], poke.v)
		SectionTablePages(imagetest.Maps(), m)
		b, err := BuildELF(Modules(imagetest.Maps(), m)[0], m, testSymbols(nil, false))
		if err != nil || len(b) > 1<<16 {
			t.Errorf("%#x at %#x: %d bytes, %v", poke.v, poke.at, len(b), err)
		}
		if _, err := dwarf.Open(b, nil); err != nil {
			t.Errorf("%#x at %#x: %v", poke.v, poke.at, err)
		}
	}
}

var _ FileReader = onDisk{}

// FuzzSectionTable builds the image of a module whose table is arbitrary.
func FuzzSectionTable(f *testing.F) {
	whole := tabled()
	f.Add(whole.file[0x5000:])
	f.Fuzz(func(t *testing.T, table []byte) {
		m := tabled()
		m.file = append(m.file[:0x5000], table[:min(len(table), 1<<16)]...)
		if n := len(SectionTablePages(imagetest.Maps(), m)); n > 2*(maxNames/checkpoint.PageSize+maxSections*64/checkpoint.PageSize+2) {
			t.Fatalf("%d pages", n)
		}
		if b, err := BuildELF(Modules(imagetest.Maps(), m)[0], m, testSymbols(nil, false)); err == nil {
			_, _ = dwarf.Open(b, nil) // it must not panic
		}
	})
}
