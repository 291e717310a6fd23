package dwarf

import (
	"debug/dwarf"
	"strings"
)

// Types are read here, not by debug/dwarf: that reads a type with all it refers
// to at once, knows neither references nor base classes, and reads the whole of a
// large program's types for one variable. Here a type is read when it is asked
// for, one level at a time, so that no damaged file can make it recurse. What a type is
// called is in typename.go, how large it is in typesize.go.

// Kind is what a type is, after C's.
type Kind uint8

// The kinds of types.
const (
	KindUnknown Kind = iota // void, or a type that is not understood
	KindBase
	KindPointer
	KindReference
	KindStruct
	KindUnion
	KindArray
	KindEnum
	KindTypedef
	KindQualified // const, volatile and the like
	KindFunction
	KindMember // pointer to member
)

// Encodings of base types (DWARF 5, table 7.11).
const (
	encBoolean      = 0x02
	encComplex      = 0x03
	encFloat        = 0x04
	encSigned       = 0x05
	encSignedChar   = 0x06
	encUnsigned     = 0x07
	encUnsignedChar = 0x08
	encUTF          = 0x10
)

// Type is a type of the program. A nil Type is void.
type Type struct {
	Kind Kind

	m       *Module
	off     dwarf.Offset
	name    string // as declared, without struct or the like; "" when it has none
	word    string // struct, union, class, const, &
	size    int64  // in bytes, -1 when the entry does not say
	enc     int64
	align   int64        // that the program asked for, 0 for the type's own
	natural int64        // what it is aligned to, 0 before that is known
	elem    dwarf.Offset // what it points to, is an array or a name of; 0: void
	made    *Type        // instead of elem, for types that no entry describes

	fields  []field
	discr   *field // what the variants go by; nil when there is one at most
	enums   []enumerator
	dims    []dimension
	dim     int // an array's first dimension
	params  []dwarf.Offset
	args    []dwarf.Offset // of a template, types only; those of packs in place of the pack
	holds   dwarf.Offset   // the class's own type pointer, which points to what it holds
	further bool           // a function with more parameters
	scoped  bool           // an enumeration whose enumerators are named with it
	read    bool           // fields, enums, dims and params are
	golang  bool           // a Go program's, named as Go names it
	isDecl  bool
}

// field is a member of a struct or union.
type field struct {
	name       string
	typ        dwarf.Offset
	off        int64  // in bytes from the start
	expr       []byte // instead, for virtual base classes
	bits       int64  // width of a bit field, 0 for others
	bitOff     int64  // from the start, in bits
	base       bool   // a base class
	isStatic   bool
	artificial bool

	variant bool  // it is there only for some values of the type's discriminant
	other   bool  // for all that have no variant of their own
	selects int64 // else for this one
}

// enumerator is one of an enumeration's values.
type enumerator struct {
	name  string
	value int64
}

// dimension is one of an array's: its number of elements, if that is constant,
// else where it is to be had.
type dimension struct {
	lower int64
	upper any // int64, []byte, dwarf.Offset, or nil
	count any
}

// Bounds on what is believed of a type.
const (
	maxFields  = 1 << 16
	maxChain   = 32 // typedefs of typedefs, pointers to pointers
	maxTypeStr = 4096
	maxTypes   = 1 << 16 // kept at a time
	fieldBytes = 192     // what a member takes in memory
)

// typeOf returns the type that an entry's DW_AT_type names; nil for void.
func (m *Module) typeOf(e *dwarf.Entry) *Type {
	off, ok := m.attr(e, dwarf.AttrType).(dwarf.Offset)
	if !ok {
		return nil
	}
	return m.typeAt(off)
}

// kindOf maps tags to kinds; word is what C calls it.
var kindOf = map[dwarf.Tag]struct {
	kind Kind
	word string
}{
	dwarf.TagBaseType:            {KindBase, ""},
	dwarf.TagUnspecifiedType:     {KindUnknown, ""},
	dwarf.TagPointerType:         {KindPointer, "*"},
	dwarf.TagReferenceType:       {KindReference, "&"},
	dwarf.TagRvalueReferenceType: {KindReference, "&&"},
	dwarf.TagStructType:          {KindStruct, "struct"},
	dwarf.TagClassType:           {KindStruct, "class"},
	dwarf.TagUnionType:           {KindUnion, "union"},
	dwarf.TagArrayType:           {KindArray, ""},
	dwarf.TagEnumerationType:     {KindEnum, "enum"},
	dwarf.TagTypedef:             {KindTypedef, ""},
	dwarf.TagConstType:           {KindQualified, "const"},
	dwarf.TagVolatileType:        {KindQualified, "volatile"},
	dwarf.TagRestrictType:        {KindQualified, "restrict"},
	dwarf.TagAtomicType:          {KindQualified, "_Atomic"},
	dwarf.TagSubroutineType:      {KindFunction, ""},
	dwarf.TagSubprogram:          {KindFunction, ""},
	dwarf.TagPtrToMemberType:     {KindMember, ""},
}

