package dwarf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/go-delve/delve/pkg/dwarf/godwarf"
)

// goVar is a variable of a Go program, or part of one, and what was read of it.
// What is read, how far, and what a value is called is as in delve's pkg/proc (MIT
// licence, copyright 2014 Derek Parker), so that both print the same.
type goVar struct {
	name string
	addr uint64
	typ  godwarf.Type // as declared
	real godwarf.Type // behind its name
	kind reflect.Kind // numbers of all sizes are Int, Uint and the like
	mem  goMemory
	env  *Env

	text     string // of numbers, strings, functions, times
	length   int64  // of what has one; of structs, the number of fields
	capacity int64
	base     uint64 // where elements are, a channel, a function's code
	stride   int64
	elem     godwarf.Type
	children []*goVar // what is below it, as far as it was read
	onlyAddr bool     // its value was not read
	loaded   bool
	err      error
}

// goMemory is where the bytes of a variable are.
type goMemory interface {
	// read fills b, or says why it cannot.
	read(addr uint64, b []byte) error
	// behind is the memory that pointers in it point to.
	behind() goMemory
}

// processMemory is the program's.
type processMemory struct{ env *Env }

func (p processMemory) behind() goMemory { return p }

func (p processMemory) read(addr uint64, b []byte) error {
	n := p.env.Mem.ReadMemory(addr, b)
	if n >= len(b) {
		return nil
	}
	e := memoryError{addr: addr + uint64(max(n, 0))}
	if p.env.Why != nil {
		e.why = p.env.Why(e.addr)
	}
	return e
}

// valueMemory is a variable that lies in registers, or in several places.
type valueMemory struct{ v Value }

// valueBase is the address of the first byte of a valueMemory, delve's.
const valueBase = 0xbeef000000000000

func (m valueMemory) behind() goMemory { return processMemory{m.v.env} }

func (m valueMemory) read(addr uint64, b []byte) error {
	at := addr - valueBase
	if at > maxValue || len(b) > maxValue {
		return errLost
	}
	got, state := m.v.read(int64(at), int64(len(b)))
	for i, s := range state {
		if s != byteKnown {
			return m.v.byteError(s, int64(at)+int64(i))
		}
	}
	copy(b, got)
	return nil
}

// newGoVar makes a variable; strings, slices and channels are read so far that
// their length is known.
func newGoVar(env *Env, name string, addr uint64, t godwarf.Type, mem goMemory) *goVar {
	v := &goVar{name: name, addr: addr, typ: t, real: underlying(t), mem: mem, env: env}
	switch t := v.real.(type) {
	case *godwarf.PtrType:
		v.kind = reflect.Pointer
		if _, ok := t.Type.(*godwarf.VoidType); ok {
			v.kind = reflect.UnsafePointer
		}
	case *godwarf.ChanType:
		v.kind = reflect.Chan
		v.base = v.word()
	case *godwarf.MapType:
		v.kind = reflect.Map
	case *godwarf.StringType:
		v.kind = reflect.String
		v.fieldsOf(&t.StructType)
	case *godwarf.SliceType:
		v.kind = reflect.Slice
		v.fieldsOf(&t.StructType)
	case *godwarf.InterfaceType:
		v.kind = reflect.Interface
	case *godwarf.StructType:
		v.kind = reflect.Struct
	case *godwarf.ArrayType:
		v.kind, v.base, v.length, v.capacity, v.elem = reflect.Array, addr, t.Count, t.Count, t.Type
		if t.Count > 0 {
			v.stride = t.ByteSize / t.Count
		}
	case *godwarf.ComplexType:
		v.kind = reflect.Complex128
	case *godwarf.IntType, *godwarf.CharType, *godwarf.UcharType:
		v.kind = reflect.Int
	case *godwarf.UintType:
		v.kind = reflect.Uint
	case *godwarf.FloatType:
		v.kind = reflect.Float64
	case *godwarf.BoolType:
		v.kind = reflect.Bool
	case *godwarf.FuncType:
		v.kind = reflect.Func
	case *godwarf.VoidType, *godwarf.UnspecifiedType:
		v.kind = reflect.Invalid
	default:
		v.err = errors.New("unknown type")
	}
	return v
}

