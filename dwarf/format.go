package dwarf

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Values are written as gdb writes them: people read both, and a test compares
// the two. Output is bounded by the number of elements and by nesting.

// Bounds on what String writes.
const (
	maxElements = 200 // of arrays and strings, in all
	maxNesting  = 8
	maxText     = 1 << 14
	minRepeats  = 10 // as many equal elements are written once
)

// printer writes one value.
type printer struct {
	b     strings.Builder
	left  int // elements
	radix int // of integers, 0 for what is usual
}

// HasIntegers reports whether Format may write the value in another way than String: in
// other words, whether it is more than one float, or a pointer.
func (v Value) HasIntegers() bool {
	defer v.lock()()
	t := v.typ.strip()
	if t == nil || v.golang != nil {
		return false
	}
	return t.Kind != KindPointer && t.Kind != KindFunction && (t.Kind != KindBase || t.enc != encFloat && t.enc != encBoolean)
}

// within returns a printer for part of a value.
func (p *printer) within(left int) *printer { return &printer{left: left, radix: p.radix} }

// String returns the value as gdb's print shows it, those of Go programs as dlv's,
// bounded in length. A part that is not there says why.
func (v Value) String() string { return v.Format(0) }

// Format is String with integers, of C's types, in base 2, 8 or 16; 0 is the usual one.
func (v Value) Format(radix int) (s string) {
	defer func() {
		if recover() != nil {
			s = "<error: " + errExpr.Error() + ">"
		}
	}()
	defer v.lock()()
	if v.golang != nil {
		return v.goText()
	}
	p := &printer{left: maxElements, radix: radix}
	p.value(v, 0)
	if p.b.Len() > maxText {
		return p.b.String()[:maxText] + "..."
	}
	return p.b.String()
}

func (p *printer) write(s string) {
	if p.b.Len() <= maxText {
		p.b.WriteString(s)
	}
}

// fail writes why there is no value.
func (p *printer) fail(err error) {
	switch {
	case errors.Is(err, errLost):
		p.write("<optimized out>")
	case errors.Is(err, errSynthetic):
		p.write("<synthetic pointer>")
	default:
		p.write("<error: " + err.Error() + ">")
	}
}

func (p *printer) value(v Value, depth int) {
	if v.err != nil {
		p.fail(v.err)
		return
	}
	t := v.typ.strip()
	if t == nil {
		p.write("void")
		return
	}
	switch t.Kind {
	case KindBase:
		p.base(v, t)
	case KindPointer:
		p.pointer(v, t)
	case KindReference:
		p.reference(v, depth)
	case KindEnum:
		p.enum(v, t)
	case KindStruct, KindUnion:
		if !p.container(v, depth) {
			p.fields(v, t, depth)
		}
	case KindArray:
		p.array(v, t, depth)
	case KindFunction:
		addr, _ := v.Address()
		p.write(fmt.Sprintf("{%s} %s", v.typ.declare("", 0), v.env.symbolic(addr)))
	case KindMember: // a null one is -1 (Itanium C++ ABI, 2.3)
		if n, err := v.bitsOf(); err == nil && n == ^uint64(0) {
			p.write("NULL")
			return
		}
		p.number(v)
	default:
		p.write("<error: unknown type>")
	}
}

// number writes an integer.
func (p *printer) number(v Value) {
	n, err := v.bitsOf()
	switch {
	case errors.Is(err, errSize) && v.bits == 0:
		p.wide(v)
	case err != nil:
		p.fail(err)
	case p.radix != 0:
		p.write(inRadix(v.unsigned(n), p.radix))
	case v.typ.strip().isSigned():
		p.write(strconv.FormatInt(int64(n), 10))
	default:
		p.write(strconv.FormatUint(n, 10))
	}
}

// unsigned returns the bits that an integer has in its type.
func (v Value) unsigned(n uint64) uint64 {
	bits := uint64(v.bits)
	if bits == 0 {
		bits = uint64(max(v.typ.byteSize(v.env), 0)) * 8
	}
	return extend(n, bits, false)
}

