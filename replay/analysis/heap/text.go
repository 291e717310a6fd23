package heap

import (
	"cmp"
	"slices"

	"vplay/replay/observe"
	"vplay/replay/x86"
)

// The string functions of the C library read whole vectors, beyond the end of what they are asked about, where that
// cannot fault. What such an instruction reads says nothing, then. So their calls are followed, and
// when one of their loads is of a marked byte it is asked what the function has to read, by its arguments and what is in memory: up to the
// NUL, the character looked for, or the difference. That is compared with the marks.

// scanned are the functions that read beyond, and what each has to read.
var scanned = map[string]reading{
	"strlen": {unit: 1, until: untilNUL}, "strnlen": {unit: 1, until: untilNUL, limit: 1},
	"strchr": {unit: 1, until: untilChar}, "index": {unit: 1, until: untilChar}, "strchrnul": {unit: 1, until: untilChar},
	"strrchr": {unit: 1, until: untilNUL}, "rindex": {unit: 1, until: untilNUL},
	"memchr": {unit: 1, until: untilByte, limit: 2}, "rawmemchr": {unit: 1, until: untilByte},
	"memrchr": {unit: 1, until: untilNothing, limit: 2},
	"strcmp":  {unit: 1, until: untilDifference}, "strncmp": {unit: 1, until: untilDifference, limit: 2},
	"strcasecmp": {unit: 1, until: untilCaseDifference}, "strncasecmp": {unit: 1, until: untilCaseDifference, limit: 2},
	"strcasecmp_l": {unit: 1, until: untilCaseDifference}, "strncasecmp_l": {unit: 1, until: untilCaseDifference, limit: 2},
	"memcmp": {unit: 1, until: untilUnequal, limit: 2}, "bcmp": {unit: 1, until: untilUnequal, limit: 2}, "__memcmpeq": {unit: 1, until: untilUnequal, limit: 2},
	"strcpy": {unit: 1, until: untilNUL, source: true}, "stpcpy": {unit: 1, until: untilNUL, source: true},
	"strncpy": {unit: 1, until: untilNUL, source: true, limit: 2}, "stpncpy": {unit: 1, until: untilNUL, source: true, limit: 2},
	"strcat": {unit: 1, until: untilNUL, source: true, both: true}, "strncat": {unit: 1, until: untilNUL, source: true, both: true, limit: 2},
	"strcspn": {unit: 1, until: untilSet}, "strpbrk": {unit: 1, until: untilSet}, "strspn": {unit: 1, until: untilNotSet},
	"strstr": {unit: 1, until: untilString},
	"wcslen": {unit: 4, until: untilNUL}, "wcsnlen": {unit: 4, until: untilNUL, limit: 1},
	"wcschr": {unit: 4, until: untilChar}, "wcsrchr": {unit: 4, until: untilNUL},
	"wcscmp": {unit: 4, until: untilDifference}, "wcsncmp": {unit: 4, until: untilDifference, limit: 2},
	"wmemchr": {unit: 4, until: untilByte, limit: 2}, "wmemcmp": {unit: 4, until: untilUnequal, limit: 2},
	"wcscpy": {unit: 4, until: untilNUL, source: true},
}

// copying are the functions that read, with the vectors they like, nothing but what they are asked to.
var copying = []string{"memcpy", "memmove", "mempcpy", "memset", "bcopy", "__memcpy_chk", "__memmove_chk", "__mempcpy_chk", "wmemcpy", "wmemmove"}

// Text returns the names of the string functions whose calls a Tracker is to be told of (EnterText), and those
// whose code it is to know (AddText), the former among them.
func Text() (calls, code []string) {
	for name := range scanned {
		calls = append(calls, name)
	}
	return calls, append(slices.Clone(calls), copying...)
}

// until says where a function stops to read.
type until uint8

const (
	untilNUL            until = iota // in its first argument
	untilChar                        // argument 1, or NUL
	untilByte                        // argument 1
	untilNothing                     // it reads nothing that can be said
	untilDifference                  // where the strings differ, or end
	untilCaseDifference              // the same without regard to case
	untilUnequal                     // where the memory differs
	untilSet                         // one of the characters of argument 1
	untilNotSet                      // none of those
	untilString                      // behind the string of argument 1
)

// reading is what a function reads.
type reading struct {
	unit   uint64 // bytes of a character
	until  until
	limit  int  // the argument that says how many characters there are at most, 0 for none
	source bool // the string that is read is argument 1
	both   bool // and argument 0 up to its NUL, without limit
}

// textCall is the call of a string function that was entered last.
type textCall struct {
	of       *reading
	slot     uint64
	args     [6]uint64
	isJudged bool
	bad      span // what it reads, if that has marked bytes
}

// span is a range of addresses.
type span struct{ start, end uint64 }

// AddText says where the code of one of the string functions is.
func (t *Tracker) AddText(name string, low, high uint64) {
	if slices.Contains(copying, name) {
		t.copies.add(low, high)
	} else {
		t.scans.add(low, high)
	}
}

// EnterText is called at the first instruction of a string function.
func (t *Tracker) EnterText(v *observe.View, name string) {
	if r, ok := readings[name]; ok {
		c := v.CPU()
		x := &t.thread(v.TID()).text
		*x = textCall{of: r, slot: c.R[x86.RSP], args: v.Arguments()}
	}
}

