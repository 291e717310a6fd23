package debug

import (
	"fmt"
	"strings"

	"vplay/replay/debug/text"
)

// A slice as text: a tree in which what a value was made of stands below it. As long as
// there is only one such thing the tree does not become deeper, so that a chain is a list; where
// there are several, each begins with a dash. Behind it come such trees of the addresses, and of the branches that led to a row.

// maxIndent bounds how deep the tree is shown, in steps.
const maxIndent = 12

// TreeRow is a row of a slice in the tree.
type TreeRow struct {
	Row      int   // index in Slice.Rows
	Depth    int   // how many branchings are above it
	IsBranch bool  // it begins one of several branches below a row; else it goes on from the row before
	Also     []int // what it needs besides and was shown before
	Below    int   // the depth of what follows

	// Section says that the tree goes on from here with something of row Of that is not its value. Known are those rows
	// of it that were shown before.
	Section Section
	Of      int
	Known   []int
}

// Section is what a part of the tree is about.
type Section uint8

// The sections.
const (
	NoSection      Section = iota // this row belongs to what stands above it
	AddressSection                // where row Of loaded from or stored to
	ControlSection                // why row Of was executed
)

// heading is the line above a section.
func (t *TreeRow) heading() string {
	switch {
	case t.Section == AddressSection && t.Of == 0:
		return "where that was loaded from:\n"
	case t.Section == AddressSection:
		return fmt.Sprintf("where #%d loaded from or stored to:\n", t.Of)
	case t.Section == ControlSection && t.Of == 0:
		return "why the program came here:\n"
	case t.Section == ControlSection:
		return fmt.Sprintf("why #%d was executed:\n", t.Of)
	}
	return ""
}

// Tree returns the rows in the order in which the tree shows them: depth first, each once.
func (s *Slice) Tree() []TreeRow {
	w := treeWalk{s: s, done: make([]bool, len(s.Rows))}
	if len(s.Rows) > 0 {
		w.walk(0, 0, false)
	}
	for i := range s.Rows {
		w.section(AddressSection, i, s.Rows[i].Addresses)
		w.section(ControlSection, i, s.Rows[i].Controls)
	}
	return w.out
}

// String writes the tree, and what it leaves out.
func (s *Slice) String() string {
	var b strings.Builder
	for _, t := range s.Tree() {
		if t.Section != NoSection {
			b.WriteString(t.heading())
			shownBefore(&b, t.Depth, t.Known)
		}
		if t.IsBranch {
			fmt.Fprintf(&b, "%s- %s\n", indent(t.Depth-1), &s.Rows[t.Row])
		} else {
			fmt.Fprintf(&b, "%s%s\n", indent(t.Depth), &s.Rows[t.Row])
		}
		shownBefore(&b, t.Below, t.Also)
	}
	return b.String() + s.Extent()
}

// shownBefore names rows that were shown before.
func shownBefore(b *strings.Builder, depth int, rows []int) {
	for _, k := range rows {
		fmt.Fprintf(b, "%s  and #%d\n", indent(depth), k)
	}
}

// Extent says how much of the execution is in the slice, and how many rows are not shown.
func (s *Slice) Extent() string {
	out := fmt.Sprintf("%s of %s executed, back to %s", text.Plural(int(s.Values), "instruction"), text.Count(s.Executed), s.From)
	if n := s.Instructions - s.Values - s.Controls; n > 0 {
		out += fmt.Sprintf(", and %s for addresses", text.Count(n))
	}
	if s.Controls > 0 {
		out += fmt.Sprintf(", and %s for decisions", text.Count(s.Controls))
	}
	if s.IsExplained {
		out += "; nothing older is needed"
	}
	if s.Left > 0 {
		out += fmt.Sprintf("\n%s more; -n says how many are shown", text.Plural(s.Left, "row"))
	}
	if s.Missing != "" {
		out += fmt.Sprintf("\nnames are missing: %s (--limit allows more)", s.Missing)
	}
	return out
}

// treeWalk makes the tree.
type treeWalk struct {
	s    *Slice
	out  []TreeRow
	done []bool
}

