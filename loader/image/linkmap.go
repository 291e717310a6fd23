package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"

	"vplay/checkpoint"
)

// The dynamic linker's list of modules, as it lies in memory. Which ELF files are mapped is
// found without it, in module.go.

// Link is one entry of the dynamic linker's list of modules (struct link_map
// of link.h).
type Link struct {
	Name    string // path; the program's own is empty in memory and filled in here
	Addr    uint64 // of the link_map; made up when the list was not captured
	Base    uint64 // l_addr: the load bias
	Dynamic uint64 // l_ld
	Main    bool   // the program itself
}

// maxLinks bounds the list that is followed.
const maxLinks = 4096

// LinkMap returns the modules loaded, in the dynamic linker's order, the
// program first. What was not captured of its list is made from the memory map.
func LinkMap(maps []checkpoint.Mapping, m Memory) []Link {
	mods := Modules(maps, m)
	program := mainModule(mods)
	if program == nil {
		return nil
	}
	links, whole := readLinks(program, m)
	makeAbsolute(links, mods)
	if whole {
		return links
	}
	return complete(links, madeLinks(mods, program))
}

// mainModule returns the program: the first module with an interpreter, else
// the first executable or position-independent one that is not a library.
func mainModule(mods []*Module) *Module {
	for _, mod := range mods {
		for _, p := range mod.Segments {
			if p.Type == elf.PT_INTERP {
				return mod
			}
		}
	}
	for _, mod := range mods {
		if mod.Type == elf.ET_EXEC {
			return mod
		}
	}
	for _, mod := range mods {
		if mod.Path != vdso {
			return mod
		}
	}
	return nil
}

// complete adds to links those of made that are about other modules.
func complete(links, made []Link) []Link {
	for _, l := range made {
		if !slices.ContainsFunc(links, func(have Link) bool { return have.Base == l.Base && have.Dynamic == l.Dynamic }) {
			links = append(links, l)
		}
	}
	return links
}

// readLinks follows r_debug of the program; whole says that the list was captured
// to its end, and is not empty.
func readLinks(program *Module, m Memory) (out []Link, whole bool) {
	le := binary.LittleEndian
	var b [40]byte
	debug := program.Dynamic[elf.DT_DEBUG]
	if debug == 0 || m.ReadMemory(debug, b[:16]) < 16 {
		return nil, false
	}
	seen := map[uint64]bool{}
	for at := le.Uint64(b[8:]); at != 0 && !seen[at] && len(out) < maxLinks; at = le.Uint64(b[24:]) {
		seen[at] = true
		if m.ReadMemory(at, b[:]) < len(b) {
			return out, false
		}
		l := Link{Addr: at, Base: le.Uint64(b[:]), Name: CString(m, le.Uint64(b[8:])), Dynamic: le.Uint64(b[16:])}
		if len(out) == 0 {
			l.Main, l.Name = true, program.Path
		}
		out = append(out, l)
	}
	return out, len(out) > 0
}

// makeAbsolute replaces relative names, as dlopen may have been given, by the
// paths in the memory map: a debugger would look for them in its own folder.
func makeAbsolute(links []Link, mods []*Module) {
	for i := range links {
		l := &links[i]
		if strings.HasPrefix(l.Name, "/") {
			continue
		}
		for _, mod := range mods {
			if mod.Bias == l.Base && l.Dynamic >= mod.Base && l.Dynamic < mod.End && mod.Path != vdso {
				l.Name = mod.Path
			}
		}
	}
}

// madeLinks makes a list from what is mapped.
func madeLinks(mods []*Module, program *Module) []Link {
	var out []Link
	for i, mod := range mods {
		l := Link{Name: mod.Path, Addr: uint64(i + 1), Base: mod.Bias, Main: mod == program}
		for _, p := range mod.Segments {
			if p.Type == elf.PT_DYNAMIC {
				l.Dynamic = mod.Bias + p.Vaddr
			}
		}
		if l.Main {
			out = append([]Link{l}, out...)
		} else if l.Dynamic != 0 && mod.Path != vdso {
			out = append(out, l)
		}
	}
	return out
}

// CString reads a string of at most 4096 bytes that ends with a NUL, or as
// much of it as is there.
func CString(m Memory, addr uint64) string {
	var b [checkpoint.PageSize]byte
	n := m.ReadMemory(addr, b[:])
	if i := bytes.IndexByte(b[:n], 0); i >= 0 {
		n = i
	}
	return string(b[:n])
}
