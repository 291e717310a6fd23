package loader

import (
	"fmt"
	"path"
	"slices"

	"vplay/checkpoint"
	"vplay/dwarf"
	"vplay/loader/image"
)

// Names for addresses. The files behind the names are in modulefiles.go, what they say is
// package dwarf's.

// Resolver names addresses of one moment of a process: module, function,
// source line; and walks its stack. It asks for the file of a module when one of its
// addresses is first asked for. It is not safe for concurrent use; several share the
// files of the modules.
type Resolver struct {
	maps    []checkpoint.Mapping
	mem     image.Memory
	files   *ModuleFiles
	mods    []*image.Module
	opened  map[*image.Module]*dwarf.Module // nil values: cannot be opened
	limited error                           // see Limited
}

// NewResolver returns a resolver of the addresses in maps.
func NewResolver(maps []checkpoint.Mapping, m image.Memory, files *ModuleFiles) *Resolver {
	return &Resolver{maps: maps, mem: m, files: files, mods: image.Modules(maps, m), opened: map[*image.Module]*dwarf.Module{}}
}

// Modules returns the modules that are mapped, sorted by address.
func (r *Resolver) Modules() []*image.Module { return r.mods }

// Module returns the module whose segments hold addr, or nil.
func (r *Resolver) Module(addr uint64) *image.Module {
	for _, mod := range r.mods {
		if addr >= mod.Base && addr < mod.End {
			return mod
		}
	}
	return nil
}

// Maps returns the memory map that the resolver is for.
func (r *Resolver) Maps() []checkpoint.Mapping { return r.maps }

// ThreadLocal returns the address of the byte at offset of the thread-local storage of a module that the dynamic linker
// has loaded, in the thread with this fs base.
func (r *Resolver) ThreadLocal(d *dwarf.Module, fsBase, offset uint64) (uint64, bool) {
	for _, mod := range r.mods {
		if r.File(mod) != d {
			continue
		}
		for _, l := range image.LinkMap(r.maps, r.mem) {
			if l.Dynamic >= mod.Base && l.Dynamic < mod.End {
				block, err := image.TLSBlock(r.maps, r.mem, fsBase, l.Addr)
				return block + offset, err == nil
			}
		}
	}
	return 0, false
}

// Symbol names the symbol that an address is in, as name or name+offset; "" where none is known.
func (r *Resolver) Symbol(addr uint64) string {
	mod := r.Module(addr)
	if mod == nil || r.File(mod) == nil {
		return ""
	}
	name, off, ok := r.File(mod).Within(addr - mod.Bias)
	if !ok || off == 0 {
		return name
	}
	return fmt.Sprintf("%s+%d", name, off)
}

// Lookup returns the address of a symbol, and the first module that has it; nil where none does.
func (r *Resolver) Lookup(name string) (addr uint64, mod *image.Module) {
	for _, mod := range r.mods {
		if d := r.File(mod); d != nil {
			if a, ok := d.Lookup(name); ok {
				return a + mod.Bias, mod
			}
		}
	}
	return 0, nil
}

// File returns what is known of the file of one of Modules, nil when nothing is.
func (r *Resolver) File(mod *image.Module) *dwarf.Module {
	d, ok := r.opened[mod]
	if !ok {
		var err error
		d, err = r.files.Open(mod, r.mem)
		if isLimit(err) {
			r.limited = err
		}
		r.opened[mod] = d
	}
	return d
}

// Limited returns the error of the budget that left out what would have been found,
// nil when nothing was.
func (r *Resolver) Limited() error {
	for _, d := range r.opened {
		if d != nil && r.limited == nil {
			r.limited = d.Limited()
		}
	}
	return r.limited
}

// Open returns what is known of the file of the module at addr, nil when nothing is.
func (r *Resolver) Open(addr uint64) *dwarf.Module {
	if mod := r.Module(addr); mod != nil {
		return r.File(mod)
	}
	return nil
}

// Find implements dwarf.Modules.
func (r *Resolver) Find(addr uint64) (*dwarf.Module, uint64, bool) {
	mod := r.Module(addr)
	if mod == nil {
		for i := range r.maps {
			if g := &r.maps[i]; addr >= g.Start && addr < g.End {
				return nil, 0, g.Prot&checkpoint.ProtExec != 0
			}
		}
		return nil, 0, false
	}
	return r.File(mod), mod.Bias, true
}

