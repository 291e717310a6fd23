package dwarf

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Go's values are written as dlv writes them: people read both, and a test compares
// the two. The rules are those of delve's service/api/prettyprint.go (MIT licence,
// copyright 2014 Derek Parker).

// goStyle says how a value is written.
type goStyle struct {
	top   bool // it is the variable itself, not part of it
	lines bool // on several lines
	types bool // with its type
}

// maxShort is the longest string that does not make its struct take several lines.
const maxShort = 7

// oneLine is a value on one line.
func (v *goVar) oneLine() string { return v.write(goStyle{top: true, types: true}) }

// lines is a value as dlv's print shows it.
func (v *goVar) lines() string { return v.write(goStyle{top: true, types: true, lines: true}) }

func (v *goVar) write(s goStyle) string {
	p := &printer{left: maxElements}
	p.goValue(v, s, "")
	if p.b.Len() > maxText {
		return p.b.String()[:maxText] + "..."
	}
	return p.b.String()
}

// has reports whether there is a value in words.
func (v *goVar) has() bool { return v.text != "" }

func (p *printer) goValue(v *goVar, s goStyle, indent string) {
	if v.err != nil {
		p.write("(unreadable " + v.err.Error() + ")")
		return
	}
	name := goTypeName(v.typ)
	if !s.top && v.addr == 0 && !v.has() {
		if s.types && name != "void" {
			p.write(name + " ")
		}
		p.write("nil")
		return
	}
	switch v.kind {
	case reflect.Slice, reflect.Array:
		p.goElements(v, s, indent)
	case reflect.Pointer:
		p.goPointer(v, s, indent)
	case reflect.UnsafePointer:
		if len(v.children) == 0 {
			p.write("unsafe.Pointer(nil)")
		} else {
			p.write(fmt.Sprintf("unsafe.Pointer(%#x)", v.children[0].addr))
		}
	case reflect.Chan:
		switch {
		case s.lines:
			p.goStruct(v, s, indent)
		case len(v.children) < 2:
			p.write(name + " nil")
		default:
			p.write(name + " " + v.children[0].text + "/" + v.children[1].text)
		}
	case reflect.Struct:
		if v.has() {
			p.write(name + "(" + v.text + ")")
			s.types = false
		}
		p.goStruct(v, s, indent)
	case reflect.Interface:
		p.goInterface(v, s, indent)
	case reflect.Map:
		p.goMap(v, s, indent)
	case reflect.Func:
		p.goFunction(v, s, indent)
	case reflect.String:
		text := v.text
		if int64(len(text)) != v.length {
			text = fmt.Sprintf("%s...+%d more", text, v.length-int64(len(text)))
		}
		p.write(fmt.Sprintf("%q", text))
	default:
		if !v.has() {
			p.write(fmt.Sprintf("(unknown %s)", v.kind))
			return
		}
		p.write(v.text)
	}
}

// part is the style of what is in a value.
func (s goStyle) part(types bool) goStyle { return goStyle{types: types, lines: s.lines} }

// address is a value by its type and place; star is what stands before the type.
func address(star, name string, addr uint64) string {
	if strings.Contains(name, "/") {
		name = strconv.Quote(name)
	}
	return fmt.Sprintf("(%s%s)(%#x)", star, name, addr)
}

func (p *printer) goPointer(v *goVar, s goStyle, indent string) {
	name := goTypeName(v.typ)
	switch {
	case len(v.children) == 0:
		p.write("nil")
		return
	case v.children[0].onlyAddr && v.children[0].addr != 0:
		p.write(address("", name, v.children[0].addr))
		return
	case s.top && s.lines && v.children[0].addr != 0:
		p.write(address("", name, v.children[0].addr) + "\n")
	}
	p.write("*")
	s.top = false
	p.goValue(v.children[0], s, indent)
}

func (p *printer) goInterface(v *goVar, s goStyle, indent string) {
	if v.addr == 0 || len(v.children) == 0 {
		p.write("nil")
		return
	}
	data, name := v.children[0], goTypeName(v.typ)
	if s.types {
		if data.kind == reflect.Invalid {
			p.write(name + " ")
			if data.addr == 0 {
				p.write("nil")
				return
			}
		} else {
			p.write(name + "(" + goTypeName(data.typ) + ") ")
		}
	}
	inner := s.part(!s.types)
	switch {
	case data.kind == reflect.Pointer && len(data.children) == 0:
		p.write("...")
	case data.kind == reflect.Pointer && data.children[0].addr == 0:
		p.write("nil")
	case data.kind == reflect.Pointer && data.children[0].onlyAddr:
		p.write(fmt.Sprintf("%#x", data.addr))
	case data.kind != reflect.Pointer && data.onlyAddr:
		p.write("*" + address("*", name, v.addr))
	default:
		p.goValue(data, inner, indent)
	}
}