// readings is scanned by pointers.
var readings = func() map[string]*reading {
	out := map[string]*reading{}
	for name, r := range scanned {
		out[name] = &r
	}
	return out
}()

// isOf reports whether the thread may be in the call: it has not gone back in the stack.
func (x *textCall) isOf(v *observe.View) bool { return x.of != nil && v.CPU().R[x86.RSP] <= x.slot }

// readsBad reports whether the call has to read marked bytes, and notes which, once for a call.
func (t *Tracker) readsBad(v *observe.View, x *textCall) bool {
	if x.isJudged {
		return false
	}
	x.isJudged = true
	for _, s := range x.of.reads(v, &x.args) {
		if _, ok := t.marks.Next(s.start, s.end); ok {
			x.bad = s
			return true
		}
	}
	return false
}

// maxText is how far a string is looked through, in characters.
const maxText = 1 << 24

// reads returns what the function reads, with these arguments.
func (r *reading) reads(v *observe.View, args *[6]uint64) []span {
	limit := uint64(maxText)
	if r.limit > 0 {
		limit = min(limit, args[r.limit])
	}
	a := &text{v: v, at: args[0], unit: r.unit}
	b := &text{v: v, at: args[1], unit: r.unit}
	switch {
	case r.until == untilNothing:
		return nil
	case r.both:
		return []span{a.until(maxText, isNUL), b.until(limit, isNUL)}
	case r.source:
		return []span{b.until(limit, isNUL)}
	}
	mask := uint64(1)<<(8*r.unit) - 1
	char := args[1] & mask
	switch r.until {
	case untilChar:
		return []span{a.until(limit, func(c uint64) bool { return c == 0 || c == char })}
	case untilByte:
		return []span{a.until(limit, func(c uint64) bool { return c == char })}
	case untilSet, untilNotSet:
		set, all := b.set()
		return []span{a.until(limit, func(c uint64) bool { return c == 0 || set[byte(c)] == (r.until == untilSet) }), all}
	case untilString:
		return []span{a.untilString(b)}
	case untilDifference, untilCaseDifference, untilUnequal:
		n := a.differs(b, limit, r.until)
		return []span{{args[0], args[0] + n*r.unit}, {args[1], args[1] + n*r.unit}}
	default:
		return []span{a.until(limit, isNUL)}
	}
}

func isNUL(c uint64) bool { return c == 0 }

// text reads characters from memory, in pieces.
type text struct {
	v    *observe.View
	at   uint64
	unit uint64
	buf  [256]byte
	base uint64 // of buf
	n    uint64 // in buf
}

// char returns character i; ok is false where there is no memory.
func (x *text) char(i uint64) (c uint64, ok bool) {
	a := x.at + i*x.unit
	if a-x.base+x.unit > x.n || a < x.base {
		x.base = a
		if x.n = uint64(x.v.ReadMemory(a, x.buf[:])); x.n < x.unit {
			return 0, false
		}
	}
	for j := range x.unit {
		c |= uint64(x.buf[a-x.base+j]) << (8 * j)
	}
	return c, true
}

// until returns the range up to the first character that ends it, that included, of limit characters at most.
func (x *text) until(limit uint64, ends func(c uint64) bool) span {
	n := uint64(0)
	for n < limit {
		c, ok := x.char(n)
		if !ok {
			break
		}
		if n++; ends(c) {
			break
		}
	}
	return span{x.at, x.at + n*x.unit}
}

// set returns the characters of a string, and where it is.
func (x *text) set() (set [256]bool, all span) {
	all = x.until(maxText, func(c uint64) bool { set[byte(c)] = true; return c == 0 })
	return set, all
}

// untilString returns the range up to the end of the first place that has the string y, or the whole string.
func (x *text) untilString(y *text) span {
	const most = 1 << 12 // so that the search is short; a longer way is not looked at
	for from := uint64(0); from < most; from++ {
		for i := uint64(0); i < most; i++ {
			want, ok := y.char(i)
			if ok && want == 0 {
				return span{x.at, x.at + from + i}
			}
			got, also := x.char(from + i)
			if !ok || !also || got == 0 && i == 0 {
				return span{x.at, x.at + from + i}
			}
			if got != want {
				break
			}
		}
	}
	return span{x.at, x.at}
}

// differs returns how many characters of two strings, or pieces of memory, are read to find where they differ.
func (x *text) differs(y *text, limit uint64, how until) (n uint64) {
	for n < limit {
		c, ok := x.char(n)
		d, also := y.char(n)
		if !ok || !also {
			break
		}
		if how == untilCaseDifference {
			c, d = lower(c), lower(d)
		}
		if n++; c != d || c == 0 && how != untilUnequal {
			break
		}
	}
	return n
}

// lower returns a letter of ASCII as a small one.
func lower(c uint64) uint64 {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// extents are ranges of code, sorted.
type extents struct{ list []span }

func (x *extents) add(low, high uint64) {
	i, _ := slices.BinarySearchFunc(x.list, low, func(s span, a uint64) int { return cmp.Compare(s.start, a) })
	if i < len(x.list) && x.list[i] == (span{low, high}) || low >= high {
		return
	}
	x.list = slices.Insert(x.list, i, span{low, high})
}

// has reports whether an address is in one of them.
func (x *extents) has(a uint64) bool {
	i, _ := slices.BinarySearchFunc(x.list, a, func(s span, a uint64) int {
		if s.start <= a {
			return -1
		}
		return 1
	})
	return i > 0 && a < x.list[i-1].end
}
