package export

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
)

// callgrind.out, as callgrind_annotate and kcachegrind read it (valgrind's manual, "Callgrind Format Specification"). The cost is Ir,
// instructions, and exact. A function's own cost stands by source line, its calls by line with what was executed in them.

// costKey is a line of a function's own cost.
type costKey struct {
	fn   int32
	file string
	line int
}

// callKey is calls of one function from a line of another.
type callKey struct {
	costKey
	callee int32
}

type callCost struct{ calls, inclusive uint64 }

// callgrind is what is summed up for the file.
type callgrind struct {
	w     *walk
	out   *bufio.Writer
	own   map[costKey]uint64
	calls map[callKey]*callCost
	named map[string]int // names that were written, by what they are of and themselves
}

func writeCallgrind(w *walk, out io.Writer) error {
	if err := w.count(); err != nil {
		return err
	}
	c := &callgrind{w: w, out: bufio.NewWriter(out), own: map[costKey]uint64{}, calls: map[callKey]*callCost{}, named: map[string]int{}}
	c.sum(newLines(w))
	p, _ := w.s.Rec.Process(w.o.PID)
	fmt.Fprintf(c.out, "# callgrind format\nversion: 1\ncreator: vplayd export\npid: %d\ncmd: %s\npart: 1\n\npositions: line\nevents: Ir\nsummary: %d\n\n", p.PID, printable(p.Program), w.sum)
	c.write()
	fmt.Fprintf(c.out, "\ntotals: %d\n", w.sum)
	return c.out.Flush()
}

// key is the line of a function at a spot: of code that was inlined, the line that it stands in.
func (c *callgrind) key(s *spot) costKey {
	outer := &s.lines[len(s.lines)-1]
	in := &s.lines[0]
	return costKey{outer.fn, in.file, max(in.number, 0)}
}

// sum goes through the tree.
func (c *callgrind) sum(l *lines) {
	inclusive := make([]uint64, len(c.w.tree.nodes))
	for _, s := range c.w.sums(l) {
		c.own[c.key(s.spot)] += s.times
		inclusive[s.node] += s.times
	}
	for n := len(inclusive) - 1; n > 0; n-- {
		x := &c.w.tree.nodes[n]
		inclusive[x.parent] += inclusive[n]
		if x.parent == 0 {
			continue
		}
		caller := c.w.tree.nodes[x.parent].fn
		k := callKey{callee: x.fn}
		if x.site != 0 {
			k.costKey = c.key(l.at(x.site, caller))
		} else {
			f := &c.w.code.functions[caller]
			k.costKey = costKey{caller, f.file, f.line}
		}
		e := c.calls[k]
		if e == nil {
			e = &callCost{}
			c.calls[k] = e
		}
		e.calls += max(x.calls, 1) // one that was under way at the beginning counts as well
		e.inclusive += inclusive[n]
	}
}

func compareCosts(a, b costKey) int {
	return cmp.Or(cmp.Compare(a.fn, b.fn), cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
}

// write writes the functions in the order in which they were met.
func (c *callgrind) write() {
	own := make([]costKey, 0, len(c.own))
	for k := range c.own {
		own = append(own, k)
	}
	slices.SortFunc(own, compareCosts)
	calls := make([]callKey, 0, len(c.calls))
	for k := range c.calls {
		calls = append(calls, k)
	}
	slices.SortFunc(calls, func(a, b callKey) int {
		return cmp.Or(compareCosts(a.costKey, b.costKey), cmp.Compare(a.callee, b.callee))
	})
	for fn := range c.w.code.functions {
		f := int32(fn)
		i := slices.IndexFunc(own, func(k costKey) bool { return k.fn != f })
		if i < 0 {
			i = len(own)
		}
		j := slices.IndexFunc(calls, func(k callKey) bool { return k.fn != f })
		if j < 0 {
			j = len(calls)
		}
		if i+j > 0 {
			c.function(f, own[:i], calls[:j])
		}
		own, calls = own[i:], calls[j:]
	}
}

// function writes one function.
func (c *callgrind) function(fn int32, own []costKey, calls []callKey) {
	f := &c.w.code.functions[fn]
	file := f.file
	if file == "" {
		file = "???"
	}
	fmt.Fprintf(c.out, "ob=%s\nfl=%s\nfn=%s\n", c.name("ob", c.w.code.modules[f.module].path), c.name("fl", file), c.functionName(fn))
	at := file
	in := func(name string) {
		if name == "" {
			name = "???"
		}
		if name != at {
			at = name
			fmt.Fprintf(c.out, "fi=%s\n", c.name("fl", name))
		}
	}
	for _, k := range own {
		in(k.file)
		fmt.Fprintf(c.out, "%d %d\n", k.line, c.own[k])
	}
	for _, k := range calls {
		in(k.file)
		to, e := &c.w.code.functions[k.callee], c.calls[k]
		if to.module != f.module {
			fmt.Fprintf(c.out, "cob=%s\n", c.name("ob", c.w.code.modules[to.module].path))
		}
		if file := to.file; file != at {
			if file == "" {
				file = "???"
			}
			fmt.Fprintf(c.out, "cfi=%s\n", c.name("fl", file))
		}
		fmt.Fprintf(c.out, "cfn=%s\ncalls=%d %d\n%d %d\n", c.functionName(k.callee), e.calls, max(to.line, 0), k.line, e.inclusive)
	}
	fmt.Fprintln(c.out)
}

// functionName is a function's name, with its address where another of its module has the same name.
func (c *callgrind) functionName(fn int32) string {
	f := &c.w.code.functions[fn]
	return c.name("fn", f.name+c.w.code.distinction(fn))
}

// name writes a name once in full, and then as its number. A line's end in it would end the line.
func (c *callgrind) name(kind, s string) string {
	if s = printable(s); s == "" {
		s = "???"
	}
	n, ok := c.named[kind+s]
	if ok {
		return fmt.Sprintf("(%d)", n)
	}
	n = len(c.named) + 1
	c.named[kind+s] = n
	return fmt.Sprintf("(%d) %s", n, s)
}
