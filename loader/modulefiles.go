package loader

import (
	"errors"
	"sync"

	"vplay/checkpoint"
	"vplay/dwarf"
	"vplay/loader/image"
)

// ModuleFiles has the files of a program's modules, each rebuilt and opened once for
// all who ask: debuggers that read the files, and those who want names, lines and types
// of them. A program is what runs from one execve to the next. It is safe for concurrent
// use.
//
// What is kept is what a file will be at any moment. A file is made anew each time as
// long as the dynamic linker has chosen no implementation for its IFUNCs, and when
// the budget had no room for all of it.
type ModuleFiles struct {
	// OnOpen, when set, is called for each file that is opened. It is set before the first
	// question.
	OnOpen func(*image.Module)
	// Keep has what was opened kept even if IFUNCs were not bound then, for who asks
	// image.Module.Implementations for those: programs that start open files that often. It is set before the first question.
	Keep bool

	symbols *image.Symbols

	mu    sync.Mutex
	files map[moduleKey]*moduleFile
}

// moduleKey is what tells one module from another.
type moduleKey struct {
	path, id  string
	base, end uint64
	object    uint32
}

// moduleFile is what is kept of one module.
type moduleFile struct {
	mu     sync.Mutex // held while the file is built or opened
	image  []byte     // nil: not built
	opened *dwarf.Module
}

// NewModuleFiles returns the files of a program, which are rebuilt with those that
// symbols finds.
func NewModuleFiles(symbols *image.Symbols) *ModuleFiles {
	return &ModuleFiles{symbols: symbols, files: map[moduleKey]*moduleFile{}}
}

// Symbols returns the finder of symbol files.
func (f *ModuleFiles) Symbols() *image.Symbols { return f.symbols }

// of returns what is kept of a module.
func (f *ModuleFiles) of(mod *image.Module) *moduleFile {
	key := moduleKey{mod.Path, mod.BuildID, mod.Base, mod.End, mod.Object}
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.files[key]
	if x == nil {
		x = &moduleFile{}
		f.files[key] = x
	}
	return x
}

// Image returns the ELF file of a module, rebuilt from memory m. The caller must not
// change it. Errors: as BuildELF.
func (f *ModuleFiles) Image(mod *image.Module, m image.Memory) ([]byte, error) {
	x := f.of(mod)
	x.mu.Lock()
	defer x.mu.Unlock()
	b, _, err := x.build(mod, m, f.symbols)
	return b, err
}

// build returns the file; isFinal is false where it may be another at a later moment.
// The caller holds x.mu.
func (x *moduleFile) build(mod *image.Module, m image.Memory, symbols *image.Symbols) (b []byte, isFinal bool, err error) {
	if x.image != nil {
		return x.image, true, nil
	}
	b, isFinal, err = image.Rebuild(mod, m, symbols)
	if err == nil && isFinal {
		x.image = b
	}
	return b, isFinal, err
}

// Open returns what the file of a module says, rebuilt from memory m. Errors: as
// BuildELF and dwarf.Open.
func (f *ModuleFiles) Open(mod *image.Module, m image.Memory) (*dwarf.Module, error) {
	x := f.of(mod)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.opened != nil && x.opened.Limited() == nil {
		return x.opened, nil
	}
	b, isFinal, err := x.named(mod, m, f.symbols)
	if err != nil {
		return nil, err
	}
	if f.OnOpen != nil {
		f.OnOpen(mod)
	}
	d, err := dwarf.Open(b, f.symbols.Budget())
	if err == nil && (isFinal || f.Keep) {
		x.opened = d
	}
	return d, err
}

// named returns the file as build does, with names and lines of this machine's debug
// file where it has one. gdb reads that file by itself.
func (x *moduleFile) named(mod *image.Module, m image.Memory, symbols *image.Symbols) (b []byte, isFinal bool, err error) {
	if name, ok := symbols.SystemFile(mod); ok {
		if b, isFinal, err = image.RebuildWith(mod, m, symbols, name); err == nil {
			return b, isFinal, nil
		}
	}
	return x.build(mod, m, symbols)
}

// isLimit reports whether err is the budget's.
func isLimit(err error) bool {
	var limit *checkpoint.LimitError
	return errors.As(err, &limit)
}
