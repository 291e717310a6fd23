package dwarf

import (
	"cmp"
	"debug/dwarf"
	"math/bits"
	"slices"
	"strings"

	"github.com/go-delve/delve/pkg/dwarf/godwarf"
)

// goIndex is what the Go compiler says about types beside the types themselves.
type goIndex struct {
	runtime map[uint64]dwarf.Offset       // by the place of the type's description, from runtime.types on
	consts  map[dwarf.Offset][]goConstant // by their type, sorted by value
	names   map[string]dwarf.Offset       // of the types that the runtime's structures have
}

// goConstant is a constant of a named type.
type goConstant struct {
	name  string
	value int64
}

// runtimeTypes are the types of the runtime that are looked up by name.
var runtimeTypes = []string{"internal/abi.Type", "runtime._type", "runtime.moduledata"}

// labelMapType is what the labels of a goroutine are. The program may have no description
// of it.
const labelMapType = "runtime/pprof.labelMap"

// indexed reads the index of all Go units, once.
func (p *goProgram) indexed() *goIndex {
	if p.index != nil {
		return p.index
	}
	x := &goIndex{runtime: map[uint64]dwarf.Offset{}, consts: map[dwarf.Offset][]goConstant{}, names: map[string]dwarf.Offset{}}
	p.index = x
	r := p.m.data.Reader()
	last := dwarf.Offset(0)
	for range maxEntries {
		e, err := r.Next()
		if err != nil || e == nil || e.Tag != 0 && e.Offset <= last {
			break // a damaged file leads backwards
		}
		if e.Tag == 0 {
			continue
		}
		last = e.Offset
		if e.Tag == dwarf.TagCompileUnit {
			lang, _ := e.Val(dwarf.AttrLanguage).(int64)
			if lang != langGo {
				r.SkipChildren()
			}
			continue
		}
		x.add(p.m, e)
		r.SkipChildren()
	}
	for t := range x.consts {
		slices.SortFunc(x.consts[t], func(a, b goConstant) int { return cmp.Compare(a.value, b.value) })
	}
	return x
}

// add enters a type or a constant.
func (x *goIndex) add(m *Module, e *dwarf.Entry) {
	if m.meter.take(indexedBytes) != nil {
		return
	}
	name, _ := e.Val(dwarf.AttrName).(string)
	if at, ok := e.Val(godwarf.AttrGoRuntimeType).(uint64); ok {
		if _, has := x.runtime[at]; !has {
			x.runtime[at] = e.Offset
		}
		if slices.Contains(runtimeTypes, name) {
			x.names[name] = e.Offset
		}
	}
	if name == labelMapType && e.Tag != dwarf.TagConstant {
		x.names[name] = e.Offset
	}
	if e.Tag != dwarf.TagConstant {
		return
	}
	t, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
	n, isInt := e.Val(dwarf.AttrConstValue).(int64)
	if ok && isInt && name != "" {
		x.consts[t] = append(x.consts[t], goConstant{name, n})
	}
}

// describe names a value of a type that has constants: the constant, or those
// of one bit each that make it up; "" when there is none. The types of Go itself
// are left out: every 1 would be some constant.
func (p *goProgram) describe(t godwarf.Type, n int64) string {
	name := t.Common().Name
	if !strings.Contains(name, ".") {
		return ""
	}
	list := p.indexed().consts[t.Common().Offset]
	prefix := packageOf(name) + "."
	for _, c := range list {
		if c.value == n {
			return strings.TrimPrefix(c.name, prefix)
		}
	}
	var parts []string
	for _, c := range list {
		if bits.OnesCount64(uint64(c.value)) == 1 && n&c.value != 0 {
			parts = append(parts, strings.TrimPrefix(c.name, prefix))
			n &^= c.value
		}
	}
	if n != 0 {
		return ""
	}
	return strings.Join(parts, "|")
}

// packageOf returns the package of a name, with its path.
func packageOf(name string) string {
	dir := max(strings.LastIndexByte(name, '/'), 0)
	pkg, _, _ := strings.Cut(name[dir:], ".")
	return name[:dir] + pkg
}

// typesStart returns the file's address of runtime.types, where the program's own
// descriptions of its types begin.
func (p *goProgram) typesStart() (uint64, bool) {
	for i := range p.m.symbols {
		if s := &p.m.symbols[i]; s.name == "runtime.types" {
			return s.addr, true
		}
	}
	return 0, false
}