// inRadix writes a number as C has it.
func inRadix(n uint64, radix int) string {
	prefix := map[int]string{16: "0x", 8: "0", 2: "0b"}[radix]
	return prefix + strconv.FormatUint(n, radix)
}

// wide writes an integer of more than 64 bits.
func (p *printer) wide(v Value) {
	n := v.typ.byteSize(v.env)
	if n != 16 {
		p.fail(errSize)
		return
	}
	b, err := v.whole(n)
	if err != nil {
		p.fail(err)
		return
	}
	x := new(big.Int)
	for i := len(b) - 1; i >= 0; i-- {
		x.Lsh(x, 8).Or(x, big.NewInt(int64(b[i])))
	}
	if v.typ.strip().isSigned() && b[15] >= 0x80 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), 128))
	}
	p.write(x.String())
}

// base writes a value of a base type.
func (p *printer) base(v Value, t *Type) {
	switch t.enc {
	case encBoolean:
		n, err := v.bitsOf()
		switch {
		case err != nil:
			p.fail(err)
		case n > 1:
			p.write(strconv.FormatUint(n, 10))
		default:
			p.write(strconv.FormatBool(n == 1))
		}
	case encSignedChar, encUnsignedChar:
		n, err := v.bitsOf()
		if err != nil {
			p.fail(err)
			return
		}
		p.number(v)
		p.write(" '" + charText(byte(n), '\'') + "'")
	case encUTF:
		n, err := v.bitsOf()
		if err != nil {
			p.fail(err)
			return
		}
		p.write(fmt.Sprintf("%d %s%s", n, map[int64]string{1: "u8", 2: "u", 4: "U"}[t.size], strconv.QuoteRune(rune(n))))
	case encFloat:
		p.float(v, t.size)
	case encComplex:
		half := v
		p.float(half, t.size/2)
		p.write(" + ")
		half.off += t.size / 2
		p.float(half, t.size/2)
		p.write("i")
	default:
		p.number(v)
	}
}

// float writes a floating-point number of n bytes.
func (p *printer) float(v Value, n int64) {
	if n > 8 {
		n = 10 // what an x87 number has in its 12 or 16 bytes
	}
	b, err := v.whole(n)
	if err != nil {
		p.fail(err)
		return
	}
	p.write(floatText(b))
}

// floatText writes an IEEE 754 number with as many digits as tell it from its
// neighbours, or an x87 one of 10 bytes.
func floatText(b []byte) string {
	var bits uint64
	for i, c := range b[:min(8, len(b))] {
		bits |= uint64(c) << (8 * i)
	}
	switch len(b) {
	case 4:
		f := math.Float32frombits(uint32(bits))
		return special(float64(f), bits>>31 != 0, bits&(1<<23-1), 9, 32)
	case 8:
		return special(math.Float64frombits(bits), bits>>63 != 0, bits&(1<<52-1), 17, 64)
	case 10:
		exp := int(b[8]) | int(b[9]&0x7f)<<8
		negative := b[9]&0x80 != 0
		if exp == 0x7fff {
			f := math.Inf(1)
			if bits<<1 != 0 {
				f = math.NaN()
			}
			if negative {
				f = -f
			}
			return special(f, negative, bits&(1<<63-1), 0, 64)
		}
		x := new(big.Float).SetPrec(64).SetUint64(bits)
		x.SetMantExp(x, max(exp, 1)-16383-63)
		if negative {
			x.Neg(x)
		}
		return shorten(x.Text('g', 21))
	}
	return "<error: " + errSize.Error() + ">"
}

// shorten removes zeros at the end of a fraction, which C's %g does not write.
func shorten(s string) string {
	mantissa, exp, has := strings.Cut(s, "e")
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	if has {
		return mantissa + "e" + exp
	}
	return mantissa
}

func special(f float64, negative bool, mantissa uint64, digits, bits int) string {
	switch {
	case math.IsNaN(f):
		s := fmt.Sprintf("nan(%#x)", mantissa)
		if negative {
			return "-" + s
		}
		return s
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, 'g', digits, bits)
}

