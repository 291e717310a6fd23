package dwarf

import (
	"debug/dwarf"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/go-delve/delve/pkg/dwarf/godwarf"
)

// Types of Go programs are read by delve's package godwarf, which knows what the
// Go compiler adds to DWARF: kinds, keys and elements of maps, type parameters.
// It reads a type with all it refers to at once and calls itself for each. The
// stack of a goroutine that overflows ends the process and cannot be recovered.
// So a walk without recursion looks at a type first, and refuses one that would go
// too deep, or in circles.

// Bounds on the types that one variable brings with it.
const (
	maxGoDepth   = 1 << 15 // types that refer to each other in a row
	maxGoTypes   = 1 << 17 // in all; ReadType takes 128 MB of stack for as many in a row
	maxGoEntries = 1 << 21 // entries read for them
	maxGoParts   = 256     // typedefs, arrays and first members in a row
)

// What a type, and an entry below it, take in memory.
const (
	goTypeBytes  = 600
	goEntryBytes = 200
)

// errGoType says that a type is refused.
var errGoType = errors.New("the type refers to too many others, or to itself")

// goProgram is what is known of the Go code of a module. The module's lock guards
// it.
type goProgram struct {
	m        *Module
	data     *dwarf.Data // the same file for the standard library's reader, which godwarf uses
	err      error       // why there is none
	types    map[dwarf.Offset]godwarf.Type
	checked  map[dwarf.Offset]bool
	trees    map[dwarf.Offset]*godwarf.Tree
	entries  int // of the trees
	closures map[dwarf.Offset]*godwarf.StructType
	index    *goIndex
}

// goProgram returns what is known of the module's Go code.
func (m *Module) goProgram() *goProgram {
	if m.golang == nil {
		m.golang = &goProgram{
			m: m, types: map[dwarf.Offset]godwarf.Type{}, checked: map[dwarf.Offset]bool{},
			trees: map[dwarf.Offset]*godwarf.Tree{}, closures: map[dwarf.Offset]*godwarf.StructType{},
		}
	}
	return m.golang
}

// open opens the file for godwarf. debug/dwarf reads the abbreviations of all units at
// once, and as many as a file says. So the module's own reader does it first: it has a
// bound for each, and charges all of them.
func (p *goProgram) open() error {
	if p.data != nil || p.err != nil {
		return p.err
	}
	p.err = p.openData()
	return p.err
}

func (p *goProgram) openData() error {
	m := p.m
	if m.data == nil {
		return errGoType
	}
	hs := m.unitHeaders()
	if err := m.meter.take(len(hs) * headerBytes); err != nil {
		return err
	}
	cost := map[uint64]int{}
	for i := range hs {
		t, err := m.data.table(&hs[i])
		if err == nil {
			err = t.readAll()
		}
		if err != nil {
			return err
		}
		cost[hs[i].abbrev] = t.bytes()
	}
	for _, n := range cost {
		if err := m.meter.take(n); err != nil {
			return err
		}
	}
	s := &m.sec
	d, err := dwarf.New(s.abbrev, nil, nil, s.info, nil, nil, s.ranges, s.str)
	if err != nil {
		return err
	}
	for name, b := range map[string][]byte{".debug_addr": s.addr, ".debug_line_str": s.lineStr, ".debug_str_offsets": s.strOffsets, ".debug_rnglists": s.rnglists} {
		if err := d.AddSection(name, b); err != nil {
			return err
		}
	}
	p.data = d
	return nil
}

// bytes is what a table takes in memory.
func (t *abbrevs) bytes() int {
	n := abbrevBytes
	for i := range t.list {
		n += abbrevBytes + abbrevFieldBytes*len(t.list[i].fields)
	}
	for _, a := range t.other {
		n += abbrevBytes + abbrevFieldBytes*len(a.fields)
	}
	return n
}

// next reads an entry with the standard library's reader and charges for it.
func (p *goProgram) next(r *dwarf.Reader) (*dwarf.Entry, error) {
	e, err := r.Next()
	if err != nil || e == nil {
		return nil, errGoType
	}
	work := entryWork + fieldWork*len(e.Field)
	for i := range e.Field {
		if s, ok := e.Field[i].Val.(string); ok {
			work += len(s)
		}
	}
	return e, p.m.meter.spend(work)
}

// langGo is DW_LANG_Go (DWARF 5, table 7.17).
const langGo = 0x16

// isGo reports whether the entry at off was written by the Go compiler.
func (m *Module) isGo(off dwarf.Offset) bool {
	lang, ok := m.language(m.headerOf(off))
	return ok && lang == langGo
}

