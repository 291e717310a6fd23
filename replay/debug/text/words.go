package text

import (
	"fmt"
	"strings"
	"unicode"
)

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

// Plural writes n and a noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
