package dwarf

import (
	"debug/dwarf"
	"strconv"
	"strings"
)

// Names of types, as C and C++ declare them and gdb prints them.

// String returns the type as C writes it: "char *[3]", "int (*)(struct p *)", and without
// the arguments of templates that the C++ library has by itself: "std::vector<int>".
func (t *Type) String() string {
	if t == nil {
		return "void"
	}
	if t.m == nil { // made by an expression
		return t.declare("", 0)
	}
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	defer guard()
	return plainTemplates(t.declare("", 0))
}

// declare writes the declaration of what has the type; inner is what stands in
// place of its name.
func (t *Type) declare(inner string, depth int) string {
	switch {
	case depth > maxChain || len(inner) > maxTypeStr:
		return "..."
	case t == nil:
		return join("void", inner)
	case t.golang && t.name != "":
		return join(t.name, inner)
	}
	switch t.Kind {
	case KindPointer, KindReference:
		e := t.element()
		if inner = t.word + inner; e != nil && (e.Kind == KindArray || e.Kind == KindFunction) {
			inner = "(" + inner + ")"
		}
		return e.declare(inner, depth+1)
	case KindQualified:
		if e := t.element(); e != nil && e.Kind == KindPointer {
			return e.declare(join(" "+t.word, inner), depth+1)
		}
		return t.word + " " + t.element().declare(inner, depth+1)
	case KindArray:
		n := ""
		if c := t.length(nil); c >= 0 {
			n = strconv.FormatInt(c, 10)
		}
		return t.element().declare(inner+"["+n+"]", depth+1)
	case KindFunction:
		return t.element().declare(inner+"("+t.parameters(depth)+")", depth+1)
	default:
		return join(t.tagName(), inner)
	}
}

// parameters lists a function's.
func (t *Type) parameters(depth int) string {
	t.load()
	var list []string
	for _, p := range t.params {
		list = append(list, t.m.typeAt(p).declare("", depth+1))
	}
	if t.further {
		list = append(list, "...")
	}
	if len(list) == 0 {
		return "void"
	}
	return strings.Join(list, ", ")
}

// fullName is a name with the namespaces and classes around it.
func (t *Type) fullName() string {
	if t.m == nil || t.name == "" {
		return t.name
	}
	return t.m.prefix(t.off) + t.name
}

// prefix returns the namespaces and classes around the type entry at off, "a::b::".
func (m *Module) prefix(off dwarf.Offset) string {
	if m.data == nil || m.isC(m.headerOf(off)) {
		return ""
	}
	return m.names().prefix[off]
}

// tagName is a name with the word before it, where the language has it.
func (t *Type) tagName() string {
	name := t.fullName()
	if name == "" {
		name = "{...}"
		if t.Kind == KindUnknown {
			return "<unknown type>"
		}
	}
	switch t.Kind {
	case KindStruct, KindUnion, KindEnum:
		if t.name == "" || t.m.isC(t.m.headerOf(t.off)) {
			return t.word + " " + name
		}
	default:
	}
	return name
}

// join puts a declarator behind a type.
func join(name, inner string) string {
	if inner == "" {
		return name
	}
	return name + " " + strings.TrimPrefix(inner, " ")
}
