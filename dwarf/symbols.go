package dwarf

import (
	"cmp"
	"debug/elf"
	"slices"
	"sort"

	"github.com/ianlancetaylor/demangle"
)

// symbol is a function or variable of a symbol table.
type symbol struct {
	addr, size uint64
	name       string
	rank       uint8 // of several names for an address the highest is shown
}

// maxNames bounds the symbols that are kept.
const maxNames = 4 << 20

// readSymbols joins the full and the dynamic symbol table.
func readSymbols(f *elf.File) []symbol {
	var out []symbol
	seen := map[symbol]bool{}
	for _, table := range []func() ([]elf.Symbol, error){f.Symbols, f.DynamicSymbols} {
		list, err := table()
		if err != nil {
			continue
		}
		for i := range list {
			s := &list[i]
			t := elf.ST_TYPE(s.Info)
			if s.Section == elf.SHN_UNDEF || s.Name == "" || len(out) == maxNames ||
				t != elf.STT_FUNC && t != elf.STT_OBJECT && t != elf.STT_NOTYPE && t != elf.STT_GNU_IFUNC || s.Value == 0 {
				continue
			}
			x := symbol{addr: s.Value, size: s.Size, name: s.Name, rank: rank(s, t)}
			if !seen[x] {
				seen[x] = true
				out = append(out, x)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b symbol) int { return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.rank, b.rank)) })
	return out
}

// rank prefers functions to labels, and global names to local ones.
func rank(s *elf.Symbol, t elf.SymType) (r uint8) {
	if t != elf.STT_NOTYPE {
		r += 4
	}
	switch elf.ST_BIND(s.Info) {
	case elf.STB_GLOBAL:
		r += 2
	case elf.STB_WEAK:
		r++
	default: // Local, or a system's own.
	}
	if len(s.Name) > 0 && s.Name[0] == '_' {
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
	for i := range m.symbols {
		if s := &m.symbols[i]; len(s.name) > len(name) && Demangle(s.name) == name {
			return s.addr, true
		}
	}
	return m.lookupUnnamed(name)
}

// maxMangled bounds the names that are demangled, in bytes: the work grows
// faster than the name.
const maxMangled = 4096

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
