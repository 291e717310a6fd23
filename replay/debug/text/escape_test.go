package text

import (
	"bytes"
	"testing"
)

// TestEscaped writes what terminals act on, whole and byte by byte.
func TestEscaped(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":    "plain\ttext\n",
		" ~z\x1f~":         " ~z\\x1f~",
		"Zürich 日本 😀\n":    "Zürich 日本 😀\n",
		"\x1b]0;title\a\n": "\\x1b]0;title\\x07\n",
		"a\x7f\rb\x00\n":   "a\\u007f\\x0db\\x00\n",
		"\u009b2J\n":       "\\u009b2J\n",
		"\x9b2J\xff\n":     "\\x9b2J\\xff\n",
		"a\u202eb\u2066\n": "a\\u202eb\\u2066\n",
		"\u2028\U000e0041": "\\u2028\\udb40\\udc41",
	} {
		if got := Escape(in); got != want {
			t.Errorf("%q is written as %q, want %q", in, got, want)
		}
		var out bytes.Buffer
		e := NewEscaper(&out)
		for i := range len(in) {
			if n, err := e.Write([]byte{in[i]}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if out.String() != want {
			t.Errorf("%q byte by byte is written as %q, want %q", in, out.String(), want)
		}
	}
}
