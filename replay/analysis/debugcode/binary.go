package debugcode

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"vplay/dwarf"
	"vplay/replay/mem"
)

// The linked program: its segments, the places in its code that have addresses of the recorded
// program, and its lines.

// program is the linked file.
type program struct {
	segments []segment
	entry    uint64
	phdr     uint64 // address of the program headers
	phnum    int
	symbols  map[string]uint64
	lines    *dwarf.Module
	text     [2]uint64 // the addresses of code
}

// segment is what is loaded.
type segment struct {
	start, end uint64 // page-aligned
	addr       uint64 // of data
	data       []byte
	prot       uint8
}

// readBinary reads the linked file and finds the symbols' places in it.
func readBinary(b []byte, symbols []*symbol) (*program, error) {
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("what the linker made: %w", err)
	}
	p := &program{entry: f.Entry, symbols: map[string]uint64{}, phnum: len(f.Progs)}
	for _, ph := range f.Progs {
		if ph.Type != elf.PT_LOAD {
			continue
		}
		s := segment{start: ph.Vaddr &^ (mem.PageSize - 1), end: (ph.Vaddr + ph.Memsz + mem.PageSize - 1) &^ (mem.PageSize - 1), addr: ph.Vaddr, data: make([]byte, ph.Filesz)}
		if _, err := ph.ReadAt(s.data, 0); err != nil && ph.Filesz > 0 {
			return nil, fmt.Errorf("what the linker made: %w", err)
		}
		for _, x := range []struct {
			flag elf.ProgFlag
			prot uint8
		}{{elf.PF_R, mem.ProtRead}, {elf.PF_W, mem.ProtWrite}, {elf.PF_X, mem.ProtExec}} {
			if ph.Flags&x.flag != 0 {
				s.prot |= x.prot
			}
		}
		if ph.Off == 0 {
			p.phdr = ph.Vaddr + 64 // behind the ELF header, where linkers put them
		}
		if s.prot&mem.ProtExec != 0 {
			p.text = [2]uint64{s.start, s.end}
		}
		p.segments = append(p.segments, s)
	}
	names, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("what the linker made: %w", err)
	}
	for _, s := range names {
		if elf.ST_BIND(s.Info) == elf.STB_GLOBAL {
			p.symbols[s.Name] = s.Value
		}
	}
	if p.lines, err = dwarf.Open(b, nil); err != nil {
		return nil, fmt.Errorf("what the linker made: %w", err)
	}
	return p, relocate(f, names, symbols)
}

var errRelocation = errors.New("the compiler has put an address of the program where vplay cannot change it")

// relocate finds the places of symbols' addresses.
func relocate(f *elf.File, names []elf.Symbol, symbols []*symbol) error {
	by := map[string]*symbol{}
	for _, s := range symbols {
		by[s.name] = s
	}
	for _, sec := range f.Sections {
		if sec.Type != elf.SHT_RELA || int(sec.Info) >= len(f.Sections) {
			continue
		}
		of := f.Sections[sec.Info]
		if of.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		b, err := sec.Data()
		if err != nil {
			return err
		}
		for ; len(b) >= 24; b = b[24:] {
			at, info, addend := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
			n := int(info >> 32)
			if n < 1 || n > len(names) {
				continue
			}
			s := by[names[n-1].Name]
			if s == nil {
				continue
			}
			if elf.R_X86_64(info&0xffffffff) != elf.R_X86_64_64 {
				return errRelocation
			}
			if of.Flags&elf.SHF_EXECINSTR != 0 {
				s.sites = append(s.sites, site{at, addend})
			} else {
				s.data = append(s.data, site{at, addend})
			}
		}
	}
	return nil
}

// source names the line of an address, "" where none is known.
func (p *program) source(addr uint64) string {
	file, line, ok := p.lines.Line(addr)
	if !ok || strings.HasPrefix(file, "vplay") {
		return ""
	}
	return fmt.Sprintf("%s:%d", strings.TrimPrefix(file, p.lines.CompDir()+"/"), line)
}
