package image

import (
	"debug/elf"
	"encoding/binary"
	"sort"

	"vplay/checkpoint"
)

// The debugger set: which memory the recorder keeps for debuggers, though the program
// need not have used it. Sizes of symbol tables and hash tables are found here, too
// (ELF gABI, "Dynamic Section"; GNU's hash table as glibc reads it). The pages of a
// file's section table are in sectiontable.go.

// Range is a range of guest addresses.
type Range struct{ Start, End uint64 }

// maxTable bounds what one table or stack may add to the debugger set, in bytes.
const maxTable = 64 << 20

// maxGlobals bounds the variables of a module that belong to the debugger set,
// in bytes.
const maxGlobals = 256 << 10

// DebuggerSet returns the ranges that no program need have touched and that
// every debugger reads: ELF and program headers, notes, the dynamic section with
// the symbol tables and relocations it points to, unwind tables, the dynamic linker's list of
// modules, global variables, the thread block, and the live part of the stack. The ranges are
// page-aligned, sorted and disjoint; some may not be mapped.
func DebuggerSet(maps []checkpoint.Mapping, contexts []checkpoint.Context, m Memory) []Range {
	var rs []Range
	add := func(start, n uint64) {
		if n = min(n, maxTable); n > 0 && start+n+checkpoint.PageSize > start {
			rs = append(rs, Range{start &^ (checkpoint.PageSize - 1), (start + n + checkpoint.PageSize - 1) &^ (checkpoint.PageSize - 1)})
		}
	}
	for _, mod := range Modules(maps, m) {
		moduleSet(mod, m, add)
	}
	for i := range contexts {
		threadSet(maps, &contexts[i], add)
	}
	return merge(rs)
}

// moduleSet adds what debuggers read of one module.
func moduleSet(mod *Module, m Memory, add func(start, n uint64)) {
	add(mod.Base, checkpoint.PageSize)
	for _, p := range mod.Segments {
		at := mod.Bias + p.Vaddr
		switch p.Type {
		case elf.PT_NOTE, elf.PT_DYNAMIC, elf.PT_INTERP, elf.PT_TLS:
			add(at, p.Filesz)
		case elf.PT_GNU_EH_FRAME:
			add(at, p.Memsz)
		case elf.PT_LOAD:
			// Debuggers read the vDSO whole, and people ask for global variables.
			if mod.Path == vdso || p.Flags&elf.PF_W != 0 && p.Memsz <= maxGlobals {
				add(at, p.Memsz)
			}
		default: // Parts of the others, or nothing in memory.
		}
	}
	start, end := mod.EhFrame(m)
	add(start, end-start)
	mod.symbolSet(m, add)
	for _, t := range mod.relocationTables() {
		add(t.Start, t.End-t.Start)
	}
	if debug := mod.Dynamic[elf.DT_DEBUG]; debug != 0 {
		linkMapSet(debug, m, add)
	}
}

// symbolSet adds the dynamic symbols, their strings, hashes and versions.
func (mod *Module) symbolSet(m Memory, add func(start, n uint64)) {
	n := mod.SymbolCount(m)
	if v, ok := mod.Dynamic[elf.DT_SYMTAB]; ok {
		add(mod.Address(v), uint64(n)*24)
	}
	if v, ok := mod.Dynamic[elf.DT_STRTAB]; ok {
		add(mod.Address(v), mod.Dynamic[elf.DT_STRSZ])
	}
	if v, ok := mod.Dynamic[elf.DT_VERSYM]; ok {
		add(mod.Address(v), uint64(n)*2)
	}
	if v, ok := mod.Dynamic[elf.DT_GNU_HASH]; ok {
		add(mod.Address(v), gnuHashSize(mod.Address(v), n, m))
	}
	for _, t := range []elf.DynTag{elf.DT_VERNEED, elf.DT_VERDEF, elf.DT_PLTGOT} {
		if v, ok := mod.Dynamic[t]; ok {
			add(mod.Address(v), checkpoint.PageSize)
		}
	}
}

// maxSymbols bounds what a hash table is believed to hold.
const maxSymbols = 1 << 20

