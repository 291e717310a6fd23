package debug

import (
	"fmt"
	"strings"

	"vplay/replay/debug/text"
)

// A slice as text: a tree in which what a value was made of stands below it. As long as
// there is only one such thing the tree does not become deeper, so that a chain is a list; where
// there are several, each begins with a dash. Behind it come such trees of the addresses.

// maxIndent bounds how deep the tree is shown, in steps.
const maxIndent = 12

// String writes the tree, and what it leaves out.
func (s *Slice) String() string {
	w := treeWriter{s: s, done: make([]bool, len(s.Rows))}
	if len(s.Rows) > 0 {
		w.write(0, 0, false)
	}
	for i := range s.Rows {
		w.addresses(i)
	}
	fmt.Fprintf(&w.b, "%s of %s executed, back to %s", text.Plural(int(s.Values), "instruction"), text.Count(s.Executed), s.From)
	if n := s.Instructions - s.Values; n > 0 {
		fmt.Fprintf(&w.b, ", and %s for addresses", text.Count(n))
	}
	if s.IsExplained {
		w.b.WriteString("; nothing older is needed")
	}
	if s.Left > 0 {
		fmt.Fprintf(&w.b, "\n%s more; -n says how many are shown", text.Plural(s.Left, "row"))
	}
	return w.b.String()
}

// treeWriter writes a tree.
type treeWriter struct {
	s    *Slice
	b    strings.Builder
	done []bool
}

// addresses writes what the addresses of row n were made of, as far as that is not shown yet.
func (w *treeWriter) addresses(n int) {
	next, seen := w.split(w.s.Rows[n].Addresses)
	if len(next) == 0 {
		return
	}
	fmt.Fprintf(&w.b, "where #%d loaded from or stored to:\n", n)
	w.below(1, next, seen)
}

// split tells the rows of a list that are not shown yet from those that are.
func (w *treeWriter) split(list []int) (next, seen []int) {
	for _, k := range list {
		if w.done[k] {
			seen = append(seen, k)
		} else {
			next = append(next, k)
		}
	}
	return next, seen
}

// below writes rows side by side at a depth, behind the numbers of those that are shown.
func (w *treeWriter) below(depth int, next, seen []int) {
	for _, k := range seen {
		fmt.Fprintf(&w.b, "%s  and #%d\n", indent(depth), k)
	}
	for _, k := range next {
		w.write(k, depth, len(next) > 1)
	}
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
		next, seen := w.split(w.s.Rows[n].Needs)
		if n == 0 || len(next) > 1 {
			depth++
		}
		if len(next) != 1 {
			w.below(depth, next, seen)
			return
		}
		w.below(depth, nil, seen)
		n, isBranch = next[0], false // a chain is no recursion
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
		for _, n := range r.Addresses {
			fmt.Fprintf(&b, "\tn%d -> n%d [style=dashed];\n", r.Number, n)
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
