package dwarf

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Characters and strings, written as gdb writes them: escapes, prefixes of wide ones,
// long runs by their length. All other kinds of values are in format.go.

// text writes characters in quotes; more says that there are others behind them.
func (p *printer) text(b []byte, more bool) {
	p.left -= len(b)
	p.write(quoted("", characters(b)))
	if more {
		p.write("...")
	}
}

// characters returns bytes as C writes them between double quotes, one by one, and
// UTF-8 where it can be printed as it is.
func characters(b []byte) (out []string) {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if n > 1 && unicode.IsPrint(r) {
			out = append(out, string(b[:n]))
		} else {
			out, n = append(out, charText(b[0], '"')), 1
		}
		b = b[n:]
	}
	return out
}

// wideCharacters is the same for characters of size bytes each.
func wideCharacters(b []byte, size int) (out []string) {
	for ; len(b) >= size; b = b[size:] {
		c := rune(0)
		for i := range size {
			c |= rune(b[i]) << (8 * i)
		}
		switch {
		case c >= 0 && c < 0x7f:
			out = append(out, charText(byte(c), '"'))
		case unicode.IsPrint(c):
			out = append(out, string(c))
		default:
			out = append(out, fmt.Sprintf("\\x%x", uint32(c)))
		}
	}
	return out
}

// maxRun is how many equal characters are written one by one.
const maxRun = 10

// quoted puts characters in quotes, long runs of one by their length.
func quoted(prefix string, chars []string) string {
	var parts []string
	var open strings.Builder
	end := func() {
		if open.Len() > 0 || len(chars) == 0 {
			parts = append(parts, prefix+`"`+open.String()+`"`)
			open.Reset()
		}
	}
	for i := 0; i < len(chars); {
		n := 1
		for i+n < len(chars) && chars[i+n] == chars[i] {
			n++
		}
		if n > maxRun {
			end()
			parts = append(parts, fmt.Sprintf("%s'%s' <repeats %d times>", prefix, chars[i], n))
		} else {
			open.WriteString(strings.Repeat(chars[i], n))
		}
		i += n
	}
	end()
	return strings.Join(parts, ", ")
}

// unitPrefix returns what C writes before the quotes of a string of the given type of
// character; ok is false for other types.
func unitPrefix(e *Type) (prefix string, ok bool) {
	switch {
	case e == nil || e.Kind != KindBase:
		return "", false
	case e.name == "wchar_t":
		return "L", e.size == 4 || e.size == 2
	case e.enc == encUTF:
		prefix, ok = map[int64]string{1: "u8", 2: "u", 4: "U"}[e.size]
		return prefix, ok
	}
	return "", e.isChar()
}

// units writes a string of n characters of type e in memory, where v is.
func (p *printer) units(v Value, e *Type, n uint64) {
	prefix, ok := unitPrefix(e)
	if !ok {
		p.fail(errSize)
		return
	}
	shown := int64(min(n, maxElements))
	b, err := v.whole(shown * e.size)
	if err != nil {
		p.fail(err)
		return
	}
	if e.size == 1 {
		p.write(quoted(prefix, characters(b)))
	} else {
		p.write(quoted(prefix, wideCharacters(b, int(e.size))))
	}
	if uint64(shown) < n {
		p.write("...")
	}
}
