package image

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
	"vplay/loader/image/imagetest"
)

// testSymbols is a finder over dirs, with package dwarf for unwind tables.
func testSymbols(dirs []string, local bool) *Symbols {
	return NewSymbols(dirs, local, Unwind{
		Functions: func(section []byte, addr uint64, budget *checkpoint.Budget) (out []Range) {
			for _, f := range dwarf.FrameRanges(section, addr, budget) {
				out = append(out, Range{f.Low, f.High})
			}
			return out
		},
		Name: dwarf.FunctionName,
	})
}

func TestSyntheticImage(t *testing.T) {
	m := imagetest.Library(imagetest.Base)
	mods := Modules(imagetest.Maps(), m)
	if len(mods) != 1 {
		t.Fatalf("%d modules", len(mods))
	}
	mod := mods[0]
	if mod.Bias != imagetest.Base || mod.End != imagetest.Base+0x2800 || mod.BuildID != "abababababababababababababababababababab" {
		t.Errorf("bias %#x end %#x build-id %s", mod.Bias, mod.End, mod.BuildID)
	}
	b, err := BuildELF(mod, m, testSymbols(nil, false))
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
	m := imagetest.Library(imagetest.Base)
	delete(m, imagetest.Base+0x1000)
	mod := Modules(imagetest.Maps(), m)[0]
	b, err := BuildELF(mod, m, testSymbols(nil, false))
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
	delete(m, imagetest.Base)
	if mods := Modules(imagetest.Maps(), m); len(mods) != 0 {
		t.Error("a module without its header is listed")
	}
}

// TestDebuggerSet: what is listed is enough to rebuild the image from it alone.
func TestDebuggerSet(t *testing.T) {
	m := imagetest.Library(imagetest.Base)
	maps := append(imagetest.Maps(), checkpoint.Mapping{Start: 0x7ffff0000000, End: 0x7ffff0021000, Prot: 3, Flags: checkpoint.MapStack, Name: "[stack]"})
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
		imagetest.Base: true, imagetest.Base + 0x2000: true, imagetest.Base + 0x1000: false, 0x7ffff0010008: true, 0x7ffff0020fff: true, 0x7ffff0001000: false,
	} {
		if in(addr) != want {
			t.Errorf("%#x is in the set: %v", addr, !want)
		}
	}
}

// TestFindEhFrame: the unwind table of a program that has no header for it.
func TestFindEhFrame(t *testing.T) {
	m := imagetest.Library(imagetest.Base)
	le := binary.LittleEndian
	noise := bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0, 'z', 'R'}, 40)
	table := imagetest.EhFrame(0x700, 0x1010, 16)
	table = table[:len(table)-4]
	for i := range uint32(9) {
		fde := le.AppendUint32(nil, 16)
		fde = le.AppendUint32(fde, uint32(len(table))+4)
		fde = append(le.AppendUint32(le.AppendUint32(fde, 0x1020+16*i), 16), 0, 0, 0, 0)
		table = append(table, fde...)
	}
	table = append(table, 0, 0, 0, 0)
	m.Put(imagetest.Base+0x600, bytes.Repeat([]byte{0x55}, 0x40))
	m.Put(imagetest.Base+0x700, noise)
	m.Put(imagetest.Base+0x900, table)
	mod := Modules(imagetest.Maps(), m)[0]
	for i := range mod.Segments {
		if mod.Segments[i].Type == elf.PT_GNU_EH_FRAME {
			mod.Segments[i].Type = elf.PT_NULL
		}
	}
	start, end := mod.EhFrame(m)
	if start != imagetest.Base+0x900 || end != imagetest.Base+0x900+uint64(len(table)) {
		t.Errorf("found %#x to %#x, want %#x to %#x", start, end, imagetest.Base+0x900, imagetest.Base+0x900+len(table))
	}
}

