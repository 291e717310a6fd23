package dwarf

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// How an expression is cut into words: numbers, names, characters, operators. Nothing here
// knows a type or a variable; what the words mean is in eval.go and the files beside it.

// token is a word, number, character or operator.
type token struct {
	kind byte // 'n' name, '0' number, 'c' character, 's' string, 'o' operator
	text string
	char byte
}

// operators are those of more than one character, the longest first.
var operators = []string{"<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "->"}

func tokens(s string) (out []token, err error) {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case isLetter(c):
			j := i + 1
			for j < len(s) && (isLetter(s[j]) || isDigit(s[j]) || strings.HasPrefix(s[j:], "::") || s[j] == ':' && s[j-1] == ':') {
				j++
			}
			out, i = append(out, token{kind: 'n', text: s[i:j]}), j
		case isDigit(c) || c == '.' && i+1 < len(s) && isDigit(s[i+1]):
			j := i + 1
			for j < len(s) && (isLetter(s[j]) || isDigit(s[j]) || s[j] == '.' || (s[j] == '+' || s[j] == '-') && isExponent(s[i:j])) {
				j++
			}
			out, i = append(out, token{kind: '0', text: s[i:j]}), j
		case c == '\'':
			r, _, rest, err := strconv.UnquoteChar(s[i+1:], '\'')
			if err != nil || !strings.HasPrefix(rest, "'") || r > 255 {
				return nil, errors.New("a character constant is not understood")
			}
			out, i = append(out, token{kind: 'c', text: s[i : len(s)-len(rest)+1], char: byte(r)}), len(s)-len(rest)+1
		case c == '"': // a key of a map
			text, err := strconv.QuotedPrefix(s[i:])
			if err != nil {
				return nil, errors.New("a string constant is not understood")
			}
			out, i = append(out, token{kind: 's', text: text}), i+len(text)
		default:
			op := s[i : i+1]
			for _, o := range operators {
				if strings.HasPrefix(s[i:], o) {
					op = o
				}
			}
			if !strings.Contains("<<>><=>===!=&&||->+-*/%&|^~!()[].?:<>,", op) { //nolint:gocritic // all operators are the text
				return nil, fmt.Errorf("%q is not understood", op)
			}
			out, i = append(out, token{kind: 'o', text: op}), i+len(op)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("there is no expression")
	}
	return out, nil
}

func isLetter(c byte) bool {
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isExponent reports whether a decimal number's exponent has just begun.
func isExponent(s string) bool {
	last := s[len(s)-1]
	return (last == 'e' || last == 'E') && !strings.HasPrefix(s, "0x") && !strings.HasPrefix(s, "0X")
}