// Location is what is known of an address. Empty fields are not known.
type Location struct {
	Addr     uint64 `json:"addr"`
	Module   string `json:"module,omitempty"` // path as the memory map has it
	Function string `json:"function,omitempty"`
	Offset   uint64 `json:"offset"`            // bytes from the function's start, else from the module's
	Inlined  bool   `json:"inlined,omitempty"` // into the location that follows; Offset says nothing
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
}

// SignalFrame is the function of a signal trampoline's location: what gdb calls it.
const SignalFrame = "<signal handler called>"

// String writes "function+offset in module", as far as known.
func (l Location) String() string {
	mod := path.Base(l.Module)
	switch {
	case l.Function == SignalFrame:
		return SignalFrame
	case l.Inlined:
		return fmt.Sprintf("%s, inlined, in %s", l.Function, mod)
	case l.Function != "" && l.Offset == 0:
		return fmt.Sprintf("%s in %s", l.Function, mod)
	case l.Function != "":
		return fmt.Sprintf("%s+%#x in %s", l.Function, l.Offset, mod)
	case l.Module != "":
		return fmt.Sprintf("%s+%#x", mod, l.Offset)
	}
	return "nothing is mapped there"
}

// Source writes "file:line", or "" when the line is not known.
func (l Location) Source() string {
	if l.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", l.File, l.Line)
}

// At returns what is known of an address: with code that was inlined there,
// the innermost function.
func (r *Resolver) At(addr uint64) Location { return r.Stack(addr)[0] }

// Stack returns the location of an address and of the calls that were inlined
// around it, innermost first; there is at least one.
func (r *Resolver) Stack(addr uint64) []Location {
	l := Location{Addr: addr}
	mod := r.Module(addr)
	if mod == nil {
		for i := range r.maps {
			if g := &r.maps[i]; addr >= g.Start && addr < g.End {
				l.Module, l.Offset = g.Name, addr-g.Start
				if g.Object != 0 {
					l.Offset += g.Offset // where it lies in the file, which is what other tools take
				}
				if l.Module == "" {
					l.Module = "anonymous memory"
				}
			}
		}
		return []Location{l}
	}
	l.Module, l.Offset = mod.Path, addr-mod.Base
	d := r.File(mod)
	if d == nil {
		return []Location{l}
	}
	pc := addr - mod.Bias
	if name, entry, ok := d.Function(pc); ok {
		l.Function, l.Offset = name, pc-entry
	}
	if file, line, ok := d.Line(pc); ok {
		l.File, l.Line = file, line
	}
	var out []Location
	for _, in := range d.Inlined(pc) {
		inner := l
		inner.Function, inner.Offset, inner.Inlined = in.Name, 0, true
		out = append(out, inner)
		l.File, l.Line = in.CallFile, in.CallLine
	}
	return append(out, l)
}

// Backtrace returns the stack of a thread, innermost frame first, at most
// limit frames.
func (r *Resolver) Backtrace(regs *checkpoint.Regs, limit int) []dwarf.Frame {
	return dwarf.Backtrace(DwarfRegs(regs), r.mem, r.Find, limit)
}

// dwarfNumbers are the DWARF numbers of the registers in encoding order.
var dwarfNumbers = [16]int{
	dwarf.RAX, dwarf.RCX, dwarf.RDX, dwarf.RBX, dwarf.RSP, dwarf.RBP, dwarf.RSI, dwarf.RDI,
	dwarf.R8, dwarf.R9, dwarf.R10, dwarf.R11, dwarf.R12, dwarf.R13, dwarf.R14, dwarf.R15,
}

// GPR returns the index in checkpoint.Regs.R of a register by its DWARF number.
func GPR(number int) (index int, ok bool) {
	index = slices.Index(dwarfNumbers[:], number)
	return index, index >= 0
}

// DwarfRegs returns registers by their DWARF numbers.
func DwarfRegs(regs *checkpoint.Regs) dwarf.Regs {
	var d dwarf.Regs
	for i, n := range dwarfNumbers {
		d.Set(n, regs.R[i])
	}
	d.Set(dwarf.RIP, regs.RIP)
	return d
}
