package export

import (
	"path"
	"strings"
	"sync"

	"vplay/checkpoint"
	"vplay/dwarf"
	"vplay/loader"
	"vplay/loader/image"
)

// What is executed: modules and their functions, and places in them. They are the same for all intervals, whatever
// address a module has there.

// place is where an instruction stands: the number of its module, and above that 48 bits of the file's virtual address. In
// module 0, which stands for code that no file has, it is the address itself.
type place uint64

const addressBits = 48

func placeOf(module int32, addr uint64) place {
	return place(module)<<addressBits | place(addr)&(1<<addressBits-1)
}

func (p place) module() int32 { return int32(p >> addressBits) }
func (p place) addr() uint64  { return uint64(p) & (1<<addressBits - 1) }

// Bounds for recordings that are made to do harm.
const (
	maxModules   = 1 << 12
	maxFunctions = 1 << 22
)

// module is a file that code is of.
type module struct {
	path    string
	buildID string
	start   uint64        // addresses that it had when it was first met
	end     uint64        //
	bias    uint64        // that must be added to file virtual addresses for those
	file    *dwarf.Module // nil: nothing is known of it
}

// name is the last part of the path.
func (m *module) name() string { return path.Base(m.path) }

// function is one of a module's.
type function struct {
	name   string
	entry  place
	file   string // of its first line; "" when it is not known
	line   int
	module int32
}

// Functions that every recording has.
const (
	fnUnknown int32 = iota // code that is in no module and has no name
	fnSignal               // between a function and the handler of a signal that interrupted it
	fnFixed                // how many
)

// code is all that is known of modules and functions. It is safe for concurrent use.
type code struct {
	mu        sync.Mutex
	modules   []module
	functions []function
	byModule  map[moduleKey]int32
	byEntry   map[place]int32
	unnamed   map[string]int32 // functions that stand for code without names
}

type moduleKey struct {
	path, id string
	bias     uint64 // of a module without a build id
}

func newCode() *code {
	return &code{
		modules:   []module{{path: "[no module]"}},
		functions: []function{fnUnknown: {name: "[unknown]"}, fnSignal: {name: loader.SignalFrame}},
		byModule:  map[moduleKey]int32{}, byEntry: map[place]int32{}, unnamed: map[string]int32{},
	}
}

// module returns the number of a module.
func (c *code) module(m *image.Module, d *dwarf.Module) int32 {
	key := moduleKey{path: m.Path, id: m.BuildID}
	if m.BuildID == "" {
		key.bias = m.Bias
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.byModule[key]
	if !ok {
		if len(c.modules) >= maxModules {
			return 0
		}
		n = int32(len(c.modules))
		c.modules = append(c.modules, module{path: m.Path, buildID: m.BuildID, start: m.Base, end: m.End, bias: m.Bias})
		c.byModule[key] = n
	}
	if c.modules[n].file == nil || d != nil {
		c.modules[n].file = d // what was made of more of the file is as good or better
	}
	return n
}

// add adds a function; c.mu is held.
func (c *code) add(f function) int32 {
	if len(c.functions) >= maxFunctions {
		return fnUnknown
	}
	c.functions = append(c.functions, f)
	return int32(len(c.functions) - 1)
}

// nameless returns the function that stands for code of which only this is known.
func (c *code) nameless(what string, m int32) int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.unnamed[what]
	if !ok {
		n = c.add(function{name: what, module: m})
		c.unnamed[what] = n
	}
	return n
}

// function returns the function at an address of a module's file.
func (c *code) function(m int32, d *dwarf.Module, pc uint64) int32 {
	name, entry, ok := "", uint64(0), false
	if d != nil {
		name, entry, ok = d.Function(pc)
	}
	if !ok || name == "" {
		return c.nameless("["+c.modules[m].name()+"]", m)
	}
	// What a compiler has moved out of the way is part of the function that it was moved out of.
	if whole, _, isPart := strings.Cut(name, ".cold"); isPart {
		if at, ok := d.Lookup(whole); ok {
			name, entry = whole, at
		}
	}
	at := placeOf(m, entry)
	c.mu.Lock()
	n, ok := c.byEntry[at]
	c.mu.Unlock()
	if ok {
		return n
	}
	f := function{name: name, entry: at, module: m}
	f.file, f.line, _ = d.Line(entry)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok = c.byEntry[at]; !ok {
		n = c.add(f)
		c.byEntry[at] = n
	}
	return n
}

// names resolves addresses of one memory map of a process.
type names struct {
	code    *code
	res     *loader.Resolver
	modules map[*image.Module]int32
}

// at returns the place and the function of an address.
func (n *names) at(addr uint64) (place, int32) {
	mod := n.res.Module(addr)
	if mod == nil {
		return placeOf(0, addr), n.outside(addr)
	}
	d := n.res.File(mod)
	m, ok := n.modules[mod]
	if !ok {
		m = n.code.module(mod, d)
		n.modules[mod] = m
	}
	if m == 0 {
		return placeOf(0, addr), fnUnknown
	}
	pc := addr - mod.Bias
	return placeOf(m, pc), n.code.function(m, d, pc)
}

// outside returns what stands for code outside of modules: the name of its mapping.
func (n *names) outside(addr uint64) int32 {
	what := n.res.At(addr).Module
	if what == "" {
		return fnUnknown
	}
	return n.code.nameless("["+strings.Trim(what, "[]")+"]", 0)
}

// entries returns the addresses of functions by their names, as allocators has them.
func (n *names) entries() map[uint64]allocator {
	out := map[uint64]allocator{}
	for _, mod := range n.res.Modules() {
		d := n.res.File(mod)
		if d == nil {
			continue
		}
		for name, kind := range allocators {
			for _, a := range d.Functions(name) {
				out[a+mod.Bias] = kind
			}
			if a, ok := d.Lookup(name); ok {
				out[a+mod.Bias] = kind
			}
		}
	}
	return out
}

// changesCode reports whether an event may have changed what code is where.
func changesCode(e *checkpoint.Event) bool {
	for i := range e.Maps {
		switch op := &e.Maps[i]; op.Kind {
		case checkpoint.MapOpMap:
			if op.Map.Prot&checkpoint.ProtExec != 0 || op.Map.Object != 0 {
				return true
			}
		case checkpoint.MapOpUnmap, checkpoint.MapOpProtect, checkpoint.MapOpMove:
			return true
		case checkpoint.MapOpDrop:
		}
	}
	return false
}
