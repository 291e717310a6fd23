package debugcode

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vplay/dwarf"
)

// Declarations in C of the program's types. Those that debug code needs are written, and all that they
// refer to; nothing else, so that little can meet the names of the C library that debug code
// is linked with. What does meet one gets another name.
//
// Layouts are those of the program, whatever its compiler's rules were: structs are packed, and what
// the compiler left free is written as members.
//
// Names come from the recording, which is not trusted: what is no identifier of C is replaced.

// Bounds on what is written.
const (
	maxDefinitions = 20_000
	maxDepth       = 64
	maxText        = 16 << 20
	maxWork        = 4 << 20 // types that are looked at, each as often as that is done
)

// declarer writes declarations.
type declarer struct {
	taken   declared // names that are in use: the C library's, debug code's own
	names   map[dwarf.TypeID]string
	defined map[dwarf.TypeID]bool        // structs that are complete, or about to be
	same    map[string]*dwarf.Type       // by name and layout: the first such type, which stands for all
	is      map[dwarf.TypeID]*dwarf.Type // a type that another one stands for
	todo    []*dwarf.Type                // structs to be defined
	out     strings.Builder
	number  int
	work    int
}

func newDeclarer(taken declared) *declarer {
	return &declarer{taken: taken, names: map[dwarf.TypeID]string{}, defined: map[dwarf.TypeID]bool{}, same: map[string]*dwarf.Type{}, is: map[dwarf.TypeID]*dwarf.Type{}}
}

// keywords are the words that GCC and clang take for no name, in C17 with GNU's extensions.
var keywords = map[string]bool{}

func init() {
	for _, k := range strings.Fields(`auto break case char const continue default do double else enum extern float for goto if inline int long register
		restrict return short signed sizeof static struct switch typedef union unsigned void volatile while _Alignas _Alignof _Atomic _Bool _Complex
		_Generic _Imaginary _Noreturn _Static_assert _Thread_local asm typeof linux unix _Float16 _Float32 _Float64 _Float128 _Float32x _Float64x`) {
		keywords[k] = true
	}
}

// isIdentifier reports whether C takes a string for a name that is free.
func isIdentifier(s string) bool {
	if s == "" || len(s) > 255 || keywords[s] || strings.HasPrefix(s, "__") || strings.HasPrefix(s, "vplay") || isDigit(s[0]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c >= 0x80 || c == '$' || !isLetter(c) && !isDigit(c) {
			return false
		}
	}
	return true
}

// fresh returns a name that nobody has.
func (d *declarer) fresh(name string) string {
	d.number++
	if !isIdentifier(name) {
		name = "unnamed"
	}
	return fmt.Sprintf("vplay_t%d_%s", d.number, name)
}

// choose returns name where that is free, and takes it; else another one.
func (d *declarer) choose(name string, in map[string]bool) string {
	if !isIdentifier(name) || in[name] {
		return d.fresh(name)
	}
	in[name] = true
	return name
}

// hasRoom reports whether more may be written.
func (d *declarer) hasRoom() bool {
	return len(d.defined) < maxDefinitions && d.out.Len() < maxText && d.work < maxWork
}

// tooDeep counts a look at a type, and reports whether there were too many, or too many within each other: types of a
// damaged file may contain themselves.
func (d *declarer) tooDeep(depth int) bool {
	d.work++
	return depth > maxDepth || d.work > maxWork
}

// finish defines the structs that are referred to.
func (d *declarer) finish() {
	for len(d.todo) > 0 && d.hasRoom() {
		t := d.todo[0]
		d.todo = d.todo[1:]
		d.define(t, 0)
	}
}

