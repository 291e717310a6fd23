package loader

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"vplay/checkpoint"
	"vplay/dwarf"
)

// fake is guest memory in pages; those that are not there were not captured.
type fake map[uint64]*[checkpoint.PageSize]byte

func (f fake) ReadMemory(addr uint64, b []byte) int {
	n := 0
	for n < len(b) {
		a := addr + uint64(n)
		p := f[a&^(checkpoint.PageSize-1)]
		if p == nil {
			break
		}
		n += copy(b[n:], p[a%checkpoint.PageSize:])
	}
	return n
}

// put lays bytes at an address.
func (f fake) put(addr uint64, b []byte) {
	for i := range b {
		a := addr + uint64(i)
		page := a &^ (checkpoint.PageSize - 1)
		if f[page] == nil {
			f[page] = new([checkpoint.PageSize]byte)
		}
		f[page][a%checkpoint.PageSize] = b[i]
	}
}

// library is a small shared library in memory at base: header and tables in its
// first page, code in the second, data with the dynamic section in the third.
// It exports f at 0x1010.
func library(base uint64) fake {
	le := binary.LittleEndian
	m := fake{}
	h := make([]byte, 64)
	copy(h, elf.ELFMAG)
	h[elf.EI_CLASS], h[elf.EI_DATA], h[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1
	le.PutUint16(h[16:], uint16(elf.ET_DYN))
	le.PutUint16(h[18:], uint16(elf.EM_X86_64))
	le.PutUint32(h[20:], 1)
	le.PutUint64(h[32:], 64)
	le.PutUint16(h[52:], 64)
	le.PutUint16(h[54:], 56)
	le.PutUint64(h[24:], 0x1000)
	segments := []elf.ProgHeader{
		{Type: elf.PT_LOAD, Flags: elf.PF_R, Filesz: 0x1000, Memsz: 0x1000, Align: 0x1000},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_X, Off: 0x1000, Vaddr: 0x1000, Filesz: 0x1000, Memsz: 0x1000, Align: 0x1000},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_W, Off: 0x2000, Vaddr: 0x2000, Filesz: 0x200, Memsz: 0x800, Align: 0x1000},
		{Type: elf.PT_DYNAMIC, Flags: elf.PF_R | elf.PF_W, Off: 0x2000, Vaddr: 0x2000, Filesz: 0x100, Memsz: 0x100, Align: 8},
		{Type: elf.PT_NOTE, Flags: elf.PF_R, Off: 0x300, Vaddr: 0x300, Filesz: 36, Memsz: 36, Align: 4},
		{Type: elf.PT_GNU_EH_FRAME, Flags: elf.PF_R, Off: 0x500, Vaddr: 0x500, Filesz: 12, Memsz: 12, Align: 4},
	}
	le.PutUint16(h[56:], uint16(len(segments)))
	for _, p := range segments {
		h = le.AppendUint32(h, uint32(p.Type))
		h = le.AppendUint32(h, uint32(p.Flags))
		for _, v := range []uint64{p.Off, p.Vaddr, p.Vaddr, p.Filesz, p.Memsz, p.Align} {
			h = le.AppendUint64(h, v)
		}
	}
	m.put(base, h)
	note := le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, 4), 20), 3)
	m.put(base+0x300, append(append(note, "GNU\x00"...), bytes.Repeat([]byte{0xab}, 20)...))
	sym := make([]byte, 48)
	le.PutUint32(sym[24:], 1)
	sym[28] = byte(elf.STB_GLOBAL)<<4 | byte(elf.STT_FUNC)
	le.PutUint16(sym[30:], 7)
	le.PutUint64(sym[32:], 0x1010)
	le.PutUint64(sym[40:], 16)
	m.put(base+0x400, sym)
	m.put(base+0x440, []byte("\x00f\x00"))
	m.put(base+0x480, le.AppendUint32(le.AppendUint32(nil, 1), 2)) // DT_HASH: two symbols
	hdr := []byte{1, 0x1b, 0x3b, 0xff}
	m.put(base+0x500, le.AppendUint32(hdr, 0x600-0x504))
	m.put(base+0x600, ehFrame(0x600, 0x1010, 16))
	m.put(base+0x1010, bytes.Repeat([]byte{0x90}, 16))
	var dyn []byte
	for _, d := range [][2]uint64{
		{uint64(elf.DT_SYMTAB), base + 0x400},
		{uint64(elf.DT_STRTAB), base + 0x440},
		{uint64(elf.DT_STRSZ), 3},
		{uint64(elf.DT_HASH), base + 0x480},
		{uint64(elf.DT_DEBUG), 0},
		{0, 0},
	} {
		dyn = le.AppendUint64(le.AppendUint64(dyn, d[0]), d[1])
	}
	m.put(base+0x2000, dyn)
	return m
}