// split tells the rows of a list that are not shown yet from those that are.
func (w *treeWalk) split(list []int) (next, seen []int) {
	for _, k := range list {
		if w.done[k] {
			seen = append(seen, k)
		} else {
			next = append(next, k)
		}
	}
	return next, seen
}

// section adds what row n needs otherwise than for its value, as far as that is not shown yet.
func (w *treeWalk) section(kind Section, n int, list []int) {
	next, seen := w.split(list)
	if len(next) == 0 {
		return
	}
	first := len(w.out)
	w.below(1, next)
	w.out[first].Section, w.out[first].Of, w.out[first].Known = kind, n, seen
}

// below adds rows side by side.
func (w *treeWalk) below(depth int, rows []int) {
	for _, k := range rows {
		w.walk(k, depth, len(rows) > 1)
	}
}

// walk adds row n and what it needs. isBranch says that it is one of several that a row needs.
func (w *treeWalk) walk(n, depth int, isBranch bool) {
	for !w.done[n] {
		w.done[n] = true
		next, seen := w.split(w.s.Rows[n].Needs)
		t := TreeRow{Row: n, Depth: depth, IsBranch: isBranch, Also: seen}
		if n == 0 || len(next) > 1 {
			depth++
		}
		t.Below = depth
		w.out = append(w.out, t)
		if len(next) != 1 {
			w.below(depth, next)
			return
		}
		n, isBranch = next[0], false // a chain is no recursion
	}
}

func indent(depth int) string { return strings.Repeat("  ", min(depth, maxIndent)) }

// String writes a row, beginning with its number.
func (r *SliceRow) String() string {
	if r.Kind == "value" {
		return fmt.Sprintf("%s  at %s", text.Printable(r.Source), r.Position) + r.ledBy()
	}
	s := fmt.Sprintf("#%d  %s  ", r.Number, r.Position)
	switch r.Kind {
	case rowBranch:
		s += placeText(*r.At) + "  " + r.Instruction + "  " + decisionsText(r.Decisions)
	case rowCode:
		s += placeText(*r.At) + "  " + r.Instruction
		if r.Result != "" {
			s += "  " + r.Result
		}
	default:
		s += text.Printable(r.Source)
	}
	if r.Count > 1 {
		s += fmt.Sprintf("  (x %s)", text.Count(r.Count))
	}
	return s + r.ledBy()
}

// maxLedBy is how many branches a row names that led to it.
const maxLedBy = 6

// ledBy names the rows that decided that this one was executed.
func (r *SliceRow) ledBy() string {
	var b strings.Builder
	for i, n := range r.Controls[:min(len(r.Controls), maxLedBy)] {
		if b.WriteString(" "); i == 0 {
			b.WriteString(" by ")
		}
		fmt.Fprintf(&b, "#%d", n)
	}
	if n := len(r.Controls) - maxLedBy; n > 0 {
		fmt.Fprintf(&b, " and %d more", n)
	}
	return b.String()
}

// Dot writes the slice for Graphviz.
func (s *Slice) Dot() string {
	var b strings.Builder
	b.WriteString("digraph slice {\n\tnode [shape=box, fontname=\"monospace\"];\n")
	for i := range s.Rows {
		r := &s.Rows[i]
		label, shape := r.Source, ""
		if r.At != nil {
			label = r.At.String()
			if src := r.At.Source(); src != "" {
				label += "\n" + src
			}
			label += "\n" + r.Instruction
			if r.Result != "" {
				label += "\n" + r.Result
			}
		}
		for i := range r.Decisions {
			label += "\n" + r.Decisions[i].String()
			shape = ", shape=hexagon"
		}
		label += "\n" + r.Position.String()
		if r.Count > 1 {
			label += " x " + text.Count(r.Count)
		}
		fmt.Fprintf(&b, "\tn%d [label=%s%s];\n", r.Number, dotString(label), shape)
		for _, n := range r.Needs {
			fmt.Fprintf(&b, "\tn%d -> n%d;\n", r.Number, n)
		}
		for _, n := range r.Addresses {
			fmt.Fprintf(&b, "\tn%d -> n%d [style=dashed];\n", r.Number, n)
		}
		for _, n := range r.Controls {
			fmt.Fprintf(&b, "\tn%d -> n%d [style=dotted];\n", r.Number, n)
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