func (p *printer) goFunction(v *goVar, s goStyle, indent string) {
	if !v.has() {
		p.write("nil")
		return
	}
	p.write(v.text)
	if !s.lines || len(v.children) == 0 {
		return
	}
	p.write(" {\n")
	for _, c := range v.children {
		p.write(indent + "\t" + c.name + " " + goTypeName(c.typ) + " = ")
		p.goValue(c, s.part(false), indent+"\t")
		p.write("\n")
	}
	p.write(indent + "}")
}

func (p *printer) goStruct(v *goVar, s goStyle, indent string) {
	name := goTypeName(v.typ)
	if v.length != int64(len(v.children)) && len(v.children) == 0 {
		p.write(address("*", name, v.addr))
		return
	}
	if s.types {
		p.write(name + " ")
	}
	lines := s.lines && v.isLong()
	inner := indent + "\t"
	p.write("{")
	for i, c := range v.children {
		if lines {
			p.write("\n" + inner)
		}
		p.write(c.name + ": ")
		p.goValue(c, goStyle{types: true, lines: lines}, inner)
		switch {
		case lines:
			p.write(",")
		case i != len(v.children)-1:
			p.write(", ")
		}
	}
	p.goMore(v.length-int64(len(v.children)), true, lines, inner)
	p.write("}")
}

// goMore says how many parts were left out of a value, of which some are shown.
func (p *printer) goMore(n int64, some, lines bool, indent string) {
	switch {
	case n == 0:
	case !some:
		p.write("...")
	case lines:
		p.write(fmt.Sprintf("\n%s...+%d more", indent, n))
	default:
		p.write(fmt.Sprintf(",...+%d more", n))
	}
}

func (p *printer) goMap(v *goVar, s goStyle, indent string) {
	if s.types {
		p.write(goTypeName(v.typ) + " ")
	}
	if v.base == 0 && len(v.children) == 0 {
		p.write("nil")
		return
	}
	lines := s.lines && len(v.children) > 0
	inner := indent + "\t"
	p.write("[")
	for i := 0; i+1 < len(v.children); i += 2 {
		if lines {
			p.write("\n" + inner)
		}
		p.goValue(v.children[i], goStyle{}, inner)
		p.write(": ")
		p.goValue(v.children[i+1], goStyle{lines: lines}, inner)
		p.write(", ")
	}
	p.goMore(v.length-int64(len(v.children)/2), len(v.children) > 0, lines, inner)
	if lines {
		p.write("\n" + indent)
	}
	p.write("]")
}

func (p *printer) goElements(v *goVar, s goStyle, indent string) {
	if s.types {
		p.write(goTypeName(v.typ) + " ")
		if v.kind == reflect.Slice {
			p.write(fmt.Sprintf("len: %d, cap: %s, ", v.length, v.capText()))
		}
	}
	if v.kind == reflect.Slice && v.base == 0 && len(v.children) == 0 {
		p.write("nil")
		return
	}
	lines := s.lines && v.hasLong()
	inner := indent + "\t"
	p.write("[")
	for i, c := range v.children {
		if lines {
			p.write("\n" + inner)
		}
		p.goValue(c, goStyle{lines: lines}, inner)
		if i != len(v.children)-1 || lines {
			p.write(",")
		}
	}
	p.goMore(v.length-int64(len(v.children)), len(v.children) > 0, lines, inner)
	if lines {
		p.write("\n" + indent)
	}
	p.write("]")
}

// capText is a slice's capacity. The compiler often needs it no more; dlv shows 0
// then.
func (v *goVar) capText() string {
	if v.capacity < 0 {
		return "(" + errLost.Error() + ")"
	}
	return strconv.FormatInt(v.capacity, 10)
}

// behind is the kind of what pointers lead to.
func (v *goVar) behind() (kind reflect.Kind, isPointer bool) {
	for v.kind == reflect.Pointer {
		if isPointer = true; len(v.children) == 0 {
			break
		}
		v = v.children[0]
	}
	return v.kind, isPointer
}

// isLong reports whether one of a struct's members makes it take several lines.
func (v *goVar) isLong() bool {
	for _, c := range v.children {
		switch kind, isPointer := c.behind(); kind { //nolint:exhaustive // the others are short
		case reflect.Slice, reflect.Array, reflect.Struct, reflect.Map, reflect.Interface:
			return true
		case reflect.String:
			if isPointer || len(c.text) > maxShort {
				return true
			}
		}
	}
	return false
}

// hasLong is isLong for elements, which are of one type.
func (v *goVar) hasLong() bool {
	if len(v.children) == 0 {
		return false
	}
	switch kind, isPointer := v.children[0].behind(); kind { //nolint:exhaustive // the others are short
	case reflect.Slice, reflect.Array, reflect.Struct, reflect.Map, reflect.Interface:
		return true
	case reflect.String:
		if isPointer {
			return true
		}
		for _, c := range v.children {
			if len(c.text) > maxShort {
				return true
			}
		}
	}
	return false
}