// typeAt reads the type entry at off.
func (p *goProgram) typeAt(off dwarf.Offset) (godwarf.Type, error) {
	if t, ok := p.types[off]; ok {
		return t, nil
	}
	if err := p.open(); err != nil {
		return nil, fmt.Errorf("%w: %w", errGoType, err)
	}
	c := typeCheck{p: p, known: p.checked, seen: map[dwarf.Offset]bool{}, part: map[dwarf.Offset]dwarf.Offset{}}
	if err := c.check(off); err != nil {
		return nil, err
	}
	if err := p.m.meter.take(goTypeBytes*len(c.seen) + goEntryBytes*c.entries); err != nil {
		return nil, err
	}
	t, err := readGoType(p.data, off, p.types)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGoType, err)
	}
	for seen := range c.seen {
		p.checked[seen] = true
	}
	return t, nil
}

// readGoType is godwarf.ReadType, which panics over some damaged files.
func readGoType(d *dwarf.Data, off dwarf.Offset, cache map[dwarf.Offset]godwarf.Type) (t godwarf.Type, err error) {
	defer func() {
		if p := recover(); p != nil {
			delete(cache, off)
			t, err = nil, fmt.Errorf("%v", p)
		}
	}()
	return godwarf.ReadType(d, 0, off, cache)
}

// typeCheck looks at the types that one refers to, in the order in which
// godwarf.ReadType reads them, with the same reader.
type typeCheck struct {
	p       *goProgram
	known   map[dwarf.Offset]bool // those that were read before
	seen    map[dwarf.Offset]bool
	part    map[dwarf.Offset]dwarf.Offset // what typedefs, qualifiers and arrays are of, and the first members of structs
	entries int
}

// check returns an error unless ReadType may be called for the type at off.
func (c *typeCheck) check(off dwarf.Offset) error {
	rows := [][]dwarf.Offset{{off}} // what is left to look at, on each level
	for len(rows) > 0 {
		last := &rows[len(rows)-1]
		if len(*last) == 0 {
			rows = rows[:len(rows)-1]
			continue
		}
		next := (*last)[0]
		*last = (*last)[1:]
		if c.known[next] || c.seen[next] {
			continue
		}
		c.seen[next] = true
		refs, err := c.references(next)
		if err != nil {
			return err
		}
		rows = append(rows, refs)
		if len(c.seen) > maxGoTypes || len(rows) > maxGoDepth {
			return errGoType
		}
	}
	for at := range c.part {
		if !c.ends(at) {
			return errGoType
		}
	}
	return nil
}

// ends reports whether the sizes of the types that one is made of can be added up.
func (c *typeCheck) ends(at dwarf.Offset) bool {
	for range maxGoParts {
		next, ok := c.part[at]
		if !ok {
			return true
		}
		at = next
	}
	return false
}

// references lists the types that the entry at off refers to.
func (c *typeCheck) references(off dwarf.Offset) (refs []dwarf.Offset, err error) {
	r := c.p.data.Reader()
	r.Seek(off)
	e, err := c.p.next(r)
	if err != nil {
		return nil, err
	}
	if e.Offset != off {
		return nil, errGoType
	}
	add := func(e *dwarf.Entry, a dwarf.Attr) (to dwarf.Offset, ok bool) {
		if to, ok = e.Val(a).(dwarf.Offset); ok {
			refs = append(refs, to)
		}
		return to, ok
	}
	add(e, godwarf.AttrGoKey)
	add(e, godwarf.AttrGoElem)
	to, ok := add(e, dwarf.AttrType)
	kind := kindOf[e.Tag].kind
	if ok && (kind == KindTypedef || kind == KindQualified || kind == KindArray) {
		c.part[off] = to
	}
	if !e.Children {
		return refs, nil
	}
	for depth := 1; depth > 0; {
		k, err := c.p.next(r)
		if err != nil {
			return nil, err
		}
		if c.entries++; c.entries > maxGoEntries {
			return nil, errGoType
		}
		switch {
		case k.Tag == 0:
			depth--
			continue
		case depth == 1:
			to, ok := add(k, dwarf.AttrType)
			if _, has := c.part[off]; ok && !has && kind == KindStruct {
				c.part[off] = to
			}
		}
		if k.Children {
			depth++
		}
	}
	return refs, nil
}

// Bounds on the entries of one function.
const (
	maxGoTree    = 1 << 16 // kept for later as well, at most twice as many
	maxGoRanges  = 1 << 20 // of all of them
	maxGoNesting = 1 << 10
	maxGoOrigins = 8
)

// tree reads the entries of a function, or of a call that was inlined. godwarf calls
// itself for blocks in blocks, and follows references to abstract functions for as
// long as there are any.
func (p *goProgram) tree(off dwarf.Offset) (t *godwarf.Tree, err error) {
	if t, ok := p.trees[off]; ok {
		return t, nil
	}
	if err := p.open(); err != nil {
		return nil, fmt.Errorf("%w: %w", errGoType, err)
	}
	n, err := p.checkTree(off)
	if err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			t, err = nil, fmt.Errorf("%w: %v", errGoType, p)
		}
	}()
	if t, err = godwarf.LoadTree(off, p.data, 0); err != nil {
		return nil, err
	}
	if p.entries += n; p.entries > 2*maxGoTree {
		clear(p.trees)
		p.entries = n
	}
	p.trees[off] = t
	return t, nil
}