// ehFrame is an unwind table at a file address for one function.
func ehFrame(at, low, size uint32) []byte {
	le := binary.LittleEndian
	cie := le.AppendUint32(nil, 20)
	cie = append(cie, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0)
	b := le.AppendUint32(cie, 16)
	b = le.AppendUint32(b, uint32(len(cie))+4)
	b = le.AppendUint32(b, low-at-uint32(len(b)))
	b = le.AppendUint32(b, size)
	return append(b, 0, 0, 0, 0, 0, 0, 0, 0)
}

const libBase = 0x7f0000000000

func libMaps() []checkpoint.Mapping {
	return []checkpoint.Mapping{
		{Start: libBase, End: libBase + 0x1000, Prot: 1, Object: 1, Name: "/lib/f.so"},
		{Start: libBase + 0x1000, End: libBase + 0x2000, Prot: 5, Object: 1, Offset: 0x1000, Name: "/lib/f.so"},
		{Start: libBase + 0x2000, End: libBase + 0x3000, Prot: 3, Object: 1, Offset: 0x2000, Name: "/lib/f.so"},
	}
}

func TestSyntheticImage(t *testing.T) {
	m := library(libBase)
	mods := Modules(libMaps(), m)
	if len(mods) != 1 {
		t.Fatalf("%d modules", len(mods))
	}
	mod := mods[0]
	if mod.Bias != libBase || mod.End != libBase+0x2800 || mod.BuildID != "abababababababababababababababababababab" {
		t.Errorf("bias %#x end %#x build-id %s", mod.Bias, mod.End, mod.BuildID)
	}
	b, err := BuildELF(mod, m, NewSymbols(nil, false))
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for name, typ := range map[string]elf.SectionType{
		".text": elf.SHT_PROGBITS, ".data": elf.SHT_PROGBITS, ".bss": elf.SHT_NOBITS, ".eh_frame_hdr": elf.SHT_PROGBITS,
		".eh_frame": elf.SHT_PROGBITS, ".dynsym": elf.SHT_DYNSYM, ".dynstr": elf.SHT_STRTAB, ".dynamic": elf.SHT_DYNAMIC,
	} {
		if s := f.Section(name); s == nil || s.Type != typ {
			t.Errorf("section %s: %+v, want type %v", name, s, typ)
		}
	}
	syms, err := f.DynamicSymbols()
	if err != nil || len(syms) != 1 || syms[0].Name != "f" || f.Sections[syms[0].Section].Name != ".text" {
		t.Errorf("symbols %+v, %v", syms, err)
	}
	if v, err := f.DynValue(elf.DT_SYMTAB); err != nil || v[0] != 0x400 {
		t.Errorf("DT_SYMTAB is %#x, %v: not the file's own address", v, err)
	}
	d, err := dwarf.Open(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if name, _, ok := d.Function(0x1014); !ok || name != "f" {
		t.Errorf("the function at 0x1014 is %q", name)
	}
}

// TestUncapturedIsNobits: a section with a missing page has no bytes, so that
// nobody takes zeros for content.
func TestUncapturedIsNobits(t *testing.T) {
	m := library(libBase)
	delete(m, libBase+0x1000)
	mod := Modules(libMaps(), m)[0]
	b, err := BuildELF(mod, m, NewSymbols(nil, false))
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if s := f.Section(".text"); s == nil || s.Type != elf.SHT_NOBITS {
		t.Errorf(".text is %+v", s)
	}
	if s := f.Section(".dynsym"); s == nil || s.Type != elf.SHT_DYNSYM {
		t.Errorf(".dynsym is %+v", s)
	}
	delete(m, libBase)
	if mods := Modules(libMaps(), m); len(mods) != 0 {
		t.Error("a module without its header is listed")
	}
}

// TestDebuggerSet: what is listed is enough to rebuild the image from it alone.
func TestDebuggerSet(t *testing.T) {
	m := library(libBase)
	maps := append(libMaps(), checkpoint.Mapping{Start: 0x7ffff0000000, End: 0x7ffff0021000, Prot: 3, Flags: checkpoint.MapStack, Name: "[stack]"})
	c := checkpoint.Context{}
	c.Regs.R[4] = 0x7ffff0010008
	set := DebuggerSet(maps, []checkpoint.Context{c}, m)
	in := func(addr uint64) bool {
		for _, r := range set {
			if addr >= r.Start && addr < r.End {
				return true
			}
		}
		return false
	}
	for addr, want := range map[uint64]bool{
		libBase: true, libBase + 0x2000: true, libBase + 0x1000: false, 0x7ffff0010008: true, 0x7ffff0020fff: true, 0x7ffff0001000: false,
	} {
		if in(addr) != want {
			t.Errorf("%#x is in the set: %v", addr, !want)
		}
	}
}

// TestFindEhFrame: the unwind table of a program that has no header for it.
func TestFindEhFrame(t *testing.T) {
	m := library(libBase)
	le := binary.LittleEndian
	noise := bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0, 'z', 'R'}, 40)
	table := ehFrame(0x700, 0x1010, 16)
	table = table[:len(table)-4]
	for i := range uint32(9) {
		fde := le.AppendUint32(nil, 16)
		fde = le.AppendUint32(fde, uint32(len(table))+4)
		fde = append(le.AppendUint32(le.AppendUint32(fde, 0x1020+16*i), 16), 0, 0, 0, 0)
		table = append(table, fde...)
	}
	table = append(table, 0, 0, 0, 0)
	m.put(libBase+0x600, bytes.Repeat([]byte{0x55}, 0x40))
	m.put(libBase+0x700, noise)
	m.put(libBase+0x900, table)
	mod := Modules(libMaps(), m)[0]
	for i := range mod.Segments {
		if mod.Segments[i].Type == elf.PT_GNU_EH_FRAME {
			mod.Segments[i].Type = elf.PT_NULL
		}
	}
	start, end := mod.EhFrame(m)
	if start != libBase+0x900 || end != libBase+0x900+uint64(len(table)) {
		t.Errorf("found %#x to %#x, want %#x to %#x", start, end, libBase+0x900, libBase+0x900+len(table))
	}
}