// use has a type declared; whole: so that an object can have it.
func (d *declarer) use(t *dwarf.Type, whole bool, depth int) {
	if t == nil || d.tooDeep(depth) {
		return
	}
	switch t.Kind {
	case dwarf.KindPointer, dwarf.KindReference:
		d.use(t.Element(), false, depth+1)
	case dwarf.KindQualified:
		d.use(t.Element(), whole, depth+1)
	case dwarf.KindArray:
		d.use(t.Element(), true, depth+1)
	case dwarf.KindFunction:
		d.use(t.Element(), false, depth+1)
		list, _, _ := t.Parameters()
		for _, p := range list {
			d.use(p, false, depth+1)
		}
	case dwarf.KindTypedef:
		d.typedef(t, whole, depth)
	case dwarf.KindStruct, dwarf.KindUnion:
		if d.forward(t); whole {
			d.define(t, depth)
		}
	case dwarf.KindEnum:
		d.enum(t)
	default:
	}
}

// typedef writes one.
func (d *declarer) typedef(t *dwarf.Type, whole bool, depth int) {
	id := t.ID()
	e := t.Element()
	if _, has := d.names[id]; !has {
		key := "typedef " + t.Name() + " " + d.signature(e)
		if !d.stands(key, t) {
			d.use(e, false, depth+1)
			if d.names[id] != "" { // it refers to itself, and is written by now
				return
			}
			name := d.choose(t.Name(), d.taken.names)
			fmt.Fprintf(&d.out, "typedef %s;\n", d.declare(e, name, 0))
			d.names[id] = name
		}
	}
	if c := d.is[id]; c != nil {
		e = c.Element()
	}
	if whole {
		d.use(e, true, depth+1)
	}
}

// stands reports whether a type that was written stands for t, which key describes; else t stands for those to come.
func (d *declarer) stands(key string, t *dwarf.Type) bool {
	first := d.same[key]
	if first == nil || d.names[first.ID()] == "" {
		d.same[key] = t
		return false
	}
	d.names[t.ID()], d.is[t.ID()] = d.names[first.ID()], first
	return true
}

// signature tells a type from another one of its name, in another unit.
func (d *declarer) signature(t *dwarf.Type) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d\n", t.String(), t.Size())
	if t != nil {
		fmt.Fprintln(h, t.Kind)
	}
	for _, m := range t.Members() {
		if d.tooDeep(0) {
			break
		}
		fmt.Fprintf(h, "%s %q %d %d\n", m.Type.String(), m.Name, m.Offset, m.Bits)
	}
	for _, e := range t.Enumerators() {
		fmt.Fprintf(h, "%q=%d\n", e.Name, e.Value)
	}
	return string(h.Sum(nil))
}

// word is struct or union.
func word(t *dwarf.Type) string {
	if t.Kind == dwarf.KindUnion {
		return "union"
	}
	return "struct"
}

// forward says that there is a struct.
func (d *declarer) forward(t *dwarf.Type) {
	id := t.ID()
	if d.names[id] != "" {
		return
	}
	if t.Name() != "" && d.stands("tag "+t.Name()+" "+d.signature(t), t) {
		return
	}
	name := d.choose(t.Name(), d.taken.tags)
	d.names[id] = name
	fmt.Fprintf(&d.out, "%s %s;\n", word(t), name)
	d.todo = append(d.todo, t)
}

// define writes the members of a struct.
func (d *declarer) define(t *dwarf.Type, depth int) {
	if first := d.is[t.ID()]; first != nil {
		t = first
	}
	id := t.ID()
	size := t.Size()
	if d.defined[id] || t.IsDeclaration() || size < 0 || !d.hasRoom() || depth > maxDepth {
		return
	}
	d.defined[id] = true
	l := layout{d: d, depth: depth, isUnion: t.Kind == dwarf.KindUnion, size: size * 8, seen: map[string]bool{}}
	for _, m := range t.Members() {
		l.member(&m)
	}
	l.pad(l.size)
	align := t.Alignment()
	if size == 0 || size%align != 0 {
		align = 1
	}
	fmt.Fprintf(&d.out, "%s %s {%s } __attribute__((packed, aligned(%d)));\n", word(t), d.names[id], l.b.String(), align)
	fmt.Fprintf(&d.out, "_Static_assert(sizeof(%s %s) == %d, \"\");\n", word(t), d.names[id], size)
}

