package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"slices"
	"sync"

	"vplay/dwarf/elffile"
)

// A symbol of type STT_GNU_IFUNC has the address of a resolver, a function that
// the dynamic linker calls once and that returns the implementation for the CPU at
// hand: strcpy, memcpy and their like in glibc. A debugger that knows no more
// stops at the resolver, so that break strcpy is never hit. gdb finds the
// implementation when the program's own linkage table has a name for it and the
// library has a symbol at its very address; stripped libraries have none.
//
// What the resolvers returned stands in memory, where relocations put it:
// R_X86_64_IRELATIVE has the resolver's address as its addend, and the slots of
// other relocations go by the symbol's name. In the files that debuggers are given,
// such symbols are plain functions at the implementation's address.

// maxRelocations bounds what is read of one module's relocations, in entries.
const maxRelocations = 1 << 20

// nameBytes is what a name that is kept takes in memory, without its letters.
const nameBytes = 96

// symbolSize and relaSize are the sizes of Elf64_Sym and Elf64_Rela in bytes.
const (
	symbolSize = 24
	relaSize   = 24
)

// rela is one relocation with addend.
type rela struct {
	offset uint64 // of the slot, a file virtual address
	kind   elf.R_X86_64
	symbol uint32
	addend uint64
}

func parseRelas(b []byte) []rela {
	le := binary.LittleEndian
	var out []rela
	for ; len(b) >= relaSize; b = b[relaSize:] {
		info := le.Uint64(b[8:])
		r := rela{le.Uint64(b), elf.R_X86_64(info & 0xffffffff), uint32(info >> 32), le.Uint64(b[16:])}
		switch r.kind { //nolint:exhaustive // the others bind no symbol
		case elf.R_X86_64_IRELATIVE, elf.R_X86_64_JMP_SLOT, elf.R_X86_64_GLOB_DAT, elf.R_X86_64_64:
			out = append(out, r)
		}
	}
	return out
}

// relocationTables returns the address ranges of a module's relocations, without
// the relative ones, which come first and bind nothing.
func (mod *Module) relocationTables() []Range {
	var out []Range
	add := func(at elf.DynTag, size, skip uint64) {
		v, ok := mod.Dynamic[at]
		if size = min(size, maxRelocations*relaSize); !ok || skip > size/relaSize {
			return
		}
		start := mod.Address(v) + skip*relaSize
		if n := size - skip*relaSize; n > 0 && start+n > start {
			out = append(out, Range{start, start + n})
		}
	}
	add(elf.DT_RELA, mod.Dynamic[elf.DT_RELASZ], mod.Dynamic[elf.DT_RELACOUNT])
	if mod.Dynamic[elf.DT_PLTREL] == uint64(elf.DT_RELA) {
		add(elf.DT_JMPREL, mod.Dynamic[elf.DT_PLTRELSZ], 0)
	}
	return out
}

// ifuncs returns the resolvers of a module's exported IFUNCs by name, as file
// virtual addresses. Of several versions of a name it is the one that programs
// are linked with today.
func (mod *Module) ifuncs(m Memory) map[string]uint64 {
	n := mod.SymbolCount(m)
	table, ok := mod.Dynamic[elf.DT_SYMTAB]
	if n == 0 || !ok {
		return nil
	}
	at := mod.Address(table)
	versions := make([]byte, 2*n)
	if v, ok := mod.Dynamic[elf.DT_VERSYM]; !ok || m.ReadMemory(mod.Address(v), versions) < len(versions) {
		clear(versions)
	}
	le := binary.LittleEndian
	out := map[string]uint64{}
	syms := readRun(at, at+uint64(n)*symbolSize, m)
	for i := 0; (i+1)*symbolSize <= len(syms); i++ {
		e := syms[i*symbolSize:]
		isHidden := le.Uint16(versions[2*i:])&0x8000 != 0
		if elf.ST_TYPE(e[4]) != elf.STT_GNU_IFUNC || le.Uint16(e[6:]) == 0 || isHidden {
			continue
		}
		if name := mod.dynamicString(uint64(le.Uint32(e)), m); name != "" && take(m, nameBytes+len(name)) == nil {
			out[name] = le.Uint64(e[8:])
		}
	}
	return out
}