// TestLinkMap follows the dynamic linker's list, and survives a ring.
func TestLinkMap(t *testing.T) {
	m := library(libBase)
	le := binary.LittleEndian
	link := func(base, name, ld, next uint64) []byte {
		var b []byte
		for _, v := range []uint64{base, name, ld, next, 0} {
			b = le.AppendUint64(b, v)
		}
		return b
	}
	const list = libBase + 0x2400
	m.put(libBase+0x2000+4*16, le.AppendUint64(le.AppendUint64(nil, uint64(elf.DT_DEBUG)), list))
	m.put(list, le.AppendUint64(le.AppendUint64(nil, 1), list+0x40))
	m.put(list+0x40, link(libBase, list+0x100, 0, list+0x80))
	m.put(list+0x80, link(0x1000, list+0x101, 0x2000, list+0x40))
	m.put(list+0x100, []byte("\x00/lib/g.so\x00"))
	got := LinkMap(libMaps(), m)
	if len(got) != 2 || !got[0].Main || got[0].Name != "/lib/f.so" || got[1].Name != "/lib/g.so" || got[1].Base != 0x1000 {
		t.Errorf("got %+v", got)
	}
}

// TestLinkMapIncomplete: what the list lacks, or all of it, is made from the memory
// map.
func TestLinkMapIncomplete(t *testing.T) {
	listed := []Link{{Name: "/prog", Addr: 0x10, Base: 1, Dynamic: 2, Main: true}}
	made := []Link{{Name: "/prog", Addr: 1, Base: 1, Dynamic: 2, Main: true}, {Name: "/lib/f.so", Addr: 2, Base: 3, Dynamic: 4}}
	if got := complete(listed, made); len(got) != 2 || got[0] != listed[0] || got[1] != made[1] {
		t.Errorf("got %+v", got)
	}
	if got := complete(nil, made); !slices.Equal(got, made) {
		t.Errorf("got %+v", got)
	}
	m := library(libBase)
	if got := LinkMap(libMaps(), m); len(got) != 1 || !got[0].Main || got[0].Name != "/lib/f.so" || got[0].Base != libBase {
		t.Errorf("without a list: %+v", got)
	}
}

// TestLinkMapRelative: a name that dlopen was given relative to the program's
// folder becomes the path in the memory map.
func TestLinkMapRelative(t *testing.T) {
	links := []Link{{Name: "./f.so", Base: libBase, Dynamic: libBase + 0x2000}, {Name: "g.so", Base: 1, Dynamic: 2}, {Name: "/h.so"}}
	makeAbsolute(links, Modules(libMaps(), library(libBase)))
	if links[0].Name != "/lib/f.so" || links[1].Name != "g.so" || links[2].Name != "/h.so" {
		t.Errorf("got %+v", links)
	}
}