// layout writes the members of one struct or union.
type layout struct {
	d       *declarer
	depth   int
	isUnion bool
	size    int64 // bits
	pos     int64 // bits that are written
	seen    map[string]bool
	b       strings.Builder
}

// pad fills up to a bit.
func (l *layout) pad(to int64) {
	if l.isUnion {
		if to == l.size && to > 0 {
			fmt.Fprintf(&l.b, " char %s[%d];", l.d.fresh("pad"), to/8)
		}
		return
	}
	if part := l.pos % 8; part != 0 && to > l.pos {
		n := min(8-part, to-l.pos)
		fmt.Fprintf(&l.b, " unsigned char : %d;", n)
		l.pos += n
	}
	if n := (to - l.pos) / 8; n > 0 {
		fmt.Fprintf(&l.b, " char %s[%d];", l.d.fresh("pad"), n) // a struct without a name shares names with what it is in
		l.pos += n * 8
	}
	if n := to - l.pos; n > 0 {
		fmt.Fprintf(&l.b, " unsigned char : %d;", n)
		l.pos = to
	}
}

// member writes a member. What overlaps another one, as parts of C++ objects may, is left out.
func (l *layout) member(m *dwarf.Member) {
	size := m.Bits
	if size == 0 {
		l.d.use(m.Type, true, l.depth+1)
		size = max(m.Type.Size(), 0) * 8 // a flexible array has none
	}
	if l.b.Len() > maxText || m.Offset < 0 || !l.isUnion && m.Offset < l.pos || m.Offset+size > l.size || l.isUnion && m.Offset != 0 || !l.d.isWhole(m.Type, 0) {
		return
	}
	name := m.Name
	isPart := name == "" && m.Type != nil && (m.Type.Kind == dwarf.KindStruct || m.Type.Kind == dwarf.KindUnion)
	if !isPart && !isIdentifier(name) || l.seen[name] {
		name = fmt.Sprintf("vplay_member%d", len(l.seen))
	}
	if !isPart {
		l.seen[name] = true
	}
	l.pad(m.Offset)
	l.b.WriteString(" " + l.d.declare(m.Type, name, 0))
	if m.Bits != 0 {
		l.b.WriteString(" : " + strconv.FormatInt(m.Bits, 10))
	}
	l.b.WriteString(";")
	l.pos = m.Offset + size
}

// isWhole reports whether an object can have a type as it was written.
func (d *declarer) isWhole(t *dwarf.Type, depth int) bool {
	switch {
	case t == nil || depth > maxDepth:
		return false
	case t.Kind == dwarf.KindArray || t.Kind == dwarf.KindTypedef || t.Kind == dwarf.KindQualified:
		return d.isWhole(t.Element(), depth+1)
	case t.Kind == dwarf.KindStruct || t.Kind == dwarf.KindUnion:
		if first := d.is[t.ID()]; first != nil {
			t = first
		}
		return d.defined[t.ID()]
	}
	return t.Kind != dwarf.KindFunction
}

// enum writes an enumeration.
func (d *declarer) enum(t *dwarf.Type) {
	id := t.ID()
	if d.names[id] != "" {
		return
	}
	if d.stands("enum "+t.Name()+" "+d.signature(t), t) {
		return
	}
	name := d.choose(t.Name(), d.taken.tags)
	d.names[id] = name
	values := t.Enumerators()
	if len(values) == 0 {
		values = []dwarf.Enumerator{{}}
	}
	fmt.Fprintf(&d.out, "enum %s {", name)
	for _, v := range values {
		fmt.Fprintf(&d.out, " %s = %s,", d.choose(v.Name, d.taken.names), constant(v.Value))
	}
	if size := t.Size(); size == 1 || size == 2 {
		d.out.WriteString(" } __attribute__((packed));\n")
	} else {
		d.out.WriteString(" };\n")
	}
}