// fieldsOf reads a string's or a slice's fields.
func (v *goVar) fieldsOf(t *godwarf.StructType) {
	if v.kind == reflect.String {
		v.stride = 1
	}
	if v.addr == 0 {
		return
	}
	for _, f := range t.Field {
		switch f.Name {
		case "str", "array":
			v.base = v.uintAt(f.ByteOffset, 8)
			if p, ok := f.Type.(*godwarf.PtrType); ok {
				v.elem = p.Type
				v.stride = max(sizeOf(p.Type), 0)
			}
		case "len":
			v.length = int64(v.uintAt(f.ByteOffset, 8))
		case "cap":
			var b [8]byte
			switch err := v.mem.read(v.addr+uint64(f.ByteOffset), b[:]); {
			case errors.Is(err, errLost): // nothing else needs it
				v.capacity = -1
			case err != nil:
				v.err = err
			default:
				v.capacity = int64(binary.LittleEndian.Uint64(b[:]))
			}
		}
	}
	if v.length < 0 && v.err == nil {
		v.err = fmt.Errorf("invalid length: %d", v.length)
	}
	if v.elem == nil && v.err == nil {
		v.err = errGoType
	}
}

// uintAt reads a number of 1 to 8 bytes behind the variable's address; the
// variable's error says why it cannot.
func (v *goVar) uintAt(off, size int64) uint64 {
	var b [8]byte
	if v.err != nil || size < 0 || size > 8 {
		return 0
	}
	if err := v.mem.read(v.addr+uint64(off), b[:size]); err != nil {
		v.err = err
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

// word reads a pointer, 0 if there is none.
func (v *goVar) word() uint64 {
	if v.addr == 0 {
		return 0
	}
	return v.uintAt(0, 8)
}

// field returns a member of a struct.
func (v *goVar) field(f *godwarf.StructField) *goVar {
	out := newGoVar(v.env, f.Name, v.addr+uint64(f.ByteOffset), f.Type, v.mem)
	if v.err != nil {
		out.err = v.err
	}
	return out
}

// named returns the member of that name; nil when there is none.
func (v *goVar) named(name string) *goVar {
	t, ok := v.real.(*godwarf.StructType)
	if !ok || v.addr == 0 {
		return nil
	}
	for _, f := range t.Field {
		if f.Name == name {
			return v.field(f)
		}
	}
	return nil
}

// at returns an element of an array or a slice.
func (v *goVar) at(i int64) *goVar {
	mem := v.mem
	if v.kind != reflect.Array {
		mem = mem.behind()
	}
	return newGoVar(v.env, "", v.base+uint64(i*v.stride), v.elem, mem)
}

// deref returns what a pointer points to, and others themselves.
func (v *goVar) deref() *goVar {
	t, ok := v.real.(*godwarf.PtrType)
	if !ok || v.err != nil {
		return v
	}
	addr := v.word()
	out := newGoVar(v.env, "", addr, t.Type, v.mem.behind())
	if v.err != nil {
		out.err = v.err
	}
	return out
}

// goConfig says how far a variable is read. The two are delve's, for one value and
// for a list of them.
type goConfig struct {
	follow  bool // pointers
	depth   int  // of structs, maps and functions in others
	text    int  // bytes of a string
	values  int  // elements
	fields  int  // of a struct; -1: all
	buckets int  // of a map
}

var (
	goFull  = goConfig{follow: true, depth: 1, text: 64, values: 64, fields: -1, buckets: 6400}
	goShort = goConfig{text: 64, fields: 3}
)

// Bounds on what is read of one variable.
const (
	maxGoVars = 1 << 16 // parts
	maxGoNest = 256     // parts of parts
)

var errGoVars = errors.New("the value has too many parts")

// goLoad reads one variable.
type goLoad struct {
	goConfig
	parts int
	nest  int
}

// load reads a variable and what is below it.
func (v *goVar) load(c goConfig) { (&goLoad{goConfig: c}).load(v, 0) }

func (l *goLoad) load(v *goVar, level int) {
	if v.err != nil || v.loaded || v.addr == 0 && v.base == 0 {
		return
	}
	if l.parts++; l.parts > maxGoVars || l.nest > maxGoNest {
		v.err = errGoVars
		return
	}
	l.nest++
	v.loaded = true
	switch v.kind {
	case reflect.Pointer, reflect.UnsafePointer:
		l.pointer(v, level)
	case reflect.Chan:
		l.channel(v)
	case reflect.Map:
		l.goMap(v, level)
	case reflect.String:
		l.text(v)
	case reflect.Slice, reflect.Array:
		l.elements(v, level)
	case reflect.Struct:
		l.fieldsOf(v, level)
	case reflect.Interface:
		l.dynamic(v, level)
	case reflect.Func:
		l.function(v, level)
	default:
		v.number()
	}
	l.nest--
}

// pointer reads what a pointer points to. That counts as a level only where it
// could go on for ever.
func (l *goLoad) pointer(v *goVar, level int) {
	child := v.deref()
	if v.err != nil {
		return
	}
	v.children, v.length = []*goVar{child}, 1
	v.text = strconv.FormatUint(child.addr, 10)
	if !l.follow {
		child.onlyAddr = true
		return
	}
	next := level
	if child.kind == reflect.Interface {
		next++
	} else if _, ok := child.real.(*godwarf.PtrType); ok {
		if next++; level > l.depth {
			child.onlyAddr = true
			return
		}
	}
	l.load(child, next)
}

// channel reads the runtime's structure, its buffer as an array of elements.
func (l *goLoad) channel(v *goVar) {
	c, ok := v.real.(*godwarf.ChanType)
	if !ok || v.base == 0 {
		return
	}
	p, _ := underlying(c.Type).(*godwarf.PtrType)
	if p == nil {
		v.err = errGoType
		return
	}
	st, _ := underlying(p.Type).(*godwarf.StructType)
	if st == nil {
		v.err = errGoType
		return
	}
	s := newGoVar(v.env, "", v.base, st, v.mem.behind())
	if n := s.named("dataqsiz"); n != nil {
		size := int64(n.word())
		if s.err = n.err; size < 0 || size > math.MaxInt32 {
			s.err = fmt.Errorf("invalid length: %d", size)
		}
		made := *st
		made.Field = make([]*godwarf.StructField, len(st.Field))
		for i, f := range st.Field {
			if made.Field[i] = f; f.Name == "buf" {
				buf := *f
				buf.Type = pointerTo(arrayOf(size, c.ElemType))
				made.Field[i] = &buf
			}
		}
		s.real = &made
	}
	in := goLoad{goConfig: goFull, parts: l.parts, nest: l.nest}
	in.load(s, 0)
	l.parts = in.parts
	v.children, v.length, v.err = s.children, s.length, s.err
}

// text reads the beginning of a string.
func (l *goLoad) text(v *goVar) {
	b := make([]byte, min(v.length, int64(l.goConfig.text)))
	if err := v.mem.behind().read(v.base, b); err != nil && len(b) > 0 {
		v.err = fmt.Errorf("could not read string at %#x due to %w", v.base, err)
		return
	}
	v.text = string(b)
}

// maxBad is how many elements in a row of reads may fail.
const maxBad = 3

// elements reads those of an array or a slice.
func (l *goLoad) elements(v *goVar, level int) {
	switch {
	case v.length < 0:
		v.err = errors.New("Negative array length") //nolint:staticcheck // delve's words
		return
	case v.base == 0 && v.length > 0:
		v.err = errors.New("non-zero length array with nil base")
		return
	}
	n := min(v.length, int64(l.values))
	if mulSize(n, v.stride) < 0 || v.base+uint64(v.stride*n) < v.base {
		v.err = fmt.Errorf("bad array base address %#x", v.base)
		return
	}
	bad := 0
	for i := range n {
		e := v.at(i)
		l.load(e, level+1)
		v.children = append(v.children, e)
		if e.err != nil {
			if bad++; bad > maxBad {
				return
			}
		}
	}
}

// fieldsOf reads a struct's.
func (l *goLoad) fieldsOf(v *goVar, level int) {
	t, ok := v.real.(*godwarf.StructType)
	if !ok {
		v.err = errGoType
		return
	}
	v.length = int64(len(t.Field))
	if level <= l.depth {
		for i, f := range t.Field {
			if l.fields >= 0 && i >= l.fields {
				break
			}
			c := v.field(f)
			if t.StructName == "" && len(f.Name) > 0 && f.Name[0] == '&' && c.kind == reflect.Pointer {
				// A closure's variable that was captured by reference.
				c = c.deref()
				c.name = f.Name[1:]
			}
			v.children = append(v.children, c)
			l.load(c, level+1)
		}
	}
	if t.Name == "time.Time" {
		v.time()
	}
}

// number reads a number or a truth value.
func (v *goVar) number() {
	size := sizeOf(v.real)
	if size < 1 || size > 16 {
		v.err = errSize
		return
	}
	b := make([]byte, size)
	if v.err = v.mem.read(v.addr, b); v.err != nil {
		return
	}
	switch v.kind {
	case reflect.Int:
		v.text = v.described(int64(extend(littleEndian(b), uint64(size)*8, true)), true)
	case reflect.Uint:
		v.text = v.described(int64(littleEndian(b)), false)
	case reflect.Bool:
		v.text = strconv.FormatBool(b[0] != 0)
	case reflect.Float64:
		v.text = goFloat(b)
	case reflect.Complex128:
		v.text = "(" + goFloat(b[:size/2]) + " + " + goFloat(b[size/2:]) + "i)"
	default:
		v.err = fmt.Errorf("unknown or unsupported kind: %q", v.kind)
	}
}

func littleEndian(b []byte) uint64 {
	var w [8]byte
	copy(w[:], b)
	return binary.LittleEndian.Uint64(w[:])
}

// described writes an integer, with the constants that it is.
func (v *goVar) described(n int64, signed bool) string {
	text := strconv.FormatUint(uint64(n), 10)
	if signed {
		text = strconv.FormatInt(n, 10)
	}
	if name := v.env.Module.goProgram().describe(v.typ, n); name != "" {
		return name + " (" + text + ")"
	}
	return text
}

// goFloat writes a floating-point number of 4 or 8 bytes.
func goFloat(b []byte) string {
	f, bits := math.Float64frombits(littleEndian(b)), 64
	if len(b) == 4 {
		f, bits = float64(math.Float32frombits(uint32(littleEndian(b)))), 32
	}
	switch {
	case math.IsInf(f, 1):
		return "+Inf"
	case math.IsInf(f, -1):
		return "-Inf"
	case math.IsNaN(f):
		return "NaN"
	}
	return strconv.FormatFloat(f, 'f', -1, bits)
}

// Parts of a time.Time (package time, time.go).
const (
	timeMonotonic  = 1 << 63
	timeWallShift  = 30
	timeWallEpoch  = -2682288000  // 1885, from 1970 on, in seconds
	timeYearOne    = -62135596800 // year 1, from 1970 on
	maxTimeSeconds = 1 << 40
)

// time writes what time a time.Time is. It is always in UTC: the recorded program's
// time zones are not here, and the debugger's are no concern of it.
func (v *goVar) time() {
	wall, ext := v.named("wall"), v.named("ext")
	if wall == nil || ext == nil {
		return
	}
	w, x := wall.word(), int64(ext.word())
	if wall.err != nil || ext.err != nil {
		return
	}
	if w&timeMonotonic != 0 {
		sec := int64(w << 1 >> (timeWallShift + 1))
		v.text = fmt.Sprintf("%s, %+d", time.Unix(sec+timeWallEpoch, 0).UTC().Format(time.RFC3339), x)
		return
	}
	if x >= -maxTimeSeconds && x <= maxTimeSeconds {
		v.text = time.Unix(x+timeYearOne, 0).UTC().Format(time.RFC3339)
	}
}
