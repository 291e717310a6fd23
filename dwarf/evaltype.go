package dwarf

import (
	"slices"
	"strings"
)

// Names of types in an expression, as in casts and sizeof. What a type is called when it is
// printed is in typename.go.

// typeWords are those that type names of C are made of.
var typeWords = strings.Fields("unsigned signed long short int char float double _Bool bool void const volatile struct union enum class")

// typeName parses a type's name and stars; ok is false when it is none, and
// then nothing is certain about what was taken.
func (x *evalState) typeName() (t *Type, ok bool) {
	var base []string
	tag := ""
	for x.at < len(x.toks) && x.toks[x.at].kind == 'n' {
		w := x.toks[x.at].text
		switch {
		case w == "const" || w == "volatile":
		case w == "struct" || w == "union" || w == "enum" || w == "class":
			tag = w
		case slices.Contains(typeWords, w) || len(base) == 0:
			base = append(base, w)
		default:
			return nil, false
		}
		x.at++
	}
	if len(base) == 0 {
		return nil, false
	}
	if t, ok = x.namedType(base, tag); !ok {
		return nil, false
	}
	for x.at < len(x.toks) {
		switch {
		case x.take("*"):
			t = x.pointerType(t)
		case x.toks[x.at].kind == 'n' && (x.toks[x.at].text == "const" || x.toks[x.at].text == "volatile"):
			x.at++
		default:
			return t, true
		}
	}
	return t, true
}

// namedType finds a type by the words of its name.
func (x *evalState) namedType(base []string, tag string) (*Type, bool) {
	if tag == "" {
		if t, ok := basicType(base); ok {
			return t, true
		}
	}
	if len(base) != 1 {
		return nil, false
	}
	m := x.env.Module
	if m == nil || m.data == nil || x.isVariable(base[0]) && tag == "" {
		return nil, false
	}
	for _, off := range m.names().types[strings.TrimPrefix(base[0], "::")] {
		t := m.typeAt(off)
		isTag := t.Kind == KindStruct || t.Kind == KindUnion || t.Kind == KindEnum
		if tag == "" && isTag && m.isC(m.headerOf(off)) || tag != "" && (!isTag || t.word != tag && m.isC(m.headerOf(off))) {
			continue
		}
		return t, true
	}
	return nil, false
}

// isVariable reports whether a name is one in the scope, which hides types.
func (x *evalState) isVariable(name string) bool {
	if x.scope == nil {
		return false
	}
	_, ok := x.scope.lookup(name)
	return ok
}

// basicType is a type of C made of several words in any order.
func basicType(base []string) (*Type, bool) {
	count := map[string]int{}
	for _, w := range base {
		count[w]++
	}
	name := strings.Join(base, " ")
	sized := func(size, enc int64) (*Type, bool) {
		return &Type{Kind: KindBase, name: name, size: size, enc: enc}, true
	}
	unsigned := count["unsigned"] > 0
	pick := func(size int64) (*Type, bool) {
		if unsigned {
			return sized(size, encUnsigned)
		}
		return sized(size, encSigned)
	}
	for _, w := range base {
		if !slices.Contains(typeWords, w) {
			return nil, false
		}
	}
	switch {
	case count["void"] > 0:
		return nil, len(base) == 1
	case count["_Bool"]+count["bool"] > 0:
		return sized(1, encBoolean)
	case count["float"] > 0:
		return sized(4, encFloat)
	case count["double"] > 0 && count["long"] > 0:
		return sized(16, encFloat)
	case count["double"] > 0:
		return sized(8, encFloat)
	case count["char"] > 0 && unsigned:
		return sized(1, encUnsignedChar)
	case count["char"] > 0:
		return sized(1, encSignedChar)
	case count["short"] > 0:
		return pick(2)
	case count["long"] > 0:
		return pick(8)
	}
	return pick(4)
}
