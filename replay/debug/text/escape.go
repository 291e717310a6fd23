package text

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Names in a recording, and names of files, are whatever somebody chose: written to
// a terminal as they are, they could move its cursor, change its title, or answer for
// the user. So all that is printed goes through Escape, on a terminal or not:
// what is not text is shown as an escape. Where text is JSON, which has no control
// characters but DEL and C1 and no bytes that are not UTF-8, it stays JSON.

// Escape returns s with each byte that is not UTF-8, each control character but
// line ends and tabs, DEL, C1, and each character that changes the direction of text
// as an escape.
func Escape(s string) string {
	if !strings.ContainsFunc(s[plain(s):], isUnsafe) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case !isUnsafe(r):
			b.WriteString(s[i : i+n])
		case r == utf8.RuneError && n == 1, r < ' ':
			fmt.Fprintf(&b, "\\x%02x", s[i])
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, "\\u%04x\\u%04x", hi, lo)
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
		i += n
	}
	return b.String()
}

// plain returns how many bytes at the start of s are ASCII that is shown as it is. Nearly all that
// is printed is, and a recording may print as hundreds of megabytes.
func plain[T string | []byte](s T) int {
	for i := range len(s) {
		if c := s[i]; c-' ' >= '\x7f'-' ' && c != '\n' && c != '\t' {
			return i
		}
	}
	return len(s)
}

// isUnsafe reports whether a terminal may do something else than show r. U+FFFD is
// what stands for bytes that are not UTF-8.
func isUnsafe(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r == utf8.RuneError:
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}

// Escaper writes text through Escape. A character may be cut at the end of a
// write: its bytes wait for the next one, and are lost to nobody, as all that is
// printed ends in a line end.
type Escaper struct {
	W    io.Writer
	rest []byte
}

// NewEscaper returns a writer that escapes what goes to w.
func NewEscaper(w io.Writer) *Escaper { return &Escaper{W: w} }

// Write implements io.Writer.
func (e *Escaper) Write(p []byte) (int, error) {
	if len(e.rest) == 0 && plain(p) == len(p) {
		if _, err := e.W.Write(p); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	b := append(e.rest, p...)
	cut := len(b)
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				cut = len(b) - n
			}
			break
		}
	}
	e.rest = append([]byte(nil), b[cut:]...)
	if _, err := io.WriteString(e.W, Escape(string(b[:cut]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// EscapedError returns an error with the text of err, escaped.
func EscapedError(err error) error { return escapedError{err} }

// escapedError is an error whose text goes to a terminal by way of a debugger.
type escapedError struct{ error }

// Error returns the text of the error, escaped.
func (e escapedError) Error() string { return Escape(e.error.Error()) }
func (e escapedError) Unwrap() error { return e.error }