// TestMergedKeepsSections joins the memory image of the demo's program with its .debug file.
func TestMergedKeepsSections(t *testing.T) {
	dir := filepath.Join("..", "cmd", "vplayd", "demo")
	f, err := elf.Open(filepath.Join(dir, "weather.debug"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := fake{}
	maps := []checkpoint.Mapping{}
	h, err := os.ReadFile(filepath.Join(dir, "weather.debug"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			for a := p.Vaddr &^ 4095; a < p.Vaddr+p.Memsz; a += 4096 {
				m.put(a, []byte{0})
			}
			maps = append(maps, checkpoint.Mapping{
				Start: p.Vaddr &^ 4095, End: (p.Vaddr + p.Memsz + 4095) &^ 4095, Object: 1, Offset: p.Vaddr&^4095 - 0x400000, Name: "/bin/weather",
			})
		}
	}
	for i, p := range f.Progs { // a .debug file has the segments' sizes, but not their bytes
		if p.Type != elf.PT_LOAD {
			continue
		}
		ph := h[64+56*i:]
		le := binary.LittleEndian
		le.PutUint64(ph[8:], le.Uint64(ph[16:])-0x400000)
		le.PutUint64(ph[32:], le.Uint64(ph[40:]))
	}
	m.put(0x400000, h[:64+56*len(f.Progs)])
	id := ""
	for _, s := range f.Sections {
		if s.Type == elf.SHT_NOTE {
			if b, err := s.Data(); err == nil {
				m.put(s.Addr, b)
				if x := buildID(b); x != "" {
					id = x
				}
			}
		}
	}
	mods := Modules(maps, m)
	if len(mods) != 1 || mods[0].BuildID != id || id == "" {
		t.Fatalf("modules %+v, build-id %q", mods, id)
	}
	b, err := BuildELF(mods[0], m, NewSymbols([]string{dir}, false))
	if err != nil {
		t.Fatal(err)
	}
	got, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if s := got.Section(".text"); s == nil || s.Type != elf.SHT_PROGBITS || s.Addr != f.Section(".text").Addr {
		t.Errorf(".text is %+v", s)
	}
	if d, err := dwarf.Open(b, nil); err != nil || !d.HasLines() {
		t.Errorf("no lines: %v", err)
	}
}

// hostile lays fuzzed bytes where modules would be.
func hostile(b []byte) (fake, []checkpoint.Mapping) {
	m := fake{}
	if len(b) > 1<<16 {
		b = b[:1<<16]
	}
	m.put(libBase, b)
	return m, append(libMaps(), checkpoint.Mapping{Start: libBase, End: libBase + 0x2000, Name: vdso})
}

// flat is the library as one run of bytes.
func flat() []byte {
	m := library(libBase)
	b := make([]byte, 0x3000)
	m.ReadMemory(libBase, b)
	return b
}

func FuzzModules(f *testing.F) {
	f.Add(flat())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, maps := hostile(b)
		for _, mod := range Modules(maps, m) {
			mod.SymbolCount(m)
			mod.EhFrame(m)
		}
		LinkMap(maps, m)
		var c checkpoint.Context
		c.Regs.R[4], c.Regs.FSBase = libBase+0x100, libBase
		for _, r := range DebuggerSet(maps, []checkpoint.Context{c}, m) {
			if r.End <= r.Start || r.Start%checkpoint.PageSize != 0 || r.End%checkpoint.PageSize != 0 {
				t.Fatalf("range %#x to %#x", r.Start, r.End)
			}
		}
	})
}

func FuzzBuildELF(f *testing.F) {
	f.Add(flat())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, maps := hostile(b)
		r := NewResolver(maps, m, NewModuleFiles(NewSymbols(nil, false)))
		var regs checkpoint.Regs
		regs.RIP, regs.R[4], regs.R[5] = libBase+0x1012, libBase+0x2100, libBase+0x2110
		if n := len(r.Backtrace(&regs, 32)); n == 0 || n > 32 {
			t.Fatalf("%d frames", n)
		}
		_ = r.At(regs.RIP).String()
		for _, mod := range Modules(maps, m) {
			if img, err := BuildELF(mod, m, NewSymbols(nil, false)); err == nil && len(img) > 1<<24 {
				t.Fatalf("%d bytes from %d", len(img), len(b))
			}
		}
	})
}

func FuzzFindEhFrame(f *testing.F) {
	f.Add(ehFrame(0, 16, 16))
	f.Fuzz(func(t *testing.T, b []byte) {
		at, size := findEhFrame(b)
		if at < 0 || size < 0 || at+size > len(b) || walkEhFrame(b) > len(b) {
			t.Fatalf("%d bytes at %d of %d", size, at, len(b))
		}
	})
}