// typeAt reads the type entry at off.
func (m *Module) typeAt(off dwarf.Offset) *Type {
	if off == 0 {
		return nil
	}
	if t, ok := m.types[off]; ok {
		return t
	}
	if m.types == nil || len(m.types) >= maxTypes {
		m.types = map[dwarf.Offset]*Type{}
	}
	t := &Type{m: m, off: off, size: -1}
	m.types[off] = t
	e := m.entryAt(off)
	if e == nil {
		return t
	}
	k := kindOf[e.Tag]
	t.Kind, t.word = k.kind, k.word
	t.name, _ = e.Val(dwarf.AttrName).(string)
	t.golang = m.isGo(off)
	if n, ok := e.Val(dwarf.AttrByteSize).(int64); ok {
		t.size = n
	}
	t.enc, _ = e.Val(dwarf.AttrEncoding).(int64)
	t.align, _ = e.Val(dwarf.AttrAlignment).(int64)
	t.elem, _ = e.Val(dwarf.AttrType).(dwarf.Offset)
	t.isDecl, _ = e.Val(dwarf.AttrDeclaration).(bool)
	t.scoped, _ = e.Val(dwarf.AttrEnumClass).(bool)
	switch t.Kind {
	case KindPointer, KindReference:
		t.size = 8
	case KindMember:
		if t.size < 0 {
			t.size = 8
		}
	case KindStruct, KindUnion, KindEnum:
		if t.isDecl {
			m.complete(t, e)
		}
	default:
	}
	return t
}

// complete finds the definition of a type that is only declared.
func (m *Module) complete(t *Type, e *dwarf.Entry) {
	if t.name == "" {
		return
	}
	for _, off := range m.names().types[t.name] {
		d := m.entryAt(off)
		if off == t.off || d == nil || d.Tag != e.Tag && kindOf[d.Tag].kind != t.Kind {
			continue
		}
		if n, ok := d.Val(dwarf.AttrByteSize).(int64); ok {
			t.off, t.size, t.isDecl = off, n, false
			return
		}
	}
}

// element returns what a pointer points to, the element of an array, the type
// behind a typedef or qualifier, the result of a function; nil for void.
func (t *Type) element() *Type {
	switch {
	case t == nil:
		return nil
	case t.made != nil || t.m == nil:
		return t.made
	case t.Kind == KindArray:
		if t.load(); t.dim+1 < len(t.dims) {
			inner := *t
			inner.dim++
			return &inner
		}
	}
	return t.m.typeAt(t.elem)
}

// strip returns the type behind typedefs and qualifiers; nil for void.
func (t *Type) strip() *Type {
	for range maxChain {
		if t == nil || t.Kind != KindTypedef && t.Kind != KindQualified {
			return t
		}
		t = t.element()
	}
	return nil
}

// IsAtomic reports whether the type is declared _Atomic, or is std::atomic or std::atomic_flag, whatever it is called.
func (t *Type) IsAtomic() bool {
	if t == nil || t.m == nil {
		return false
	}
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	defer guard()
	for range maxChain {
		if t == nil {
			return false
		}
		if t.Kind == KindQualified && t.word == "_Atomic" || t.Kind == KindStruct && (strings.HasPrefix(t.fullName(), "std::atomic<") || t.fullName() == "std::atomic_flag") {
			return true
		}
		if t.Kind != KindTypedef && t.Kind != KindQualified {
			return false
		}
		t = t.element()
	}
	return false
}

// load reads what stands below the type's entry.
func (t *Type) load() {
	if t.read || t.m == nil {
		return
	}
	t.read = true
	r := t.m.data.Reader()
	r.Seek(t.off)
	e, err := r.Next()
	if err != nil || e == nil || !e.Children {
		return
	}
	inPack := false
	for last := t.off; ; {
		c, err := r.Next()
		switch {
		case err != nil || c == nil || len(t.fields)+len(t.enums)+len(t.params)+len(t.args) > maxFields:
			return
		case c.Tag == 0 && inPack:
			inPack = false
			continue
		case c.Tag == 0 || c.Offset <= last:
			return
		}
		if last = c.Offset; t.m.meter.take(fieldBytes) != nil {
			return
		}
		if c.Tag == tagParameterPack && c.Children && !inPack {
			inPack = true
			continue
		}
		if c.Tag == dwarf.TagVariantPart && c.Children {
			last = t.variants(r, c)
			continue
		}
		t.child(c)
		r.SkipChildren()
	}
}

