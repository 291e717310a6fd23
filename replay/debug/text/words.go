package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Small helpers for sentences: a name made printable on one line, a number in
// groups, or with its noun. Output that is written piece by piece is escaped in escape.go.

// Printable replaces what would move a terminal's cursor: names in a recording
// are whatever the recorded program chose.
func Printable(s string) string {
	return strings.TrimRight(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s), " ")
}

// Count writes a large number in groups of three digits.
func Count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural writes n and a noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
