package dwarf

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"sync"

	"vplay/dwarf/elffile"
)

// Module is an opened ELF file. It is safe for concurrent use.
type Module struct {
	meter   *meter
	symbols []symbol // sorted by address

	mu        sync.Mutex
	data      *info   // nil when there is no debugging information
	units     []*unit // nil before the first lookup
	unitSpans spans   // of units
	begun     bool

	frames []*frameSection

	sec     sections
	headers []header
	types   map[dwarf.Offset]*Type
	blocks  map[dwarf.Offset]*blockTree // by function
	index   *nameIndex
	golang  *goProgram
}

// errFile is wrapped by the errors of Open.
var errFile = fmt.Errorf("dwarf: %w", elffile.ErrNotELF)

// Open reads an ELF file from memory. image is kept, not copied. What is read of it is
// charged to budget, then and later; nil has no bounds. Errors say that it is no ELF
// file for x86-64; damaged debugging information is none, it is as if it were not
// there, and so is what the budget has no room for (see Limited).
func Open(image []byte, budget Budget) (m *Module, err error) {
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, fmt.Errorf("%w: %v", errFile, p)
		}
	}()
	f, err := elffile.Open(bytes.NewReader(image))
	if err != nil {
		return nil, fmt.Errorf("dwarf: %w", err)
	}
	if f.Class != elf.ELFCLASS64 || f.Machine != elf.EM_X86_64 {
		return nil, errFile
	}
	m = &Module{}
	m.meter = newMeter(budget, m)
	in := &file{File: f, image: image, meter: m.meter}
	m.symbols = readSymbols(in)
	m.readFrames(in)
	m.readDWARF(in)
	return m, nil
}

// HasNames reports whether the file names functions.
func (m *Module) HasNames() bool { return len(m.symbols) > 0 }

// HasLines reports whether the file has debugging information.
func (m *Module) HasLines() bool { return m.data != nil }
