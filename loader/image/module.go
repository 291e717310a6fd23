package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"sort"

	"vplay/checkpoint"
)

// The modules of a process: ELF files found by their headers in memory, with their
// segments, build-id and dynamic section (elf(5); ELF gABI). Only what memory says is
// read here; files on disk are in symbols.go and local.go. The dynamic linker's own
// list is in linkmap.go.

// Memory reads guest memory: it returns how many bytes of b could be read at
// addr, the readable prefix.
type Memory interface {
	ReadMemory(addr uint64, b []byte) int
}

// Module is an ELF file as it lies in memory: the program, a shared library,
// the dynamic linker or the vDSO.
type Module struct {
	Path     string // as the memory map says it
	Object   uint32 // the checkpoint object; 0 for the vDSO
	Base     uint64 // address of the ELF header
	Bias     uint64 // what must be added to the file's virtual addresses
	End      uint64 // end of the last segment in memory
	Type     elf.Type
	Entry    uint64 // file virtual address
	Phoff    uint64
	Shoff    uint64 // of the section table in the file, which memory does not hold
	Shnum    int
	Shstrndx int
	BuildID  string // lower-case hex, "" when there is none or it was not captured
	Segments []elf.ProgHeader
	Dynamic  map[elf.DynTag]uint64 // first value of each tag, as in memory

	peers []*Module // all modules of the process, this one included
}

// vdso is the path of the kernel's own module in memory maps.
const vdso = "[vdso]"

// maxSegments and maxModules bound the program headers of a module, and the
// modules of a process, that are believed.
const (
	maxSegments = 128
	maxModules  = 4096
	maxNotes    = 64 << 10 // bytes, of one module
	maxDynamic  = 64 << 10 // bytes
	maxTags     = 128      // of the dynamic section
)

// Modules finds the ELF files in a memory map by their headers in memory,
// sorted by address. Files whose header was not captured are left out.
func Modules(maps []checkpoint.Mapping, m Memory) []*Module {
	var out []*Module
	for i := range maps {
		g := &maps[i]
		if len(out) == maxModules {
			break
		}
		if g.Offset != 0 || g.Name != vdso && (g.Object == 0 || g.Flags&checkpoint.MapShared != 0) {
			continue
		}
		if mod := readModule(g, m); mod != nil {
			out = append(out, mod)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Base < out[j].Base })
	for _, mod := range out {
		mod.peers = out
	}
	return out
}

