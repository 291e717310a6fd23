package debugcode

import (
	"fmt"
	"strconv"
	"strings"
)

// The regions of debug code, and how each becomes a function. The text is what the preprocessor has made of the
// file; lines stay where they are, so that what compilers and debuggers say of them is right.

// Error is a mistake in debug code, with its place.
type Error struct {
	At   string // FILE:LINE, "" when it is not known
	What string
}

func (e *Error) Error() string {
	if e.At == "" {
		return e.What
	}
	return e.At + ": " + e.What
}

// regionKind is what a region is called for.
type regionKind uint8

const (
	atLine regionKind = iota
	onCall
	onSyscall
	onAccess
	atEnd
)

// regionWords are the words that regions begin with.
var regionWords = map[string]regionKind{"VPLAY_AT": atLine, "VPLAY_ON_CALL": onCall, "VPLAY_ON_SYSCALL": onSyscall, "VPLAY_ON_ACCESS": onAccess, "VPLAY_AT_END": atEnd}

// region is a region of the file.
type region struct {
	number int
	kind   regionKind
	word   string
	arg    string // between the parentheses
	file   string // atLine
	line   int
	at     string // FILE:LINE of it
	begin  int    // token of the word
	block  int    // of {
	end    int    // of the } that ends it

	locals map[string]*symbol // of the program at its place, by name: what the region uses
	order  []string           // their names
}

// function is the name of the region's function.
func (r *region) function() string { return "vplay_region_" + strconv.Itoa(r.number) }

// position is FILE:LINE of a token.
func (t *token) position() string { return fmt.Sprintf("%s:%d", t.at.file, t.line) }

// regions finds the regions of a file.
func regions(text string, list []token) (out []*region, err error) {
	braces := 0
	for i := 0; i < len(list); i++ {
		t := &list[i]
		switch t.text {
		case "{":
			braces++
		case "}":
			braces--
		}
		k, ok := regionWords[t.text]
		if !ok || t.kind != isName {
			continue
		}
		r := &region{number: len(out) + 1, kind: k, word: t.text, at: t.position(), begin: i, locals: map[string]*symbol{}}
		if braces != 0 {
			return nil, &Error{r.at, r.word + " stands in a function; regions stand outside of functions"}
		}
		if err := r.bounds(text, list); err != nil {
			return nil, err
		}
		if err := r.argument(); err != nil {
			return nil, err
		}
		out = append(out, r)
		i = r.end
	}
	return out, nil
}

// bounds finds the argument and the block.
func (r *region) bounds(text string, list []token) error {
	i := r.begin + 1
	shut := r.begin
	if r.kind != atEnd {
		if shut = matching(list, i, "(", ")"); shut < 0 {
			return &Error{r.at, r.word + ": ( is missing, or the ) that ends it"}
		}
		r.arg = strings.TrimSpace(text[list[i].end:list[shut].off])
	}
	if r.block = shut + 1; at(list, r.block) != "{" {
		return &Error{r.at, r.word + "(" + r.arg + ") needs a block: { ... }"}
	}
	if r.end = matching(list, r.block, "{", "}"); r.end < 0 {
		return &Error{list[r.block].position(), "the block of " + r.word + "(" + r.arg + ") is not ended: a } is missing"}
	}
	return nil
}

// matching returns the token that ends what token i opens, -1 where there is none.
func matching(list []token, i int, open, shut string) int {
	if at(list, i) != open {
		return -1
	}
	depth := 0
	for ; i < len(list); i++ {
		switch list[i].text {
		case open:
			depth++
		case shut:
			if depth--; depth == 0 {
				return i
			}
		}
		if open == "{" && list[i].kind == isName {
			if _, isNext := regionWords[list[i].text]; isNext {
				return -1 // the next region: else all of the rest would be this one
			}
		}
	}
	return -1
}

// argument reads what stands in the parentheses.
func (r *region) argument() error {
	if r.kind == atEnd {
		return nil
	}
	if r.arg == "" {
		return &Error{r.at, r.word + " needs to know where: " + map[regionKind]string{
			atLine: "VPLAY_AT(FILE, LINE)", onCall: "VPLAY_ON_CALL(FUNCTION)", onSyscall: "VPLAY_ON_SYSCALL(NAME)", onAccess: "VPLAY_ON_ACCESS(VARIABLE)",
		}[r.kind]}
	}
	if r.kind != atLine {
		return nil
	}
	i := strings.LastIndexByte(r.arg, ',')
	if i >= 0 {
		r.file = strings.Trim(strings.TrimSpace(r.arg[:i]), `"`)
		r.line, _ = strconv.Atoi(strings.TrimSpace(r.arg[i+1:]))
	}
	if r.file == "" || r.line <= 0 {
		return &Error{r.at, "a place is named VPLAY_AT(FILE, LINE), not VPLAY_AT(" + r.arg + ")"}
	}
	return nil
}

// isLoose reports for each token of a block whether it may mean a variable: a name that is no member, tag or
// member's declaration.
func isLoose(list []token, from, to int) map[int]bool {
	out := map[int]bool{}
	for i := from; i < to; i++ {
		t := &list[i]
		before := at(list, i-1)
		switch {
		case isTagWord(t.text) && t.text != "enum":
			if open := i + 1; at(list, open) == "{" || at(list, open+1) == "{" {
				if at(list, open) != "{" {
					open++
				}
				if shut := matching(list, open, "{", "}"); shut > 0 {
					i = shut
				}
			}
		case t.text == "__builtin_offsetof" || t.text == "offsetof":
			if shut := matching(list, i+1, "(", ")"); shut > 0 {
				i = shut // a type, and members
			}
		case t.kind == isName && before != "." && before != "->" && !isTagWord(before):
			out[i] = true
		}
	}
	return out
}

// rewrite returns the text with each region as a function. Names of the program's variables at a
// region's place become the names of their symbols, wherever they do not mean members: what the region
// declares itself by such a name is renamed with them, and so stays what it means.
func rewrite(text string, list []token, rs []*region, declare func(r *region) string) string {
	var b strings.Builder
	last := 0
	for _, r := range rs {
		begin, open := list[r.begin].off, list[r.block].off
		b.WriteString(text[last:begin])
		b.WriteString(declare(r) + " void " + r.function() + "(struct vplay_moment *vplay)")
		b.WriteString(strings.Repeat("\n", list[r.block].line-list[r.begin].line))
		last = open
		loose := isLoose(list, r.block, r.end)
		for i := r.block; i <= r.end; i++ {
			if s := r.locals[list[i].text]; s != nil && loose[i] {
				b.WriteString(text[last:list[i].off] + s.name)
				last = list[i].end
			}
		}
	}
	b.WriteString(text[last:])
	return b.String()
}
