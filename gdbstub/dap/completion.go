package dap

import (
	"slices"
	"strings"

	godap "github.com/google/go-dap"

	"vplay/replay/debug/api"
)

// The request completions: what may follow in a line of the console. Names come from the
// selected frame, members from the value before the point, commands from the target.

// completionsBody is the answer.
type completionsBody struct {
	Targets []completionItem `json:"targets"`
}

// completionItem is a proposal that takes the place of length characters of the text from
// start on. The library's type leaves out a start of 0.
type completionItem struct {
	Label  string `json:"label"`
	Type   string `json:"type"`
	Start  *int   `json:"start,omitempty"` // as the client counts columns
	Length int    `json:"length"`
}

// proposal makes an item that takes the place of what stands before a column. VS Code is told
// no start: it counts that from 0, whatever it says of its columns, and finds no proposal
// then; without one it replaces what stands before the cursor, too.
func (s *session) proposal(label, kind string, column, length int) completionItem {
	item := completionItem{Label: label, Type: kind, Length: length}
	if s.clientID != "vscode" {
		start := column - length
		item.Start = &start
	}
	return item
}

// maxCompletions bounds the proposals of one answer.
const maxCompletions = 500

func completions(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.CompletionsArguments](raw)
	if err != nil {
		return nil, err
	}
	body := completionsBody{Targets: []completionItem{}}
	line, ok := upTo(a.Text, a.Line-s.lineBase, a.Column-s.columnBase)
	if !ok {
		return body, nil
	}
	start := len(line)
	for start > 0 && isWord(line[start-1]) {
		start--
	}
	word, before := line[start:], line[:start]
	add := func(label, kind string) {
		if strings.HasPrefix(label, word) && label != word && len(body.Targets) < maxCompletions {
			body.Targets = append(body.Targets, s.proposal(label, kind, a.Column, len(word)))
		}
	}
	s.addCommands(a, line, &body)
	if len(body.Targets) > 0 && strings.Contains(line, "-") {
		return body, nil
	}
	f, err := s.frame(a.FrameId)
	if err != nil {
		return body, nil //nolint:nilerr // nothing is known of it
	}
	if of, ok := memberOf(before); ok {
		if v, err := s.symbols.Eval(f, of); err == nil && v.Children != nil && v.Named > 0 {
			for _, m := range v.Children(0, min(v.Named, maxCompletions)) {
				s.addMember(&m, add)
			}
		}
		return body, nil
	}
	for _, sc := range s.symbols.Scopes(f) {
		for _, v := range s.names(f, &sc) {
			if v.Expr != "" && v.Expr[0] != '(' && (v.Expr[0] != '$' || strings.HasPrefix(word, "$")) {
				add(v.Expr, "variable")
			}
		}
	}
	slices.SortStableFunc(body.Targets, func(a, b completionItem) int { return strings.Compare(a.Label, b.Label) })
	body.Targets = slices.CompactFunc(body.Targets, func(a, b completionItem) bool { return a.Label == b.Label })
	return body, nil
}

// addCommands proposes the commands that begin like a line.
func (s *session) addCommands(a godap.CompletionsArguments, line string, body *completionsBody) {
	names := []string{"help"}
	for i := range s.srv.opt.Commands {
		names = append(names, s.srv.opt.Commands[i].name())
	}
	for _, name := range names {
		if strings.HasPrefix(name, line) && name != line {
			body.Targets = append(body.Targets, s.proposal(name, "keyword", a.Column, len(line)))
		}
	}
}

// addMember proposes a member; of a base class, or one without a name, its members.
func (s *session) addMember(m *api.Value, add func(label, kind string)) {
	if strings.HasPrefix(m.Name, "(") || strings.ContainsAny(m.Name, "<: ") {
		if m.Children != nil && m.Named > 0 {
			for _, in := range m.Children(0, min(m.Named, maxCompletions)) {
				add(in.Name, "field")
			}
		}
		return
	}
	add(m.Name, "field")
}

// names are the variables of a scope, which are read once for a position.
func (s *session) names(f *api.Frame, sc *api.Scope) []api.Value {
	key := nameKey{f.PC, f.CFA, f.Function, sc.Name}
	if list, ok := s.named[key]; ok {
		return list
	}
	list := sc.Variables()
	s.named[key] = list
	return list
}

// nameKey tells the scopes of one position apart.
type nameKey struct {
	pc, cfa         uint64
	function, scope string
}

// upTo returns what stands before a column of a line of a text; both are counted from 0, the
// column in UTF-16 units, which for what is completed are bytes.
func upTo(text string, line, column int) (string, bool) {
	lines := strings.Split(text, "\n")
	if line = max(line, 0); line >= len(lines) || column < 0 || column > len(lines[line]) {
		return "", false
	}
	return lines[line][:column], true
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// memberOf returns the expression whose member is completed: what stands before "." or "->",
// as far back as it belongs together.
func memberOf(before string) (expr string, ok bool) {
	rest, ok := strings.CutSuffix(before, ".")
	if !ok {
		if rest, ok = strings.CutSuffix(before, "->"); !ok {
			return "", false
		}
	}
	depth, i := 0, len(rest)
	for ; i > 0; i-- {
		c := rest[i-1]
		switch {
		case c == ')' || c == ']':
			depth++
		case depth > 0 && (c == '(' || c == '['):
			depth--
		case depth > 0 || isWord(c) || c == '.' || c == ':':
		case c == '>' && i > 1 && rest[i-2] == '-':
			i--
		default:
			return rest[i:], rest[i:] != ""
		}
	}
	return rest, rest != ""
}
