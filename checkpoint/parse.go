package checkpoint

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The parser of the text form of events, the inverse of text.go, where that form is
// described. The fields of each kind of event are in the event table, spec.go.

// ParseEvent reads the text form that Event.Text writes. The fields may be in
// any order; an optional one that is left out is zero. The
// error says what is wrong and before which text.
func ParseEvent(text string) (Event, error) {
	var e Event
	s := &textScanner{rest: text}
	name := s.word()
	for k := EventEnter; k <= lastEvent; k++ {
		if k.spec().name == name {
			e.Kind = k
		}
	}
	if e.Kind == 0 {
		return e, fmt.Errorf("checkpoint: event text: unknown kind %q", name)
	}
	seen := make(map[fieldID]bool)
	for s.err == nil && s.rest != "" {
		s.expect(" ")
		s.field(&e, seen)
	}
	for _, id := range e.Kind.spec().required {
		if !seen[id] {
			s.fail("field %q is missing", eventFields[id].name)
		}
	}
	if s.err != nil {
		return Event{}, fmt.Errorf("checkpoint: event text: %w, before %.20q", s.err, s.rest)
	}
	return e, nil
}

// textScanner takes the text form apart; the first error stops it.
type textScanner struct {
	rest string
	err  error
}

func (s *textScanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

// word takes what is before the next delimiter.
func (s *textScanner) word() string {
	n := strings.IndexAny(s.rest, " =,:;[]{}")
	if n < 0 {
		n = len(s.rest)
	}
	w := s.rest[:n]
	s.rest = s.rest[n:]
	return w
}

// accept takes lit if it is next.
func (s *textScanner) accept(lit string) bool {
	rest, ok := strings.CutPrefix(s.rest, lit)
	if ok && s.err == nil {
		s.rest = rest
	}
	return ok && s.err == nil
}

func (s *textScanner) expect(lit string) {
	if !s.accept(lit) {
		s.fail("want %q", lit)
	}
}

func (s *textScanner) field(e *Event, seen map[fieldID]bool) {
	name := s.word()
	spec := e.Kind.spec()
	id := fieldID(slices.IndexFunc(eventFields[:], func(f eventField) bool { return f.name == name }))
	if !slices.Contains(spec.required, id) && !slices.Contains(spec.optional, id) {
		s.fail("%s has no field %q", spec.name, name)
		return
	}
	if seen[id] {
		s.fail("field %q twice", name)
		return
	}
	seen[id] = true
	f := &eventFields[id]
	if f.typ != typeFlag {
		s.expect("=")
	}
	s.value(f.typ, f.at(e))
}

func (s *textScanner) value(typ fieldType, at any) {
	switch v := at.(type) {
	case *bool:
		*v = true
	case *int64:
		*v = s.signed(64)
	case *int32:
		*v = int32(s.signed(32))
	case *uint64:
		if typ == typeHash {
			*v = s.parse(s.word(), 16)
		} else {
			*v = s.number()
		}
	case *[6]uint64:
		s.numbers(v[:])
	case *[4]uint64:
		s.numbers(v[:])
	case *InstrKind:
		*v = InstrKind(s.name(instrNames[:]))
	case *SchedReason:
		*v = SchedReason(s.name(schedNames[:]))
	case *ThreadOp:
		*v = ThreadOp(s.name(threadNames[:]))
	case **Regs:
		*v = s.regs()
	case *[]byte:
		*v = s.hex()
	case *string:
		*v = s.quoted()
	case *[]MapOp:
		sequence(s, v, s.mapOp)
	case *[]MemWrite:
		sequence(s, v, s.memWrite)
	}
}

func (s *textScanner) signed(bits int) int64 {
	w := s.word()
	v, err := strconv.ParseInt(w, 10, bits)
	if err != nil {
		s.fail("%q is not a decimal number of %d bits", w, bits)
	}
	return v
}

func (s *textScanner) parse(w string, base int) uint64 {
	v, err := strconv.ParseUint(w, base, 64)
	if err != nil {
		s.fail("%q is not a number", w)
	}
	return v
}

// number takes a number written with 0x, or in decimal.
func (s *textScanner) number() uint64 {
	w := s.word()
	if digits, ok := strings.CutPrefix(w, "0x"); ok {
		return s.parse(digits, 16)
	}
	return s.parse(w, 10)
}

func (s *textScanner) numbers(v []uint64) {
	for i := range v {
		if i > 0 {
			s.expect(",")
		}
		v[i] = s.number()
	}
}

// name takes one of a list of names and returns its index.
func (s *textScanner) name(names []string) int {
	w := s.word()
	i := slices.Index(names, w)
	if w == "" || i < 0 {
		s.fail("unknown name %q", w)
		return 0
	}
	return i
}

func (s *textScanner) hex() []byte {
	w := s.word()
	b, err := hex.DecodeString(w)
	if err != nil {
		s.fail("%.20q is not hexadecimal", w)
	}
	return b
}

func (s *textScanner) quoted() string {
	q, err := strconv.QuotedPrefix(s.rest)
	if err != nil || s.err != nil {
		s.fail("want a quoted string")
		return ""
	}
	s.rest = s.rest[len(q):]
	v, err := strconv.Unquote(q)
	if err != nil {
		s.fail("bad quoted string")
	}
	return v
}

func (s *textScanner) regs() *Regs {
	r := new(Regs)
	fields := regFields(r)
	s.expect("{")
	for first := true; s.err == nil && !s.accept("}"); first = false {
		if !first {
			s.expect(",")
		}
		name := s.word()
		i := slices.IndexFunc(fields, func(f regField) bool { return f.name == name })
		if i < 0 {
			s.fail("unknown register %q", name)
			break
		}
		s.expect(":")
		v := s.number()
		if f := fields[i]; f.wide != nil {
			*f.wide = v
		} else if *f.seg = uint16(v); v > 0xffff {
			s.fail("selector %#x has more than 16 bits", v)
		}
	}
	return r
}

// sequence takes a bracketed list with semicolons.
func sequence[T any](s *textScanner, list *[]T, element func(*T)) {
	s.expect("[")
	for s.err == nil && !s.accept("]") {
		if len(*list) > 0 {
			s.expect(";")
		}
		var v T
		element(&v)
		*list = append(*list, v)
	}
}

// addrRange reads two addresses in hexadecimal, FROM-TO.
func (s *textScanner) addrRange(from, to *uint64) {
	w := s.word()
	a, b, ok := strings.Cut(w, "-")
	if !ok {
		s.fail("%q is not a range", w)
		return
	}
	*from, *to = s.parse(strings.TrimPrefix(a, "0x"), 16), s.parse(strings.TrimPrefix(b, "0x"), 16)
}

func (s *textScanner) bits(names string) uint8 {
	w := s.word()
	for b := range uint8(1 << len(names)) {
		if letters(b, names) == w {
			return b
		}
	}
	s.fail("%q is not made of %q", w, names)
	return 0
}

func (s *textScanner) mapOp(op *MapOp) {
	op.Kind = MapOpKind(s.name(mapOpNames[:]))
	s.expect(":")
	s.addrRange(&op.Start, &op.End)
	switch op.Kind {
	case MapOpUnmap, MapOpDrop: // The range says all.
	case MapOpMap:
		m := &op.Map
		m.Start, m.End = op.Start, op.End
		s.expect(":")
		m.Prot = s.bits(protLetters)
		s.expect(":")
		m.Flags = s.bits(flagLetters)
		s.expect(":")
		object := s.number()
		if m.Object = uint32(object); object > 1<<32-1 {
			s.fail("object %d has more than 32 bits", object)
		}
		s.expect(":")
		m.Offset = s.number()
		s.expect(":")
		m.Name = s.quoted()
	case MapOpMove:
		s.expect(":")
		s.addrRange(&op.New, &op.NewEnd)
	case MapOpProtect:
		s.expect(":")
		op.Prot = s.bits(protLetters)
	}
}

func (s *textScanner) memWrite(w *MemWrite) {
	w.Addr = s.number()
	s.expect(":")
	if b := s.quoted(); b != "" {
		w.Data = []byte(b)
	}
}
