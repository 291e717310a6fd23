package image

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"vplay/checkpoint"
)

// An image with the sections of a .debug file, which has names and debugging
// information but not the loaded bytes. Images without such a file are in synthetic.go;
// which way is taken is decided in build.go.

// merged joins the memory image with the sections of a .debug file. raw is the
// file's content.
func merged(mod *Module, m Memory, f *elf.File, raw []byte, unwind *Unwind) ([]byte, error) {
	im, err := memoryImage(mod, m, unwind)
	if err != nil {
		return nil, err
	}
	if len(f.Sections) < 2 || len(f.Sections) > 1<<15 {
		return nil, fmt.Errorf("%w: the symbol file has %d sections", errImage, len(f.Sections))
	}
	sections := make([]section, 0, len(f.Sections))
	im.b = slices.Grow(im.b, len(raw)) // most of it is sections that are not loaded
	total := uint64(0)
	for _, s := range f.Sections[1:] {
		align := uint64(1)
		if s.Addralign&(s.Addralign-1) == 0 {
			align = min(max(s.Addralign, 1), checkpoint.PageSize)
		}
		out := section{
			name: s.Name, typ: s.Type, flags: s.Flags, addr: s.Addr, size: s.Size,
			link: s.Link, info: s.Info, align: align, entsize: s.Entsize,
		}
		if s.Flags&elf.SHF_ALLOC != 0 {
			im.restore(&out)
		} else if s.Type != elf.SHT_NOBITS {
			if s.Offset > uint64(len(raw)) || s.FileSize > uint64(len(raw))-s.Offset {
				return nil, fmt.Errorf("%w: section %s of the symbol file lies outside of it", errImage, s.Name)
			}
			if total += s.FileSize; total > maxSymbolFile {
				return nil, fmt.Errorf("%w: the sections of the symbol file overlap", errImage)
			}
			out.off = im.append(raw[s.Offset:s.Offset+s.FileSize], align)
			out.size = s.FileSize
		}
		sections = append(sections, out)
	}
	return im.finish(sections), nil
}

// restore gives a loaded section, which a .debug file has as NOBITS, its place
// in the image and its type back.
func (im *image) restore(s *section) {
	known := im.locate(s)
	if s.name == ".bss" || s.name == ".tbss" || !known {
		s.typ = elf.SHT_NOBITS
		return
	}
	if s.typ == elf.SHT_NOBITS || s.typ == elf.SHT_PROGBITS {
		s.typ = typeOf(s.name)
	}
}

// locate gives a loaded section its place in the image and reports whether all
// of its bytes are known.
func (im *image) locate(s *section) bool {
	off, ok := im.mod.offsetOf(s.addr)
	s.off = off
	return ok && s.size > 0 && im.has(off, s.size)
}

// sectionTypes are the types that strip loses when it turns a section into
// NOBITS.
var sectionTypes = map[string]elf.SectionType{
	".dynsym": elf.SHT_DYNSYM, ".dynstr": elf.SHT_STRTAB, ".dynamic": elf.SHT_DYNAMIC,
	".hash": elf.SHT_HASH, ".gnu.hash": elf.SHT_GNU_HASH, ".gnu.version": elf.SHT_GNU_VERSYM,
	".gnu.version_d": elf.SHT_GNU_VERDEF, ".gnu.version_r": elf.SHT_GNU_VERNEED,
	".init_array": elf.SHT_INIT_ARRAY, ".fini_array": elf.SHT_FINI_ARRAY, ".preinit_array": elf.SHT_PREINIT_ARRAY,
}

func typeOf(name string) elf.SectionType {
	if t, ok := sectionTypes[name]; ok {
		return t
	}
	switch {
	case strings.HasPrefix(name, ".note"):
		return elf.SHT_NOTE
	case strings.HasPrefix(name, ".rela"):
		return elf.SHT_RELA
	}
	return elf.SHT_PROGBITS
}