// constant writes an integer.
func constant(n int64) string {
	if n == -1<<63 {
		return "(-9223372036854775807 - 1)"
	}
	return strconv.FormatInt(n, 10)
}

// declare writes the declaration of what has a type that was used; inner stands for its name.
func (d *declarer) declare(t *dwarf.Type, inner string, depth int) string {
	if t == nil || t.Kind == dwarf.KindUnknown || d.tooDeep(depth) {
		return join("void", inner)
	}
	switch t.Kind {
	case dwarf.KindBase:
		return join(baseName(t), inner)
	case dwarf.KindPointer, dwarf.KindReference:
		e := t.Element()
		if inner = "*" + inner; e != nil && (e.Kind == dwarf.KindArray || e.Kind == dwarf.KindFunction) {
			inner = "(" + inner + ")"
		}
		return d.declare(e, inner, depth+1)
	case dwarf.KindQualified:
		q, e := t.Word(), t.Element()
		isArray := e != nil && e.Kind == dwarf.KindArray // its elements say the same
		if isArray || q != "const" && q != "volatile" {
			return d.declare(e, inner, depth+1)
		}
		if e != nil && e.Kind == dwarf.KindPointer {
			return d.declare(e, q+" "+inner, depth+1)
		}
		return q + " " + d.declare(e, inner, depth+1)
	case dwarf.KindArray:
		return d.declare(t.Element(), fmt.Sprintf("%s[%d]", inner, max(t.Count(), 0)), depth+1)
	case dwarf.KindFunction:
		return d.declare(t.Element(), inner+"("+d.parameters(t, depth)+")", depth+1)
	case dwarf.KindMember:
		return join("long", inner)
	case dwarf.KindTypedef:
		if name := d.names[t.ID()]; name != "" {
			return join(name, inner)
		}
		return d.declare(t.Element(), inner, depth+1)
	case dwarf.KindEnum:
		return join("enum "+d.names[t.ID()], inner)
	default:
		name := d.names[t.ID()]
		if name == "" {
			return join("void", inner)
		}
		return join(word(t)+" "+name, inner)
	}
}

// parameters writes a function's: none where it was declared without.
func (d *declarer) parameters(t *dwarf.Type, depth int) string {
	list, variadic, known := t.Parameters()
	if !known {
		return ""
	}
	var out []string
	for _, p := range list {
		out = append(out, d.declare(p, "", depth+1))
	}
	switch {
	case len(out) == 0:
		return "void"
	case variadic:
		out = append(out, "...")
	}
	return strings.Join(out, ", ")
}

// baseWords are those that a base type's name may be made of.
var baseWords = strings.Fields("char short int long signed unsigned float double _Bool __int128")

// baseName is a base type in C: by its own name where that is C's, else by what it holds.
func baseName(t *dwarf.Type) string {
	words := strings.Fields(t.Name())
	if len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(baseWords, w) }) {
		return t.Name()
	}
	size := t.Size()
	sign := "unsigned "
	if t.IsSigned() {
		sign = "signed "
	}
	name := ""
	switch {
	case t.IsBoolean() && size == 1:
		name = "_Bool"
	case t.IsFloat():
		name = map[int64]string{2: "_Float16", 4: "float", 8: "double", 16: "long double"}[size]
	case t.IsComplex():
		name = map[int64]string{8: "_Complex float", 16: "_Complex double", 32: "_Complex long double"}[size]
	}
	if name == "" {
		name = sign + map[int64]string{1: "char", 2: "short", 4: "int", 8: "long", 16: "__int128"}[size]
	}
	return name
}

// join puts a declarator behind a type.
func join(name, inner string) string {
	if inner == "" {
		return name
	}
	return name + " " + inner
}
