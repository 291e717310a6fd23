package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"vplay/replay/debug/text"
)

// How texts of a recording become texts of the page: as escapes where they are no plain text,
// shortened, and with a bound on all of them together.

// Bounds of texts, in bytes.
const (
	maxText  = 300       // of one, unless told
	maxShort = 24        // of one, when all of them together have become too many
	maxTexts = 384 << 10 // of all together
)

// clipper makes texts fit for the page.
type clipper struct{ used int }

// text returns s fit for one line.
func (c *clipper) text(s string) string { return c.most(s, maxText) }

// most is text with a bound of n bytes.
func (c *clipper) most(s string, n int) string {
	if c.used > maxTexts {
		n = min(n, maxShort)
	}
	all := len(s)
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) && len(s)-n < 4*maxText {
			n--
		}
		s = s[:n]
	}
	s = text.Escape(s)
	s = strings.NewReplacer("\n", `\n`, "\t", " ").Replace(s)
	if len(s) < all && n < all {
		s += fmt.Sprintf(" ... (%d bytes in all)", all)
	}
	c.used += len(s)
	return s
}

// code returns a line of source text: tabs stay columns.
func (c *clipper) code(s string) string {
	return c.text(strings.ReplaceAll(strings.TrimRight(s, "\r\n\t "), "\t", "    "))
}
