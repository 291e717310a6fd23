package export

import (
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"

	"vplay/checkpoint"
	"vplay/dwarf"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay/analysis/heap"
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
	parts     map[int32][]part                    // by module, sorted
	allocs    map[int32]map[uint64]*heap.Function // by module
	unnamed   map[string]int32                    // functions that stand for code without names
	first     map[string]int32                    // functions by name, see distinction
}

type moduleKey struct {
	path, id string
	bias     uint64 // of a module without a build id
}

func newCode() *code {
	return &code{
		modules:   []module{{path: "[no module]"}},
		functions: []function{fnUnknown: {name: "[unknown]"}, fnSignal: {name: loader.SignalFrame}},
		byModule:  map[moduleKey]int32{}, byEntry: map[place]int32{}, parts: map[int32][]part{}, allocs: map[int32]map[uint64]*heap.Function{}, unnamed: map[string]int32{},
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

// part is code of a function in one range.
type part struct {
	low, high uint64
	fn        int32
}

// find returns the part that an address of a module is in.
func (c *code) find(m int32, pc uint64) (fn int32, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.parts[m]
	i := sort.Search(len(list), func(i int) bool { return list[i].low > pc }) - 1
	if i < 0 || pc >= list[i].high {
		return 0, false
	}
	return list[i].fn, true
}

// function returns the function at an address of a module's file.
func (c *code) function(m int32, d *dwarf.Module, pc uint64) int32 {
	if fn, ok := c.find(m, pc); ok {
		return fn
	}
	if d == nil {
		return c.nameless("["+c.modules[m].name()+"]", m)
	}
	name, low, high, entry, ok := d.Part(pc)
	if !ok {
		name, entry, ok = d.Function(pc)
		low, high = pc, pc+1
		if from, to, known := d.Extent(pc); known {
			low, high = from, to
		}
	}
	if !ok || name == "" {
		return c.nameless("["+c.modules[m].name()+"]", m)
	}
	// What a compiler has moved out of the way is part of the function that it was moved out of.
	if whole, _, isPart := strings.Cut(name, ".cold"); isPart {
		if at := d.Functions(whole); len(at) > 0 {
			name, entry = whole, at[0]
		}
	}
	f := function{name: name, entry: placeOf(m, entry), module: m}
	f.file, f.line, _ = d.Line(entry)
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.byEntry[f.entry]
	if !ok {
		n = c.add(f)
		c.byEntry[f.entry] = n
	}
	list := c.parts[m]
	i := sort.Search(len(list), func(i int) bool { return list[i].low > low })
	if i == 0 || list[i-1].low != low { // another interval may have been first
		c.parts[m] = slices.Insert(list, i, part{low, high, n})
	}
	return n
}

// names resolves addresses of one memory map of a process.
type names struct {
	code    *code
	budget  *checkpoint.Budget
	res     *loader.Resolver
	modules map[*image.Module]int32
}

// at returns the place and the function of an address.
func (n *names) at(addr uint64) (place, int32) {
	n.budget.Renew() // each answer may cost as much as one for a debugger's command
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

// entries returns the addresses of the functions of malloc's family. Those of a module are looked for once.
func (n *names) entries() map[uint64]*heap.Function {
	n.budget.Renew()
	out := map[uint64]*heap.Function{}
	for _, mod := range n.res.Modules() {
		if !mod.IsMapped(n.res.Maps()) {
			continue // what is made of a part of it would be kept
		}
		if d := n.res.File(mod); d != nil {
			for a, kind := range n.code.allocatorsOf(n.code.module(mod, d), d) {
				out[a+mod.Bias] = kind
			}
		}
	}
	return out
}

// allocatorsOf returns the functions of malloc's family that a module has, by their file virtual addresses.
func (c *code) allocatorsOf(m int32, d *dwarf.Module) map[uint64]*heap.Function {
	c.mu.Lock()
	known, ok := c.allocs[m]
	c.mu.Unlock()
	if ok {
		return known
	}
	known = map[uint64]*heap.Function{}
	for name, kind := range allocators {
		for _, a := range d.Functions(name) {
			known[a] = kind
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.allocs[m] = known
	return known
}

// changedBy reports whether an event may have changed what code is where.
func (n *names) changedBy(e *checkpoint.Event) bool {
	for i := range e.Maps {
		op := &e.Maps[i]
		switch op.Kind {
		case checkpoint.MapOpMap:
			if op.Map.Prot&checkpoint.ProtExec != 0 || n.isCode(op.Start, op.End) {
				return true
			}
		case checkpoint.MapOpProtect:
			if op.Prot&checkpoint.ProtExec != 0 || n.isCode(op.Start, op.End) {
				return true
			}
		case checkpoint.MapOpUnmap, checkpoint.MapOpMove:
			if n.isCode(op.Start, op.End) {
				return true
			}
		case checkpoint.MapOpDrop:
		}
	}
	return false
}

// isCode reports whether a module, or other code, is in a range.
func (n *names) isCode(start, end uint64) bool {
	for _, m := range n.res.Modules() {
		if start < m.End && m.Base < end {
			return true
		}
	}
	for _, g := range n.res.Maps() {
		if g.Prot&checkpoint.ProtExec != 0 && start < g.End && g.Start < end {
			return true
		}
	}
	return false
}

// distinction is what tells a function from another one of the same name that was met before, "" for the first.
func (c *code) distinction(fn int32) string {
	if c.first == nil {
		c.first = map[string]int32{}
		for i := range c.functions {
			if _, ok := c.first[c.functions[i].name]; !ok {
				c.first[c.functions[i].name] = int32(i)
			}
		}
	}
	f := &c.functions[fn]
	if c.first[f.name] == fn {
		return ""
	}
	return fmt.Sprintf(" [%s+%#x]", c.modules[f.module].name(), f.entry.addr())
}