// dynamicString reads a name from the dynamic string table, "" where it cannot.
func (mod *Module) dynamicString(off uint64, m Memory) string {
	v, ok := mod.Dynamic[elf.DT_STRTAB]
	if !ok || off >= mod.Dynamic[elf.DT_STRSZ] {
		return ""
	}
	var b [256]byte
	n := m.ReadMemory(mod.Address(v)+off, b[:])
	name, _, ok := bytes.Cut(b[:n], []byte{0})
	if !ok {
		return ""
	}
	return string(name)
}

// symbolName returns the name of a dynamic symbol, "" where it cannot be read.
func (mod *Module) symbolName(i uint32, m Memory) string {
	v, ok := mod.Dynamic[elf.DT_SYMTAB]
	var b [4]byte
	if !ok || m.ReadMemory(mod.Address(v)+uint64(i)*symbolSize, b[:]) < len(b) {
		return ""
	}
	return mod.dynamicString(uint64(binary.LittleEndian.Uint32(b[:])), m)
}

// slot reads what a relocation left in memory.
func (mod *Module) slot(r *rela, m Memory) uint64 {
	var b [8]byte
	if m.ReadMemory(mod.Bias+r.offset, b[:]) < len(b) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

// isCode reports whether addr lies in an executable segment of the module.
func (mod *Module) isCode(addr uint64) bool {
	for _, p := range mod.Segments {
		if at := mod.Bias + p.Vaddr; p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && addr >= at && addr-at < p.Memsz {
			return true
		}
	}
	return false
}

// isUnbound reports whether the function pointer in a slot leads into a procedure
// linkage table: to the push of a relocation's number, with ENDBR64 before it or not; or,
// in static programs, to behind the jump through the slot.
func isUnbound(slot, target uint64, m Memory) bool {
	var b [5]byte
	n := m.ReadMemory(target, b[:])
	code, _ := bytes.CutPrefix(b[:n], []byte{0xf3, 0x0f, 0x1e, 0xfa})
	if len(code) > 0 && code[0] == 0x68 {
		return true
	}
	var jump [6]byte // jmp *disp32(%rip)
	n = m.ReadMemory(target-uint64(len(jump)), jump[:])
	return n == len(jump) && jump[0] == 0xff && jump[1] == 0x25 && target+uint64(int32(binary.LittleEndian.Uint32(jump[2:]))) == slot
}

// implementations returns what the resolvers of a module's IFUNCs chose, by the
// resolver's address; both are file virtual addresses. tables are those of the file
// built for the module: static programs have no dynamic section.
func (mod *Module) implementations(m Memory, tables [][]byte) map[uint64]uint64 {
	out := map[uint64]uint64{}
	bind := func(resolver, slot, target uint64) {
		if _, ok := out[resolver]; !ok && target != mod.Bias+resolver && mod.isCode(target) && !isUnbound(slot, target, m) {
			out[resolver] = target - mod.Bias
		}
	}
	own := mod.relas(m)
	for _, t := range tables {
		own = append(own, parseRelas(t)...)
	}
	for i := range own {
		if r := &own[i]; r.kind == elf.R_X86_64_IRELATIVE {
			bind(r.addend, mod.Bias+r.offset, mod.slot(r, m))
		}
	}
	names := mod.ifuncs(m)
	if len(names) == 0 {
		return out
	}
	for _, peer := range mod.peers {
		relas := peer.relas(m)
		for i := range relas {
			r := &relas[i]
			if r.kind == elf.R_X86_64_IRELATIVE || r.kind == elf.R_X86_64_64 && r.addend != 0 {
				continue
			}
			if target := peer.slot(r, m); mod.isCode(target) {
				if resolver, ok := names[peer.symbolName(r.symbol, m)]; ok {
					bind(resolver, peer.Bias+r.offset, target)
				}
			}
		}
	}
	return out
}

// Implementations returns what the resolvers of a module's IFUNCs chose, by the
// resolver's address, as far as its relocations were captured. ok is false where it has
// resolvers and nothing was chosen: the dynamic linker has yet to run.
func (mod *Module) Implementations(m Memory) (chosen map[uint64]uint64, ok bool) {
	chosen = map[uint64]uint64{}
	for resolver, impl := range mod.implementations(m, nil) {
		chosen[resolver+mod.Bias] = impl + mod.Bias
	}
	isIndirect := func(r rela) bool { return r.kind == elf.R_X86_64_IRELATIVE }
	return chosen, len(chosen) > 0 || len(mod.ifuncs(m)) == 0 && !slices.ContainsFunc(mod.relas(m), isIndirect)
}

// relas reads the relocations that bind symbols, as far as they were captured.
func (mod *Module) relas(m Memory) (out []rela) {
	for _, t := range mod.relocationTables() {
		out = append(out, parseRelas(readRun(t.Start, t.End, m))...)
	}
	return out
}

// bindIFuncs turns the IFUNC symbols of a module's file into functions at the
// implementation that was chosen, in place. Those that nothing was bound to stay. It is
// false when it has such symbols and nothing was chosen for any.
func bindIFuncs(b []byte, mod *Module, m Memory, unwind *Unwind) bool {
	f, err := elffile.Open(bytes.NewReader(b))
	if err != nil {
		return true
	}
	var x ifuncBinder
	for _, s := range f.Sections {
		if s.Offset > uint64(len(b)) || s.FileSize > uint64(len(b))-s.Offset {
			continue
		}
		x.section(s.Name, s.Type, s.Addr, b[s.Offset:s.Offset+s.FileSize])
	}
	return x.bind(mod, m, unwind.Functions)
}

// bindIFuncs is the same for an image that is being built, of which list are the
// sections.
func (im *image) bindIFuncs(list []section, m Memory) {
	var x ifuncBinder
	for i := range list {
		if s := &list[i]; s.typ != elf.SHT_NOBITS && im.has(s.off, s.size) {
			x.section(s.name, s.typ, s.addr, im.b[s.off:s.off+s.size])
		}
	}
	x.bind(im.mod, m, im.functions)
}

// ifuncBinder has the sections that bindIFuncs needs.
type ifuncBinder struct {
	symbols, relas [][]byte
	frames         []byte // .eh_frame
	framesAt       uint64
}

func (x *ifuncBinder) section(name string, typ elf.SectionType, addr uint64, data []byte) {
	switch {
	case (typ == elf.SHT_SYMTAB || typ == elf.SHT_DYNSYM) && hasIFunc(data):
		x.symbols = append(x.symbols, data)
	case typ == elf.SHT_RELA && addr != 0 && len(data) <= maxRelocations*relaSize:
		x.relas = append(x.relas, data)
	case name == ".eh_frame" && typ != elf.SHT_NOBITS:
		x.frames, x.framesAt = data, addr
	}
}

// bind rewrites the symbols. Their sizes, which were the resolvers', are those that
// the unwind table has of the implementations. It is false when there are symbols and
// nothing was chosen for any.
func (x *ifuncBinder) bind(mod *Module, m Memory, functions listFunctions) bool {
	if len(x.symbols) == 0 {
		return true
	}
	chosen := mod.implementations(m, x.relas)
	sizes := sync.OnceValue(func() map[uint64]uint64 {
		out := map[uint64]uint64{}
		for _, r := range functions(x.frames, x.framesAt, budgetOf(m)) {
			out[r.Start] = r.End - r.Start
		}
		return out
	})
	le := binary.LittleEndian
	for _, t := range x.symbols {
		for ; len(t) >= symbolSize; t = t[symbolSize:] {
			target, ok := chosen[le.Uint64(t[8:])]
			if !ok || elf.ST_TYPE(t[4]) != elf.STT_GNU_IFUNC {
				continue
			}
			t[4] = t[4]&^0xf | byte(elf.STT_FUNC)
			le.PutUint64(t[8:], target)
			le.PutUint64(t[16:], sizes()[target])
		}
	}
	return len(chosen) > 0
}

func hasIFunc(symbols []byte) bool {
	for ; len(symbols) >= symbolSize; symbols = symbols[symbolSize:] {
		if elf.ST_TYPE(symbols[4]) == elf.STT_GNU_IFUNC {
			return true
		}
	}
	return false
}
