package debug

import (
	"fmt"
	"strings"

	"vplay/replay/debug/text"
)

// A slice as text: a tree in which what a value was made of stands below it. As long as
// there is only one such thing the tree does not become deeper, so that a chain is a list; where
// there are several, each begins with a dash.

// maxIndent bounds how deep the tree is shown, in steps.
const maxIndent = 12

// String writes the tree, and what it leaves out.
func (s *Slice) String() string {
	w := treeWriter{s: s, done: make([]bool, len(s.Rows))}
	if len(s.Rows) > 0 {
		w.write(0, 0, false)
	}
	fmt.Fprintf(&w.b, "%s of %s executed, back to %s", text.Plural(int(s.Instructions), "instruction"), text.Count(s.Executed), s.From)
	if s.IsExplained {
		w.b.WriteString("; nothing older is needed")
	}
	if s.Left > 0 {
		fmt.Fprintf(&w.b, "\n%s more", text.Plural(s.Left, "row"))
		if s.hasAddresses {
			w.b.WriteString("; --values leaves out what only decided where something was loaded or stored")
		}
	}
	return w.b.String()
}

// treeWriter writes a tree.
type treeWriter struct {
	s    *Slice
	b    strings.Builder
	done []bool
}

// write writes row n and what it needs. isBranch says that it is one of several that a row needs.
func (w *treeWriter) write(n, depth int, isBranch bool) {
	for !w.done[n] {
		w.done[n] = true
		if isBranch {
			fmt.Fprintf(&w.b, "%s- %s\n", indent(depth-1), &w.s.Rows[n])
		} else {
			fmt.Fprintf(&w.b, "%s%s\n", indent(depth), &w.s.Rows[n])
		}
		var next, seen []int
		for _, k := range w.s.Rows[n].Needs {
			if w.done[k] {
				seen = append(seen, k)
			} else {
				next = append(next, k)
			}
		}
		if n == 0 || len(next) > 1 {
			depth++
		}
		for _, k := range seen {
			fmt.Fprintf(&w.b, "%s  and #%d\n", indent(depth), k)
		}
		if len(next) == 0 {
			return
		}
		isBranch = len(next) > 1
		for _, k := range next[:len(next)-1] {
			w.write(k, depth, true)
		}
		n = next[len(next)-1] // a chain is no recursion
	}
}

func indent(depth int) string { return strings.Repeat("  ", min(depth, maxIndent)) }

// String writes a row, beginning with its number.
func (r *SliceRow) String() string {
	if r.Kind == "value" {
		return fmt.Sprintf("%s  at %s", text.Printable(r.Source), r.Position)
	}
	s := fmt.Sprintf("#%d  %s  ", r.Number, r.Position)
	if r.Kind == "code" {
		s += placeText(*r.At) + "  " + r.Instruction
		if r.Result != "" {
			s += "  " + r.Result
		}
	} else {
		s += text.Printable(r.Source)
	}
	if r.Count > 1 {
		s += fmt.Sprintf("  (x %s)", text.Count(r.Count))
	}
	return s
}

// Dot writes the slice for Graphviz.
func (s *Slice) Dot() string {
	var b strings.Builder
	b.WriteString("digraph slice {\n\tnode [shape=box, fontname=\"monospace\"];\n")
	for i := range s.Rows {
		r := &s.Rows[i]
		label := r.Source
		if r.Kind == "code" {
			label = r.At.String()
			if src := r.At.Source(); src != "" {
				label += "\n" + src
			}
			label += "\n" + r.Instruction
			if r.Result != "" {
				label += "\n" + r.Result
			}
		}
		label += "\n" + r.Position.String()
		if r.Count > 1 {
			label += " x " + text.Count(r.Count)
		}
		fmt.Fprintf(&b, "\tn%d [label=%s];\n", r.Number, dotString(label))
		for _, n := range r.Needs {
			fmt.Fprintf(&b, "\tn%d -> n%d;\n", r.Number, n)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// dotString quotes a label. What a recording named is printable in it.
func dotString(s string) string {
	var lines []string
	for l := range strings.SplitSeq(s, "\n") {
		l = strings.ReplaceAll(text.Printable(l), `\`, `\\`)
		lines = append(lines, strings.ReplaceAll(l, `"`, `\"`))
	}
	return `"` + strings.Join(lines, `\l`) + `\l"`
}
