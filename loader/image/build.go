package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"vplay/checkpoint"
	"vplay/dwarf/elffile"
)

// An ELF file is rebuilt from memory in one of three ways, unless the recording has it whole
// (embedded.go). With the very file
// at hand (same build-id, with its code) that file is served. With a .debug file
// the memory image is merged with the section table and the debugging sections
// of that file ("unstrip from memory"). With neither, a few sections are made up
// from the program headers and the dynamic section, so that exported names are
// known and unwinding is right.
//
// A section that has an uncaptured page becomes NOBITS: debuggers read the
// file, not memory, for unwind tables and read-only data, and zeros there would
// be lies.

// maxImage bounds a rebuilt file, in bytes: twice that is taken while it grows.
const maxImage = 256 << 20

// errImage is wrapped by the errors of BuildELF.
var errImage = errors.New("image: the ELF image cannot be rebuilt")

// BuildELF returns the file of a module, rebuilt from memory and the symbol
// files, with its IFUNC symbols bound. The caller may keep it. Errors say that too
// little of the module was captured, or that the budget has no room for it.
func BuildELF(mod *Module, m Memory, symbols *Symbols) ([]byte, error) {
	b, _, err := Rebuild(mod, m, symbols)
	return b, err
}

// Rebuild is BuildELF; isBound is false where the file has IFUNCs and nothing was
// chosen for any.
func Rebuild(mod *Module, m Memory, symbols *Symbols) (b []byte, isBound bool, err error) {
	return rebuild(mod, m, symbols, func(m Memory) ([]byte, error) { return buildELF(mod, m, symbols) })
}

// RebuildWith is Rebuild with a given symbol file, which has the module's build-id.
func RebuildWith(mod *Module, m Memory, symbols *Symbols, name string) (b []byte, isBound bool, err error) {
	return rebuild(mod, m, symbols, func(m Memory) ([]byte, error) { return symbols.build(mod, m, name) })
}

// rebuild charges for what build makes of the memory that it is given, and binds IFUNCs.
func rebuild(mod *Module, m Memory, symbols *Symbols, build func(m Memory) ([]byte, error)) (b []byte, isBound bool, err error) {
	c := &charged{Memory: m, budget: symbols.budget}
	b, err = build(c)
	if err == nil {
		isBound = bindIFuncs(b, mod, c, &symbols.unwind)
	}
	c.budget.Give(c.taken)
	if err == nil {
		err = kept(b, c.budget)
	}
	if c.err != nil {
		err = c.err // what was built lacks what could not be read
	}
	if err != nil {
		return nil, false, err
	}
	return b, isBound, nil
}

func buildELF(mod *Module, m Memory, symbols *Symbols) ([]byte, error) {
	if _, ok := symbols.inFolders(mod.BuildID); !ok && symbols.embedded {
		if b, err := mod.embedded(m); b != nil || err != nil {
			return b, err
		}
	}
	if path, ok := symbols.Find(mod, m); ok {
		b, err := symbols.build(mod, m, path)
		if err == nil {
			return b, nil
		}
	}
	return synthetic(mod, m, &symbols.unwind)
}

// symbolFile is a file found by its build-id.
type symbolFile struct {
	*elf.File
	raw []byte
}