// charText writes a character as C does, between quotes of the given kind.
func charText(c byte, quote byte) string {
	switch c {
	case '\n':
		return `\n`
	case '\t':
		return `\t`
	case '\r':
		return `\r`
	case '\a':
		return `\a`
	case '\b':
		return `\b`
	case '\f':
		return `\f`
	case '\v':
		return `\v`
	case '\\', quote:
		return `\` + string(rune(c))
	}
	if c < ' ' || c > '~' {
		return fmt.Sprintf(`\%03o`, c)
	}
	return string(rune(c))
}

// symbolic writes an address with the symbol it lies in. Data is shown with the
// symbol only where it has one.
func (e *Env) symbolic(addr uint64) string {
	s := fmt.Sprintf("%#x", addr)
	if e != nil && e.Symbolize != nil && addr != 0 {
		if name := e.Symbolize(addr); name != "" {
			return s + " <" + name + ">"
		}
	}
	return s
}

// pointer writes a pointer, and the string behind one to characters.
func (p *printer) pointer(v Value, t *Type) {
	addr, err := v.bitsOf()
	if err != nil {
		p.fail(err)
		return
	}
	e := t.element().strip()
	if !e.isChar() {
		p.write(v.env.symbolic(addr))
		return
	}
	p.write(v.env.symbolic(addr))
	if addr != 0 {
		p.write(" ")
		p.cString(v.env, addr)
	}
}

func (t *Type) isChar() bool {
	return t != nil && t.Kind == KindBase && t.size == 1 && (t.enc == encSignedChar || t.enc == encUnsignedChar)
}

// cString writes the string at addr.
func (p *printer) cString(env *Env, addr uint64) {
	b := make([]byte, max(p.left, 0)+1)
	n := env.Mem.ReadMemory(addr, b)
	for i, c := range b[:n] {
		if c == 0 {
			p.text(b[:i], false)
			return
		}
	}
	if n == 0 {
		e := memoryError{addr: addr}
		if env.Why != nil {
			e.why = env.Why(addr)
		}
		p.fail(e)
		return
	}
	p.text(b[:min(n, len(b)-1)], true)
	if n < len(b) {
		p.write(fmt.Sprintf("<error: Cannot access memory at address %#x>", addr+uint64(n)))
	}
}

// reference writes where a reference refers to, and what is there.
func (p *printer) reference(v Value, depth int) {
	addr, err := v.bitsOf()
	if err != nil {
		p.fail(err)
		return
	}
	p.write(fmt.Sprintf("@%#x: ", addr))
	if depth > maxNesting {
		p.write("...")
		return
	}
	p.value(v.target(), depth+1)
}

// enum writes an enumerator's name, or several that make up the value.
func (p *printer) enum(v Value, t *Type) {
	n, err := v.bitsOf()
	if err != nil {
		p.fail(err)
		return
	}
	t.load()
	size := uint64(max(t.byteSize(nil), 0)) * 8
	rest, flags := extend(n, size, false), true
	var names []string
	used := uint64(0)
	for _, e := range t.enums {
		x := extend(uint64(e.value), size, false)
		if x == rest {
			p.write(t.enumerator(e.name))
			return
		}
		if x&used != 0 {
			flags = false
		}
		used |= x
	}
	for _, e := range t.enums {
		if x := extend(uint64(e.value), size, false); x != 0 && x&rest == x {
			names = append(names, t.enumerator(e.name))
			rest &^= x
		}
	}
	switch {
	case !flags || len(t.enums) == 0 || n == 0:
		p.number(v)
	case len(names) == 0:
		p.write(fmt.Sprintf("(unknown: %#x)", rest))
	case rest != 0:
		p.write(fmt.Sprintf("(%s | unknown: %#x)", strings.Join(names, " | "), rest))
	default:
		p.write("(" + strings.Join(names, " | ") + ")")
	}
}

// fields writes a struct or union.
func (p *printer) fields(v Value, t *Type, depth int) {
	if t.isDecl {
		p.write("<incomplete type>")
		return
	}
	if depth > maxNesting || p.left <= 0 {
		p.write("{...}")
		return
	}
	if p.allLost(v, t) {
		p.fail(errLost)
		return
	}
	t.load()
	p.write("{")
	first := true
	for i := range t.fields {
		f := &t.fields[i]
		if !v.has(f) {
			continue
		}
		if !first {
			p.write(", ")
		}
		first = false
		c := v.member(f)
		switch {
		case f.base:
			p.write("<" + c.Name + "> = ")
		case f.name != "":
			p.write(f.name + " = ")
		}
		p.value(c, depth+1)
		if p.b.Len() > maxText {
			break
		}
	}
	if first {
		p.write("<No data fields>")
	}
	p.write("}")
}

// hasLost reports whether one of the first n bytes is optimized out.
func (v Value) hasLost(n int64) bool {
	if len(v.pieces) == 1 && v.pieces[0].place == inMemory {
		return false
	}
	_, state := v.read(0, min(n, maxElements))
	for _, s := range state {
		if s == byteLost {
			return true
		}
	}
	return false
}

// allLost reports whether nothing is left of a value.
func (p *printer) allLost(v Value, t *Type) bool {
	n := t.byteSize(v.env)
	if n <= 0 || n > maxValue || len(v.pieces) == 1 && v.pieces[0].place == inMemory {
		return false
	}
	_, state := v.read(0, n)
	for _, s := range state {
		if s != byteLost {
			return false
		}
	}
	return true
}

// array writes an array, one of characters as a string.
func (p *printer) array(v Value, t *Type, depth int) {
	n := t.length(v.env)
	e := t.element()
	size := e.byteSize(v.env)
	switch {
	case n < 0:
		n = 0
	case depth > maxNesting || p.left <= 0 && n > 0:
		p.write("{...}")
		return
	case size < 0:
		p.fail(errSize)
		return
	}
	switch {
	case p.allLost(v, t):
		p.fail(errLost)
		return
	case e.strip().isChar() && !v.hasLost(n):
		p.chars(v, n)
		return
	}
	p.write("{")
	for i := int64(0); i < n; {
		if i > 0 {
			p.write(", ")
		}
		if p.left <= 0 || p.b.Len() > maxText {
			break
		}
		text := p.element(v, e, i, size, depth)
		same := int64(1)
		for i+same < n && same < 1<<16 && v.equal(i*size, (i+same)*size, size) {
			same++
		}
		p.left--
		if same < minRepeats {
			p.write(text)
			i++
			continue
		}
		p.write(fmt.Sprintf("%s <repeats %d times>", text, same))
		i += same
	}
	if p.left <= 0 {
		p.write("...")
	}
	p.write("}")
}

// element returns the text of one element.
func (p *printer) element(v Value, e *Type, i, size int64, depth int) string {
	in := p.within(p.left)
	in.value(v.at("", e, i*size), depth+1)
	if e := e.strip(); e != nil && (e.Kind == KindStruct || e.Kind == KindUnion || e.Kind == KindArray) {
		p.left = in.left
	}
	return in.b.String()
}

// equal reports whether two parts of the value have the same bytes.
func (v Value) equal(a, b, size int64) bool {
	if size > 4096 {
		return false
	}
	x, sx := v.read(a, size)
	y, sy := v.read(b, size)
	return string(x) == string(y) && string(sx) == string(sy)
}

// chars writes an array of n characters up to its first zero.
func (p *printer) chars(v Value, n int64) {
	more := n > int64(p.left)
	b, state := v.read(0, min(n, int64(p.left)))
	for i := range b {
		if state[i] != byteKnown {
			if i == 0 {
				p.fail(v.byteError(state[i], 0))
				return
			}
			p.text(b[:i], true)
			return
		}
		if b[i] == 0 {
			p.text(b[:i], false)
			return
		}
	}
	p.text(b, more)
}
