package debugcode

import (
	"strconv"
	"strings"
)

// The tokens of C that the preprocessor has been through: there are no comments, no macros, and
// line markers that say where each line comes from (GCC, "Preprocessor Output").

// kind is what a token is.
type kind uint8

const (
	isPunct kind = iota
	isName
	isOther // a number, a string, a character
)

// token is one of them, with where it stands.
type token struct {
	kind     kind
	text     string
	off, end int // in the text
	at       *place
	line     int
}

// place is what a line marker says.
type place struct {
	file   string
	system bool // a header of the C library or of the compiler
}

// scanner reads tokens.
type scanner struct {
	text string
	pos  int
	at   *place
	line int
	list []token
}

// scan reads all tokens of a text.
func scan(text string) []token {
	s := &scanner{text: text, at: &place{}, line: 1}
	atStart := true // of a line
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		switch {
		case c == '\n':
			s.line++
			s.pos++
			atStart = true
			continue
		case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
			s.pos++
			continue
		case c == '#' && atStart:
			s.directive()
			continue
		case isLetter(c):
			s.take(isName, s.while(func(c byte) bool { return isLetter(c) || isDigit(c) }))
		case isDigit(c) || c == '.' && s.pos+1 < len(s.text) && isDigit(s.text[s.pos+1]):
			s.take(isOther, s.number())
		case c == '"' || c == '\'':
			s.take(isOther, s.quoted(c))
		case c == '-' && strings.HasPrefix(s.text[s.pos:], "->"):
			s.take(isPunct, s.pos+2)
		default:
			s.take(isPunct, s.pos+1)
		}
		atStart = false
	}
	return s.list
}

// isLetter reports whether a name may begin so; letters beyond ASCII are in it, too.
func isLetter(c byte) bool {
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// take adds the token up to end.
func (s *scanner) take(k kind, end int) {
	s.list = append(s.list, token{k, s.text[s.pos:end], s.pos, end, s.at, s.line})
	s.line += strings.Count(s.text[s.pos:end], "\n")
	s.pos = end
}

// while returns where bytes that f holds of end.
func (s *scanner) while(f func(c byte) bool) int {
	end := s.pos
	for end < len(s.text) && f(s.text[end]) {
		end++
	}
	return end
}

// number returns where a number ends (C17, 6.4.8: a sign may stand behind an exponent's letter).
func (s *scanner) number() int {
	end := s.pos
	for end < len(s.text) {
		c := s.text[end]
		isSign := (c == '+' || c == '-') && strings.IndexByte("eEpP", s.text[end-1]) >= 0 && end > s.pos
		if !isLetter(c) && !isDigit(c) && c != '.' && !isSign {
			break
		}
		end++
	}
	return end
}

// quoted returns where a string or character ends: at the end of the line at the latest.
func (s *scanner) quoted(quote byte) int {
	for end := s.pos + 1; end < len(s.text); end++ {
		switch s.text[end] {
		case '\\':
			end++
		case quote:
			return end + 1
		case '\n':
			return end
		}
	}
	return len(s.text)
}

// directive reads a line that begins with #: a marker as # 12 "file" 1 3, or a pragma.
func (s *scanner) directive() {
	line, _, _ := strings.Cut(s.text[s.pos:], "\n")
	s.pos += len(line)
	fields := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(line, "#"), "line"))
	number, rest, _ := strings.Cut(fields, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return
	}
	open, shut := strings.IndexByte(rest, '"'), strings.LastIndexByte(rest, '"')
	if open < 0 || shut <= open {
		return
	}
	name, err := strconv.Unquote(rest[open : shut+1])
	if err != nil {
		name = rest[open+1 : shut]
	}
	s.at, s.line = &place{file: name}, n-1 // the marker's own line ends, too
	for _, flag := range strings.Fields(rest[shut+1:]) {
		if flag == "3" {
			s.at.system = true
		}
	}
}

// declared are the names that a text declares outside of functions, as far as one needs to know in order not
// to declare them again.
type declared struct {
	names, tags map[string]bool
}

// declarations finds them among tokens: names outside of braces and parentheses that an end of a declarator
// follows, enumerators, names of pointers to functions, and tags that are defined.
func declarations(list []token) declared {
	d := declared{map[string]bool{}, map[string]bool{}}
	braces, parens, enum := 0, 0, -1 // the depth of the enumeration's braces
	for i, t := range list {
		next := at(list, i+1)
		switch {
		case t.text == "{":
			if braces++; parens == 0 && (at(list, i-1) == "enum" || at(list, i-2) == "enum") {
				enum = braces
			}
		case t.text == "}":
			if braces == enum {
				enum = -1
			}
			braces--
		case t.text == "(":
			parens++
		case t.text == ")":
			parens--
		case t.kind != isName || keywords[t.text]:
		case next == "{" && isTagWord(at(list, i-1)):
			d.tags[t.text] = true
		case braces == enum && (next == "," || next == "=" || next == "}"):
			d.names[t.text] = true
		case braces != 0:
		case parens == 0 && strings.Contains(";,=([", next) && next != "" && !isTagWord(at(list, i-1)):
			d.names[t.text] = true
		case parens == 1 && at(list, i-1) == "*" && at(list, i-2) == "(" && next == ")":
			d.names[t.text] = true
		}
	}
	return d
}

// at returns the text of token i, "" where there is none.
func at(list []token, i int) string {
	if i < 0 || i >= len(list) {
		return ""
	}
	return list[i].text
}

func isTagWord(s string) bool { return s == "struct" || s == "union" || s == "enum" }