func (s *Symbols) readSymbolFile(name string) (*symbolFile, error) {
	st, err := os.Stat(name)
	if err != nil || st.Size() > maxSymbolFile {
		return nil, errImage
	}
	s.mu.Lock()
	if !s.sized[name] {
		s.sized[name] = true
		s.budget.AddFile(st.Size())
	}
	s.mu.Unlock()
	if err := s.budget.Spend(st.Size(), images); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if err := kept(raw, s.budget); err != nil {
		return nil, err
	}
	f, err := elffile.Open(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return &symbolFile{f, raw}, nil
}

// isWhole reports whether the file has the program's own bytes, isNamed whether it
// has symbols that no memory holds.
func (f *symbolFile) isWhole() bool {
	t := f.Section(".text")
	return t != nil && t.Type == elf.SHT_PROGBITS
}

func (f *symbolFile) isNamed() bool {
	return f.Section(".symtab") != nil || f.Section(".debug_info") != nil || f.Section(".zdebug_info") != nil
}

// build makes the image of a module with a file that has its build-id. The file is
// served as it is when it has names, and what was captured is what it has. What
// was captured wins otherwise: a .debug file is merged, and a stripped file gives only
// what was not captured.
func (s *Symbols) build(mod *Module, m Memory, name string) ([]byte, error) {
	f, err := s.readSymbolFile(name)
	if err != nil {
		return nil, err
	}
	same := f.isWhole() && s.Agrees(mod, m, name)
	switch {
	case same && f.isNamed():
		return f.raw, nil
	case f.isNamed():
		if err := take(m, len(f.raw)); err != nil {
			return nil, err
		}
		return merged(mod, m, f.File, f.raw, &s.unwind)
	}
	im, err := memoryImage(mod, m, &s.unwind)
	if err != nil {
		return nil, err
	}
	if same {
		if err := take(m, len(f.raw)); err != nil {
			return nil, err
		}
		im.complete(f.raw)
		m = withFile{m, f.raw}
	}
	return im.withSections(m), nil
}

// withFile is memory with the file of the module that is rebuilt.
type withFile struct {
	Memory
	raw []byte
}

func (f withFile) ReadFile(_ uint32, off uint64, b []byte) int {
	if off > uint64(len(f.raw)) {
		return 0
	}
	return copy(b, f.raw[off:])
}

// image is an ELF file under construction.
type image struct {
	mod     *Module
	unwind  *Unwind
	b       []byte  // content by file offset, up to the last captured page
	missing []Range // file offsets of uncaptured pages behind which there are captured ones
	listed  []Range // see functions
}

// memoryImage lays the loaded segments out as in the file. The ELF header and
// the program headers come with the first segment. It is as long as what was
// captured: a header that claims more costs nothing.
func memoryImage(mod *Module, m Memory, unwind *Unwind) (*image, error) {
	im := &image{mod: mod, unwind: unwind}
	total, size := uint64(0), uint64(0)
	for _, p := range mod.Segments {
		if p.Type != elf.PT_LOAD || p.Filesz == 0 {
			continue
		}
		total += p.Filesz
		if p.Off > maxImage || p.Filesz > maxImage || p.Off+p.Filesz > maxImage || total > maxImage {
			return nil, fmt.Errorf("%w: a segment of %d bytes at %#x", errImage, p.Filesz, p.Off)
		}
		size = max(size, im.known(p, m))
	}
	if err := take(m, int(size)); err != nil {
		return nil, err
	}
	im.b = make([]byte, 0, size)
	for _, p := range mod.Segments {
		if p.Type == elf.PT_LOAD {
			im.fill(p, m)
		}
	}
	if len(im.b) < 64 || !bytes.HasPrefix(im.b, []byte(elf.ELFMAG)) {
		return nil, fmt.Errorf("%w: its header is not in memory", errImage)
	}
	im.unrelocate()
	return im, nil
}

func (im *image) grow(n uint64) {
	if old := uint64(len(im.b)); old < n {
		im.b = slices.Grow(im.b, int(n-old))[:n]
		clear(im.b[old:])
	}
}

// known returns where the last captured page of a segment ends in the file.
func (im *image) known(p elf.ProgHeader, m Memory) uint64 {
	var b [1]byte
	for end := p.Filesz; end > 0; {
		start := (im.mod.Bias + p.Vaddr + end - 1) &^ (checkpoint.PageSize - 1)
		start = max(start, im.mod.Bias+p.Vaddr) - im.mod.Bias - p.Vaddr
		if m.ReadMemory(im.mod.Bias+p.Vaddr+end-1, b[:]) == len(b) {
			return p.Off + end
		}
		end = start
	}
	return 0
}

// fill copies one segment page by page and notes which pages are missing.
func (im *image) fill(p elf.ProgHeader, m Memory) {
	var page [checkpoint.PageSize]byte
	for off := uint64(0); off < p.Filesz; {
		at := im.mod.Bias + p.Vaddr + off
		n := min(checkpoint.PageSize-at%checkpoint.PageSize, p.Filesz-off)
		if uint64(m.ReadMemory(at, page[:n])) == n {
			im.grow(p.Off + off + n)
			copy(im.b[p.Off+off:], page[:n])
		} else {
			im.miss(p.Off+off, p.Off+off+n)
		}
		off += n
	}
}

// miss notes uncaptured bytes.
func (im *image) miss(start, end uint64) {
	if n := len(im.missing); n > 0 && im.missing[n-1].End == start {
		im.missing[n-1].End = end
		return
	}
	im.missing = append(im.missing, Range{start, end})
}

// has reports whether all bytes of the file range are known.
func (im *image) has(off, n uint64) bool {
	size := uint64(len(im.b))
	if off > size || n > size-off {
		return false
	}
	for _, r := range im.missing {
		if off < r.End && r.Start < off+n {
			return false
		}
	}
	return true
}

// pointerTags are the entries of the dynamic section that the dynamic linker
// turns into addresses (glibc, elf/get-dynamic-info.h).
var pointerTags = map[elf.DynTag]bool{
	elf.DT_HASH: true, elf.DT_PLTGOT: true, elf.DT_STRTAB: true, elf.DT_SYMTAB: true, elf.DT_RELA: true,
	elf.DT_REL: true, elf.DT_JMPREL: true, elf.DT_VERSYM: true, elf.DT_GNU_HASH: true,
}

// unrelocate gives the dynamic section back the file's own addresses.
func (im *image) unrelocate() {
	le := binary.LittleEndian
	for _, p := range im.mod.Segments {
		if p.Type != elf.PT_DYNAMIC || !im.has(p.Off, p.Filesz) {
			continue
		}
		d := im.b[p.Off : p.Off+p.Filesz]
		for ; len(d) >= 16; d = d[16:] {
			tag, v := elf.DynTag(le.Uint64(d)), le.Uint64(d[8:])
			switch {
			case tag == elf.DT_DEBUG:
				le.PutUint64(d[8:], 0)
			case pointerTags[tag] && im.mod.Bias != 0 && v >= im.mod.Base && v < im.mod.End:
				le.PutUint64(d[8:], v-im.mod.Bias)
			}
		}
	}
}

// offsetOf returns the file offset of a file virtual address that lies in the
// loaded part of a segment.
func (mod *Module) offsetOf(vaddr uint64) (uint64, bool) {
	for _, p := range mod.Segments {
		if p.Type == elf.PT_LOAD && vaddr >= p.Vaddr && vaddr-p.Vaddr < p.Filesz {
			return p.Off + vaddr - p.Vaddr, true
		}
	}
	return 0, false
}

// section is a section header to write.
type section struct {
	name            string
	typ             elf.SectionType
	flags           elf.SectionFlag
	addr, off, size uint64
	link, info      uint32
	align, entsize  uint64
}

// finish appends the section names and the section table, and points the ELF
// header at them. Section 0 is added here.
func (im *image) finish(sections []section) []byte {
	names := []byte{0}
	at := make([]uint32, len(sections))
	for i, s := range sections {
		at[i] = uint32(len(names))
		names = append(append(names, s.name...), 0)
	}
	shstrtab := uint32(len(names))
	names = append(names, ".shstrtab\x00"...)
	strOff := im.append(names, 1)
	table := make([]byte, 64, 64*(len(sections)+2))
	for i := range sections {
		table = appendSection(table, at[i], &sections[i])
	}
	table = appendSection(table, shstrtab, &section{typ: elf.SHT_STRTAB, off: strOff, size: uint64(len(names)), align: 1})
	shoff := im.append(table, 8)
	le := binary.LittleEndian
	le.PutUint64(im.b[40:], shoff)
	le.PutUint16(im.b[58:], 64)
	le.PutUint16(im.b[60:], uint16(len(sections)+2))
	le.PutUint16(im.b[62:], uint16(len(sections)+1))
	return im.b
}

// append adds bytes at the next aligned offset and returns it.
func (im *image) append(b []byte, align uint64) uint64 {
	im.grow((uint64(len(im.b)) + align - 1) &^ (align - 1))
	off := uint64(len(im.b))
	im.b = append(im.b, b...)
	return off
}

func appendSection(b []byte, name uint32, s *section) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, name)
	b = le.AppendUint32(b, uint32(s.typ))
	for _, v := range []uint64{uint64(s.flags), s.addr, s.off, s.size} {
		b = le.AppendUint64(b, v)
	}
	b = le.AppendUint32(b, s.link)
	b = le.AppendUint32(b, s.info)
	b = le.AppendUint64(b, s.align)
	return le.AppendUint64(b, s.entsize)
}
