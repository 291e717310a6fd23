package dwarf

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"slices"
	"sort"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// The symbol table of a file. Names of functions without a symbol are in functions.go.

// symbol is a function or variable of a symbol table.
type symbol struct {
	addr, size uint64
	name       string
	rank       uint8 // of several names for an address the highest is shown
}

// maxNames bounds the symbols that are kept.
const maxNames = 4 << 20

// What a symbol takes in memory, and to be read, without its name.
const (
	symbolBytes = 240
	symbolWork  = 200
	symbolSize  = 24 // of an Elf64_Sym
)

// readSymbols joins the full and the dynamic symbol table.
func readSymbols(f *file) []symbol {
	var out []symbol
	seen := map[symbol]bool{}
	for _, kind := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
		table := f.SectionByType(kind)
		if table == nil || table.Link == 0 || int(table.Link) >= len(f.Sections) {
			continue
		}
		names := f.section(f.Sections[table.Link])
		le := binary.LittleEndian
		for b := f.section(table); len(b) >= symbolSize && len(out) < maxNames; b = b[symbolSize:] {
			info, value := b[4], le.Uint64(b[8:])
			t := elf.ST_TYPE(info)
			if elf.SectionIndex(le.Uint16(b[6:])) == elf.SHN_UNDEF || value == 0 ||
				t != elf.STT_FUNC && t != elf.STT_OBJECT && t != elf.STT_NOTYPE && t != elf.STT_GNU_IFUNC {
				continue
			}
			text, ok := stringIn(names, uint64(le.Uint32(b)))
			if !ok || len(text) == 0 {
				continue
			}
			// The first refusal ends the table: millions of others would cost their names' length each.
			if f.meter.spend(len(text)) != nil {
				break
			}
			name := string(text)
			x := symbol{addr: value, size: le.Uint64(b[16:]), name: name, rank: rank(info, name)}
			if seen[x] {
				continue
			}
			if f.meter.spend(symbolWork) != nil || f.meter.take(symbolBytes+len(name)) != nil {
				break
			}
			seen[x] = true
			out = append(out, x)
		}
	}
	slices.SortStableFunc(out, func(a, b symbol) int { return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.rank, b.rank)) })
	return out
}

// rank prefers functions to labels, and global names to local ones.
func rank(info byte, name string) (r uint8) {
	if elf.ST_TYPE(info) != elf.STT_NOTYPE {
		r += 4
	}
	switch elf.ST_BIND(info) {
	case elf.STB_GLOBAL:
		r += 2
	case elf.STB_WEAK:
		r++
	default: // Local, or a system's own.
	}
	if name[0] == '_' {
		return r * 2
	}
	return r*2 + 1
}

// maxGap is how far behind a symbol without a size an address may lie, in bytes.
const maxGap = 1 << 16

// Symbol returns the demangled name of the symbol that addr lies in, and how
// many bytes behind its start. A function without a symbol has the name that
// FunctionName gives it. Symbols without a size reach to the next one.
func (m *Module) Symbol(addr uint64) (name string, off uint64, ok bool) {
	if name, off, ok = m.Within(addr); ok {
		return name, off, true
	}
	i := sort.Search(len(m.symbols), func(i int) bool { return m.symbols[i].addr > addr })
	if i > 0 {
		if s := &m.symbols[i-1]; s.size == 0 && addr-s.addr < maxGap {
			return Demangle(s.name), addr - s.addr, true
		}
	}
	return "", 0, false
}

// Lookup returns the address of the symbol with that name, as it is in the
// file or demangled.
func (m *Module) Lookup(name string) (addr uint64, ok bool) {
	for i := range m.symbols {
		if s := &m.symbols[i]; s.name == name {
			return s.addr, true
		}
	}
	isPlain := isIdentifier(name)
	for i := range m.symbols {
		s := &m.symbols[i]
		if isPlain && !strings.Contains(s.name, name) { // a mangled name has it as it is
			continue
		}
		if m.meter.spend(demangleWork*len(s.name)) != nil {
			break
		}
		if len(s.name) > len(name) && Demangle(s.name) == name {
			return s.addr, true
		}
	}
	return m.lookupUnnamed(name)
}

// isIdentifier reports whether a name is one of C: not that of something in a namespace or a class, nor an operator's.
func isIdentifier(name string) bool {
	for _, c := range name {
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// maxMangled bounds the names that are demangled, in bytes: the work grows
// faster than the name.
const maxMangled = 4096

// demangleWork is what demangling takes, in bytes of work for each byte of a name.
const demangleWork = 32

// Demangle returns the C++ or Rust name behind a mangled one, without
// parameters; others stay as they are.
func Demangle(name string) (out string) {
	if len(name) > maxMangled {
		return name
	}
	defer func() {
		if recover() != nil {
			out = name
		}
	}()
	return demangle.Filter(name, demangle.NoParams, demangle.NoEnclosingParams, demangle.MaxLength(12))
}

// Within is Symbol for what says how long it is, symbols with a size and entries
// of call frame information: where it finds one, addr is part of it.
func (m *Module) Within(addr uint64) (name string, off uint64, ok bool) {
	if s := m.sized(addr); s != nil {
		return Demangle(s.name), addr - s.addr, true
	}
	name, low, _, ok := m.unnamed(addr)
	return name, addr - low, ok
}

// sized returns the symbol with a size that holds addr, nil when there is none.
func (m *Module) sized(addr uint64) *symbol {
	i := sort.Search(len(m.symbols), func(i int) bool { return m.symbols[i].addr > addr })
	for n := 0; i > 0 && n < 64; n++ { // sized symbols may enclose smaller ones
		i--
		if s := &m.symbols[i]; addr-s.addr < s.size {
			return s
		}
	}
	return nil
}