func readModule(g *checkpoint.Mapping, m Memory) *Module {
	var h [64]byte
	if m.ReadMemory(g.Start, h[:]) < len(h) || !bytes.HasPrefix(h[:], []byte(elf.ELFMAG)) {
		return nil
	}
	le := binary.LittleEndian
	if elf.Class(h[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(h[elf.EI_DATA]) != elf.ELFDATA2LSB ||
		elf.Machine(le.Uint16(h[18:])) != elf.EM_X86_64 {
		return nil
	}
	mod := &Module{
		Path: g.Name, Object: g.Object, Base: g.Start,
		Type: elf.Type(le.Uint16(h[16:])), Entry: le.Uint64(h[24:]), Phoff: le.Uint64(h[32:]), Shoff: le.Uint64(h[40:]),
	}
	if le.Uint16(h[58:]) == sectionHeaderSize {
		mod.Shnum, mod.Shstrndx = int(le.Uint16(h[60:])), int(le.Uint16(h[62:]))
	}
	n := int(le.Uint16(h[56:]))
	if le.Uint16(h[54:]) != 56 || n == 0 || n > maxSegments || mod.Phoff > checkpoint.PageSize {
		return nil
	}
	raw := make([]byte, n*56)
	if m.ReadMemory(g.Start+mod.Phoff, raw) < len(raw) {
		return nil
	}
	for i := range n {
		mod.Segments = append(mod.Segments, segment(raw[i*56:]))
	}
	if !mod.place() {
		return nil
	}
	mod.readNotes(m)
	mod.readDynamic(m)
	return mod
}

// segment decodes one Elf64_Phdr.
func segment(b []byte) elf.ProgHeader {
	le := binary.LittleEndian
	return elf.ProgHeader{
		Type: elf.ProgType(le.Uint32(b)), Flags: elf.ProgFlag(le.Uint32(b[4:])),
		Off: le.Uint64(b[8:]), Vaddr: le.Uint64(b[16:]), Paddr: le.Uint64(b[24:]),
		Filesz: le.Uint64(b[32:]), Memsz: le.Uint64(b[40:]), Align: le.Uint64(b[48:]),
	}
}

// place computes bias and end from the loaded segments. It reports false when
// there are none, or they make no sense.
func (mod *Module) place() bool {
	found := false
	for _, p := range mod.Segments {
		if p.Type != elf.PT_LOAD {
			continue
		}
		if p.Memsz > 1<<40 || p.Vaddr > 1<<47 || p.Filesz > p.Memsz || p.Off > 1<<47 {
			return false
		}
		if !found && p.Off < checkpoint.PageSize {
			mod.Bias = mod.Base - p.Vaddr&^(checkpoint.PageSize-1)
			found = true
		}
	}
	for _, p := range mod.Segments {
		if p.Type == elf.PT_LOAD {
			mod.End = max(mod.End, mod.Bias+p.Vaddr+p.Memsz)
		}
	}
	return found
}

// besideNotes is how many bytes behind a segment of notes are looked at, too: Go's
// linker puts the note of the build-id there, and leaves it out of the segment.
const besideNotes = 64

// readNotes finds the GNU build-id.
func (mod *Module) readNotes(m Memory) {
	left := uint64(maxNotes)
	for _, p := range mod.Segments {
		if p.Type != elf.PT_NOTE || p.Filesz > left {
			continue
		}
		left -= p.Filesz
		b := make([]byte, p.Filesz+besideNotes)
		b = b[:m.ReadMemory(mod.Bias+p.Vaddr, b)]
		if id := buildID(b); id != "" {
			mod.BuildID = id
			return
		}
	}
}

// buildID scans ELF notes for NT_GNU_BUILD_ID (elf(5), "Notes").
func buildID(b []byte) string {
	le := binary.LittleEndian
	for len(b) >= 12 {
		nameSize, descSize, kind := uint64(le.Uint32(b)), uint64(le.Uint32(b[4:])), le.Uint32(b[8:])
		name := (nameSize + 3) &^ 3
		desc := (descSize + 3) &^ 3
		if 12+name+descSize > uint64(len(b)) {
			return ""
		}
		if kind == 3 && nameSize == 4 && string(b[12:16]) == "GNU\x00" && descSize <= 64 {
			return hex.EncodeToString(b[12+name : 12+name+descSize])
		}
		if 12+name+desc > uint64(len(b)) {
			return ""
		}
		b = b[12+name+desc:]
	}
	return ""
}

// readDynamic reads the dynamic section.
func (mod *Module) readDynamic(m Memory) {
	mod.Dynamic = map[elf.DynTag]uint64{}
	le := binary.LittleEndian
	for _, p := range mod.Segments {
		if p.Type != elf.PT_DYNAMIC || p.Memsz > maxDynamic {
			continue
		}
		b := make([]byte, p.Memsz)
		b = b[:m.ReadMemory(mod.Bias+p.Vaddr, b)]
		for ; len(b) >= 16; b = b[16:] {
			tag := elf.DynTag(le.Uint64(b))
			if tag == elf.DT_NULL {
				return
			}
			if _, ok := mod.Dynamic[tag]; !ok && len(mod.Dynamic) < maxTags {
				mod.Dynamic[tag] = le.Uint64(b[8:])
			}
		}
		return // a second one is not the dynamic linker's
	}
}

// Address returns the run-time address of a pointer from the dynamic section:
// the dynamic linker relocates them in most modules, but not in all.
func (mod *Module) Address(v uint64) uint64 {
	if v >= mod.Base && v < mod.End {
		return v
	}
	return v + mod.Bias
}

// IsMapped reports whether all segments of the module are in their places in a memory map. The dynamic linker maps the
// whole file first, and then each segment over that.
func (m *Module) IsMapped(maps []checkpoint.Mapping) bool {
	for i := range m.Segments {
		s := &m.Segments[i]
		if s.Type != elf.PT_LOAD {
			continue
		}
		at := (m.Bias + s.Vaddr) &^ (checkpoint.PageSize - 1)
		if !slices.ContainsFunc(maps, func(g checkpoint.Mapping) bool { return g.Start == at || g.Start > at && g.Start < at+max(s.Memsz, 1) }) {
			return false
		}
	}
	return true
}