// TestLinkMap follows the dynamic linker's list, and survives a ring.
func TestLinkMap(t *testing.T) {
	m := imagetest.Library(imagetest.Base)
	le := binary.LittleEndian
	link := func(base, name, ld, next uint64) []byte {
		var b []byte
		for _, v := range []uint64{base, name, ld, next, 0} {
			b = le.AppendUint64(b, v)
		}
		return b
	}
	const list = imagetest.Base + 0x2400
	m.Put(imagetest.Base+0x2000+4*16, le.AppendUint64(le.AppendUint64(nil, uint64(elf.DT_DEBUG)), list))
	m.Put(list, le.AppendUint64(le.AppendUint64(nil, 1), list+0x40))
	m.Put(list+0x40, link(imagetest.Base, list+0x100, 0, list+0x80))
	m.Put(list+0x80, link(0x1000, list+0x101, 0x2000, list+0x40))
	m.Put(list+0x100, []byte("\x00/lib/g.so\x00"))
	got := LinkMap(imagetest.Maps(), m)
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
	m := imagetest.Library(imagetest.Base)
	if got := LinkMap(imagetest.Maps(), m); len(got) != 1 || !got[0].Main || got[0].Name != "/lib/f.so" || got[0].Base != imagetest.Base {
		t.Errorf("without a list: %+v", got)
	}
}

// TestLinkMapRelative: a name that dlopen was given relative to the program's
// folder becomes the path in the memory map.
func TestLinkMapRelative(t *testing.T) {
	links := []Link{{Name: "./f.so", Base: imagetest.Base, Dynamic: imagetest.Base + 0x2000}, {Name: "g.so", Base: 1, Dynamic: 2}, {Name: "/h.so"}}
	makeAbsolute(links, Modules(imagetest.Maps(), imagetest.Library(imagetest.Base)))
	if links[0].Name != "/lib/f.so" || links[1].Name != "g.so" || links[2].Name != "/h.so" {
		t.Errorf("got %+v", links)
	}
}

// TestMergedKeepsSections joins the memory image of the demo's program with its .debug file.
func TestMergedKeepsSections(t *testing.T) {
	dir := filepath.Join("..", "..", "cmd", "vplayd", "demo")
	f, err := elf.Open(filepath.Join(dir, "weather.debug"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := imagetest.Memory{}
	maps := []checkpoint.Mapping{}
	h, err := os.ReadFile(filepath.Join(dir, "weather.debug"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			for a := p.Vaddr &^ 4095; a < p.Vaddr+p.Memsz; a += 4096 {
				m.Put(a, []byte{0})
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
	m.Put(0x400000, h[:64+56*len(f.Progs)])
	id := ""
	for _, s := range f.Sections {
		if s.Type == elf.SHT_NOTE {
			if b, err := s.Data(); err == nil {
				m.Put(s.Addr, b)
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
	b, err := BuildELF(mods[0], m, testSymbols([]string{dir}, false))
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

func FuzzModules(f *testing.F) {
	f.Add(imagetest.Flat())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, maps := imagetest.Hostile(b)
		for _, mod := range Modules(maps, m) {
			mod.SymbolCount(m)
			mod.EhFrame(m)
		}
		LinkMap(maps, m)
		var c checkpoint.Context
		c.Regs.R[4], c.Regs.FSBase = imagetest.Base+0x100, imagetest.Base
		for _, r := range DebuggerSet(maps, []checkpoint.Context{c}, m) {
			if r.End <= r.Start || r.Start%checkpoint.PageSize != 0 || r.End%checkpoint.PageSize != 0 {
				t.Fatalf("range %#x to %#x", r.Start, r.End)
			}
		}
	})
}

func FuzzBuildELF(f *testing.F) {
	f.Add(imagetest.Flat())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, maps := imagetest.Hostile(b)
		for _, mod := range Modules(maps, m) {
			if img, err := BuildELF(mod, m, testSymbols(nil, false)); err == nil && len(img) > 1<<24 {
				t.Fatalf("%d bytes from %d", len(img), len(b))
			}
		}
	})
}

func FuzzFindEhFrame(f *testing.F) {
	f.Add(imagetest.EhFrame(0, 16, 16))
	f.Fuzz(func(t *testing.T, b []byte) {
		at, size := findEhFrame(b)
		if at < 0 || size < 0 || at+size > len(b) || walkEhFrame(b) > len(b) {
			t.Fatalf("%d bytes at %d of %d", size, at, len(b))
		}
	})
}