// SymbolCount returns the number of dynamic symbols, which only the hash
// tables tell: DT_HASH directly, DT_GNU_HASH by its longest chain.
func (mod *Module) SymbolCount(m Memory) int {
	le := binary.LittleEndian
	if v, ok := mod.Dynamic[elf.DT_HASH]; ok {
		var b [8]byte
		if m.ReadMemory(mod.Address(v), b[:]) == len(b) {
			return int(min(le.Uint32(b[4:]), maxSymbols))
		}
	}
	v, ok := mod.Dynamic[elf.DT_GNU_HASH]
	if !ok {
		return 0
	}
	at := mod.Address(v)
	var h [16]byte
	if m.ReadMemory(at, h[:]) < len(h) {
		return 0
	}
	buckets, first, bloom := uint64(le.Uint32(h[:])), le.Uint32(h[4:]), uint64(le.Uint32(h[8:]))
	if buckets > maxSymbols || bloom > maxSymbols {
		return 0
	}
	b := make([]byte, buckets*4)
	at += 16 + bloom*8
	if m.ReadMemory(at, b) < len(b) {
		return 0
	}
	last := uint32(0)
	for i := uint64(0); i < buckets; i++ {
		last = max(last, le.Uint32(b[i*4:]))
	}
	if last < first {
		return int(min(first, maxSymbols))
	}
	return chainEnd(m, at+buckets*4, first, last)
}

// chainEnd follows the last chain of a GNU hash table to its end.
func chainEnd(m Memory, chains uint64, first, last uint32) int {
	var b [1024]byte
	for last < maxSymbols {
		n := m.ReadMemory(chains+uint64(last-first)*4, b[:]) &^ 3
		for i := 0; i < n; i += 4 {
			if b[i]&1 != 0 {
				return int(last) + 1
			}
			last++
		}
		if n < len(b) {
			break
		}
	}
	return int(last)
}

// gnuHashSize returns the size in bytes of a GNU hash table over n symbols.
func gnuHashSize(at uint64, n int, m Memory) uint64 {
	var h [16]byte
	if m.ReadMemory(at, h[:]) < len(h) {
		return uint64(len(h))
	}
	le := binary.LittleEndian
	return 16 + uint64(le.Uint32(h[8:]))*8 + uint64(le.Uint32(h[:]))*4 + uint64(n)*4
}

// linkMapSet adds r_debug and the chain of link_map with its names (link.h).
func linkMapSet(rdebug uint64, m Memory, add func(start, n uint64)) {
	var b [40]byte
	add(rdebug, uint64(len(b)))
	if m.ReadMemory(rdebug, b[:]) < len(b) {
		return
	}
	le := binary.LittleEndian
	lm := le.Uint64(b[8:])
	for range 4096 {
		if lm == 0 || m.ReadMemory(lm, b[:]) < len(b) {
			return
		}
		add(lm, uint64(len(b)))
		add(le.Uint64(b[8:]), 256)
		lm = le.Uint64(b[24:])
	}
}

// threadSet adds a thread's stack from a little below its pointer to its end,
// and the page of its thread control block with what is around it.
func threadSet(maps []checkpoint.Mapping, c *checkpoint.Context, add func(start, n uint64)) {
	sp := c.Regs.R[4]
	for i := range maps {
		g := &maps[i]
		if sp >= g.Start && sp < g.End {
			from := max(g.Start, sp-min(sp, 4*checkpoint.PageSize))
			to := g.End
			if g.Flags&checkpoint.MapStack == 0 {
				to = min(to, sp+(1<<20))
			}
			add(from, to-from)
		}
	}
	if fs := c.Regs.FSBase; fs > checkpoint.PageSize {
		add(fs-checkpoint.PageSize, 2*checkpoint.PageSize)
	}
}

// merge sorts ranges and joins those that touch.
func merge(rs []Range) []Range {
	sort.Slice(rs, func(i, j int) bool { return rs[i].Start < rs[j].Start })
	var out []Range
	for _, r := range rs {
		if n := len(out); n > 0 && r.Start <= out[n-1].End {
			out[n-1].End = max(out[n-1].End, r.End)
			continue
		}
		out = append(out, r)
	}
	return out
}