// variants reads the part of a type that depends on a value, such as a Rust enum's
// (DWARF 5, 5.7.10): the member that decides, and a member for each case. It returns
// the offset of the last entry read.
func (t *Type) variants(r *entryReader, part *dwarf.Entry) (last dwarf.Offset) {
	by, _ := part.Val(dwarf.AttrDiscr).(dwarf.Offset)
	last = part.Offset
	depth := 1
	var in field // what the members of the present variant have in common
	for depth > 0 && len(t.fields) <= maxFields {
		c, err := r.Next()
		if err != nil || c == nil || c.Tag != 0 && c.Offset <= last || t.m.meter.take(fieldBytes) != nil {
			break
		}
		if c.Tag == 0 {
			depth--
			continue
		}
		last = c.Offset
		switch {
		case c.Tag == dwarf.TagVariant && depth == 1 && c.Children:
			in = field{variant: true}
			v, ok := c.Val(dwarf.AttrDiscrValue).(int64)
			in.selects, in.other = v, !ok
			depth++
			continue
		case c.Tag == dwarf.TagMember:
			name, _ := c.Val(dwarf.AttrName).(string)
			f := t.field(c, name)
			if depth == 1 && c.Offset == by {
				t.discr = &f
			} else if depth == 2 {
				f.variant, f.other, f.selects = true, in.other, in.selects
				t.fields = append(t.fields, f)
			}
		}
		r.SkipChildren()
	}
	return last
}

// tagParameterPack is DW_TAG_GNU_template_parameter_pack, whose children are the
// arguments that stand for one parameter.
const tagParameterPack = dwarf.Tag(0x4107)

func (t *Type) child(c *dwarf.Entry) {
	name, _ := c.Val(dwarf.AttrName).(string)
	switch {
	case c.Tag == dwarf.TagEnumerator && t.Kind == KindEnum:
		v, _ := c.Val(dwarf.AttrConstValue).(int64)
		t.enums = append(t.enums, enumerator{name, v})
	case (c.Tag == dwarf.TagMember || c.Tag == dwarf.TagInheritance) && (t.Kind == KindStruct || t.Kind == KindUnion):
		t.fields = append(t.fields, t.field(c, name))
	case c.Tag == dwarf.TagSubrangeType && t.Kind == KindArray && len(t.dims) < maxChain:
		d := dimension{upper: c.Val(dwarf.AttrUpperBound), count: c.Val(dwarf.AttrCount)}
		d.lower, _ = c.Val(dwarf.AttrLowerBound).(int64)
		t.dims = append(t.dims, d)
	case c.Tag == dwarf.TagFormalParameter && t.Kind == KindFunction:
		off, _ := c.Val(dwarf.AttrType).(dwarf.Offset)
		t.params = append(t.params, off)
	case c.Tag == dwarf.TagUnspecifiedParameters:
		t.further = true
	case c.Tag == dwarf.TagTemplateTypeParameter:
		off, _ := c.Val(dwarf.AttrType).(dwarf.Offset)
		t.args = append(t.args, off)
	case c.Tag == dwarf.TagTypedef && name == "pointer" && t.Kind == KindStruct:
		t.holds, _ = c.Val(dwarf.AttrType).(dwarf.Offset)
	}
}

// field decodes a member (DWARF 5, 5.7.6; bit fields of DWARF 2 and 3 by
// DW_AT_bit_offset, counted from the high end of their storage).
func (t *Type) field(c *dwarf.Entry, name string) field {
	f := field{name: name, base: c.Tag == dwarf.TagInheritance}
	f.typ, _ = c.Val(dwarf.AttrType).(dwarf.Offset)
	f.artificial, _ = c.Val(dwarf.AttrArtificial).(bool)
	external, _ := c.Val(dwarf.AttrExternal).(bool)
	declared, _ := c.Val(dwarf.AttrDeclaration).(bool)
	f.isStatic = external || declared
	switch v := c.Val(dwarf.AttrDataMemberLoc).(type) {
	case int64:
		f.off = v
	case []byte:
		if n, err := evaluate(v, []uint64{0}, &Regs{}, nothing{}); err == nil {
			f.off = int64(n)
		} else {
			f.expr = v
		}
	}
	f.bits, _ = c.Val(dwarf.AttrBitSize).(int64)
	if v, ok := c.Val(dwarf.AttrDataBitOffset).(int64); ok {
		f.bitOff = v
	} else {
		f.bitOff = f.off * 8
		if v, ok := c.Val(dwarf.AttrBitOffset).(int64); ok {
			size, ok := c.Val(dwarf.AttrByteSize).(int64)
			if !ok {
				size = t.m.typeAt(f.typ).byteSize(nil)
			}
			f.bitOff += size*8 - v - f.bits
		}
	}
	if f.bits < 0 || f.bits > 64 {
		f.bits = 0
	}
	return f
}

// nothing is memory that cannot be read.
type nothing struct{}

func (nothing) ReadMemory(uint64, []byte) int { return 0 }

// enumerator returns the name of an enumerator as the language has it.
func (t *Type) enumerator(name string) string {
	if t.scoped {
		return t.fullName() + "::" + name
	}
	if prefix := t.m.prefix(t.off); prefix != "" {
		return prefix + name
	}
	return name
}
