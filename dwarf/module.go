package dwarf

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"sync"
)

// Module is an opened ELF file. It is safe for concurrent use.
type Module struct {
	symbols []symbol // sorted by address

	mu    sync.Mutex
	data  *dwarf.Data // nil when there is no debugging information
	units []*unit     // nil before the first lookup
	begun bool

	frames []*frameSection

	sec     sections
	headers []header
	types   map[dwarf.Offset]*Type
	index   *nameIndex
	golang  *goProgram
}

// maxSection bounds one section, in bytes after decompression; maxTotal all of
// those that are read.
const (
	maxSection = 1 << 30
	maxTotal   = 3 << 30
)

// errFile is wrapped by the errors of Open.
var errFile = errors.New("dwarf: not an ELF file for x86-64")

// Open reads an ELF file from memory. image is kept, not copied. Errors say
// that it is no ELF file for x86-64; damaged debugging information is none, it
// is as if it were not there.
func Open(image []byte) (m *Module, err error) {
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, fmt.Errorf("%w: %v", errFile, p)
		}
	}()
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFile, err)
	}
	if f.Class != elf.ELFCLASS64 || f.Machine != elf.EM_X86_64 {
		return nil, errFile
	}
	m = &Module{symbols: readSymbols(f)}
	total := uint64(0)
	for _, s := range f.Sections {
		if total += s.Size; s.Type != elf.SHT_NOBITS && s.Size > maxSection || total > maxTotal {
			return m, nil
		}
	}
	m.readFrames(f)
	if has(f, ".debug_info") || has(f, ".zdebug_info") {
		m.readDWARF(f)
	}
	return m, nil
}

func has(f *elf.File, name string) bool {
	s := f.Section(name)
	return s != nil && s.Type != elf.SHT_NOBITS
}

// HasLines reports whether the file has debugging information.
func (m *Module) HasLines() bool { return m.data != nil }
