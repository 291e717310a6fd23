package export

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// The tree of calls by names alone, for flame graphs: whatever was called from where, calls of the same functions in the same order are
// one, and inlined functions are frames.

// flame is a frame with all that have the same ones below.
type flame struct {
	name     string
	self     uint64
	total    uint64 // with all above
	parent   *flame
	children map[string]*flame
	order    []*flame // children as they were met first
}

func (f *flame) child(name string) *flame {
	c := f.children[name]
	if c == nil {
		if f.children == nil {
			f.children = map[string]*flame{}
		}
		c = &flame{name: name, parent: f}
		f.children[name] = c
		f.order = append(f.order, c)
	}
	return c
}

// inlinedMark is what flamegraph.pl wants behind names of inlined functions.
const inlinedMark = "_[i]"

// inside returns the frame of the innermost function that was inlined at a spot in f.
func (f *flame) inside(s *spot) *flame {
	for i := len(s.lines) - 2; i >= 0; i-- {
		f = f.child(s.lines[i].name + inlinedMark)
	}
	return f
}

// flames makes the tree.
func (w *walk) flames() *flame {
	l := newLines(w)
	root := &flame{name: "all"}
	of := make([]*flame, len(w.tree.nodes))
	of[0] = root
	for i := 1; i < len(of); i++ {
		n := &w.tree.nodes[i]
		below := of[n.parent]
		if n.parent != 0 && n.site != 0 {
			below = below.inside(l.at(n.site, w.tree.nodes[n.parent].fn))
		}
		of[i] = below.child(w.code.functions[n.fn].name)
	}
	for _, c := range w.sums(l) {
		f := of[c.node].inside(c.spot)
		f.self += c.times
		for ; f != nil; f = f.parent {
			f.total += c.times
		}
	}
	return root
}

// walk calls do for each frame that has instructions, callers first.
func (f *flame) walk(do func(f *flame, depth int), depth int) {
	do(f, depth)
	for _, c := range f.order {
		if c.total > 0 {
			c.walk(do, depth+1)
		}
	}
}

// foldedName is a name without what has a meaning in the folded form.
func foldedName(s string) string { return strings.ReplaceAll(printable(s), ";", ":") }

// writeFolded writes the folded stacks that flamegraph.pl and speedscope read: names from the outermost on between semicolons, a space and the
// instructions executed in the last.
func writeFolded(w *walk, out io.Writer) error {
	if err := w.count(); err != nil {
		return err
	}
	b := bufio.NewWriter(out)
	var names []string
	w.flames().walk(func(f *flame, depth int) {
		if depth == 0 {
			return
		}
		names = append(names[:depth-1], foldedName(f.name))
		if f.self > 0 {
			fmt.Fprintf(b, "%s %d\n", strings.Join(names, ";"), f.self)
		}
	}, 0)
	return b.Flush()
}