// checkTree returns an error unless LoadTree may be called for the entry at off, and
// how many entries there are.
func (p *goProgram) checkTree(off dwarf.Offset) (n int, err error) {
	r := p.data.Reader()
	r.Seek(off)
	for depth, ranges := 0, 0; ; {
		e, err := p.next(r)
		if err != nil {
			return 0, err
		}
		if n++; n > maxGoTree || depth > maxGoNesting {
			return 0, errGoType
		}
		switch {
		case e.Tag == 0:
			depth--
		case !p.hasOrigin(e):
			return 0, errGoType
		case e.Children:
			depth++
		}
		if e.Val(dwarf.AttrRanges) != nil {
			list, _ := p.m.data.Ranges(e) // LoadTree returns the error
			if ranges += len(list); ranges > maxGoRanges {
				return 0, errGoType
			}
		}
		if depth <= 0 {
			return n, nil
		}
	}
}

// hasOrigin reports whether the references to what an entry is an instance of end.
func (p *goProgram) hasOrigin(e *dwarf.Entry) bool {
	for range maxGoOrigins {
		off, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			if off, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset); !ok {
				return true
			}
		}
		r := p.data.Reader()
		r.Seek(off)
		var err error
		if e, err = p.next(r); err != nil {
			return errors.Is(err, errGoType) // there is none; LoadTree ends there, too
		}
	}
	return false
}

// closure returns the type of a function's closure: the variables that the
// compiler says it captured, and where.
func (p *goProgram) closure(off dwarf.Offset) *godwarf.StructType {
	if t, ok := p.closures[off]; ok {
		return t
	}
	t := &godwarf.StructType{Kind: "struct"}
	p.closures[off] = t
	tree, err := p.tree(off)
	if err != nil {
		return t
	}
	for _, e := range tree.Children {
		at, ok := e.Val(godwarf.AttrGoClosureOffset).(int64)
		if !ok || e.Tag != dwarf.TagVariable {
			continue
		}
		name, _ := e.Val(dwarf.AttrName).(string)
		typ, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
		if !ok {
			continue
		}
		if ft, err := p.typeAt(typ); err == nil {
			t.Field = append(t.Field, &godwarf.StructField{Name: name, Type: ft, ByteOffset: at})
			t.ByteSize = at + max(ft.Common().ByteSize, 0)
		}
	}
	return t
}

// underlying returns the type behind names and qualifiers; nil when there is none.
func underlying(t godwarf.Type) godwarf.Type {
	for range maxGoParts {
		switch n := t.(type) {
		case *godwarf.TypedefType:
			t = n.Type
		case *godwarf.ParametricType:
			t = n.Type
		case *godwarf.QualType:
			t = n.Type
		default:
			return t
		}
	}
	return nil
}

// sizeOf returns a type's size in bytes, -1 when it is not known.
func sizeOf(t godwarf.Type) int64 {
	if t == nil {
		return -1
	}
	if n := t.Common().ByteSize; n > 0 {
		return n
	}
	return t.Size() // what it is made of was counted by typeCheck
}

// goTypeName is a type as Go writes it. Go's types have names in DWARF but for
// those that are made here.
func goTypeName(t godwarf.Type) string {
	name := ""
	for range maxChain {
		if t == nil {
			return name
		}
		if n := t.Common().Name; n != "" {
			return name + n
		}
		switch u := t.(type) {
		case *godwarf.PtrType:
			if _, ok := u.Type.(*godwarf.VoidType); ok {
				return name + "unsafe.Pointer"
			}
			name, t = name+"*", u.Type
		case *godwarf.ArrayType:
			name, t = name+"["+strconv.FormatInt(u.Count, 10)+"]", u.Type
		case *godwarf.VoidType:
			return name + "void"
		case *godwarf.FuncType:
			return name + "func"
		case *godwarf.StructType:
			return name + "struct {...}"
		default:
			return name + "?"
		}
	}
	return name
}

// pointerTo is the type of pointers to t.
func pointerTo(t godwarf.Type) *godwarf.PtrType {
	p := godwarf.FakePointerType(t, 8)
	p.Name, p.ReflectKind = "*"+goTypeName(t), reflect.Pointer
	return p
}

// arrayOf is the type of n elements t.
func arrayOf(n int64, t godwarf.Type) *godwarf.ArrayType {
	size := max(sizeOf(t), 0)
	return &godwarf.ArrayType{
		CommonType: godwarf.CommonType{Name: "[" + strconv.FormatInt(n, 10) + "]" + goTypeName(t), ReflectKind: reflect.Array, ByteSize: max(mulSize(n, size), 0)},
		Type:       t, StrideBitSize: size * 8, Count: n,
	}
}
