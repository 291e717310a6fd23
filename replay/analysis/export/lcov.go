package export

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Coverage as lcov and genhtml read it (geninfo(1), "Tracefile format"): how often each source line was executed, and each function called.
// A line's count is that of the instruction of it that was executed most often. Lines of functions of which nothing was executed are there with 0.

// coverage is what is known of one source file.
type coverage struct {
	lines     map[int]uint64
	functions map[string]*covered
}

type covered struct {
	line  int
	calls uint64
}

// lcov makes coverage.
type lcov struct {
	w     *walk
	files map[string]*coverage
	dirs  map[int32]string // of modules, see path
}

func writeLcov(w *walk, out io.Writer) error {
	if err := w.count(); err != nil {
		return err
	}
	c := &lcov{w: w, files: map[string]*coverage{}, dirs: map[int32]string{}}
	c.executed(newLines(w))
	c.called()
	c.rest()
	if err := w.ctx.Err(); err != nil {
		return err
	}
	b := bufio.NewWriter(out)
	c.write(b)
	if len(c.files) == 0 {
		w.note("no module has debugging information, so that there are no lines: --symbols names folders with files that have some")
	}
	return b.Flush()
}

// file returns the coverage of a file, nil where there is none.
func (c *lcov) file(name string) *coverage {
	if name == "" {
		return nil
	}
	f := c.files[name]
	if f == nil {
		f = &coverage{map[int]uint64{}, map[string]*covered{}}
		c.files[name] = f
	}
	return f
}

// executed counts by instruction, and takes the most of each line.
func (c *lcov) executed(l *lines) {
	counts, fns := map[place]uint64{}, map[place]int32{}
	for k, times := range c.w.totals {
		c.w.each(k, func(at place) {
			counts[at] += times
			fns[at] = c.w.tree.nodes[k.node].fn
		})
	}
	for at, times := range counts {
		s := l.at(at, fns[at])
		for i := range s.lines {
			x := &s.lines[i]
			if f := c.file(c.path(at.module(), x.file)); f != nil && x.number > 0 {
				f.lines[x.number] = max(f.lines[x.number], times)
			}
		}
	}
}

// path is a source file's name, with the folder that it was compiled in where it has none.
func (c *lcov) path(m int32, file string) string {
	if file == "" || strings.HasPrefix(file, "/") {
		return file
	}
	dir, ok := c.dirs[m]
	if d := c.w.code.modules[m].file; !ok && d != nil {
		dir = d.CompDir()
		c.dirs[m] = dir
	}
	if dir == "" {
		return file
	}
	return dir + "/" + file
}

// called counts calls.
func (c *lcov) called() {
	for i := 1; i < len(c.w.tree.nodes); i++ {
		n := &c.w.tree.nodes[i]
		fn := &c.w.code.functions[n.fn]
		f := c.file(c.path(fn.module, fn.file))
		if f == nil || fn.line <= 0 {
			continue
		}
		x := f.functions[fn.name]
		if x == nil {
			x = &covered{line: fn.line}
			f.functions[fn.name] = x
		}
		x.calls += max(n.calls, 1)
	}
}

// maxRest is how many lines that were not executed are listed.
const maxRest = 4 << 20

// rest adds what was not executed of the source files that are there.
func (c *lcov) rest() {
	added := 0
	at := map[int32][]uint64{}
	for i := range c.w.code.functions {
		f := &c.w.code.functions[i]
		at[f.module] = append(at[f.module], f.entry.addr())
	}
	for i := range c.w.code.modules {
		d := c.w.code.modules[i].file
		if d == nil || !d.HasLines() {
			continue
		}
		c.w.s.Rec.Budget().Renew()
		d.Code(at[int32(i)], func(name, file string, line int, isEntry bool) bool {
			f := c.files[c.path(int32(i), file)]
			if f == nil || line <= 0 {
				return true
			}
			if _, ok := f.lines[line]; !ok {
				f.lines[line] = 0
				added++
			}
			if isEntry && f.functions[name] == nil {
				f.functions[name] = &covered{line: line}
			}
			return added < maxRest && c.w.ctx.Err() == nil
		})
	}
}

func (c *lcov) write(b *bufio.Writer) {
	for _, name := range sortedKeys(c.files) {
		f := c.files[name]
		fmt.Fprintf(b, "TN:\nSF:%s\n", printable(name))
		names := sortedKeys(f.functions)
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(f.functions[a].line, f.functions[b].line) })
		hit := 0
		for _, n := range names {
			fmt.Fprintf(b, "FN:%d,%s\n", f.functions[n].line, printable(n))
		}
		for _, n := range names {
			fmt.Fprintf(b, "FNDA:%d,%s\n", f.functions[n].calls, printable(n))
			hit += min(int(min(f.functions[n].calls, 1)), 1)
		}
		fmt.Fprintf(b, "FNF:%d\nFNH:%d\n", len(names), hit)
		hit = 0
		for _, n := range sortedKeys(f.lines) {
			fmt.Fprintf(b, "DA:%d,%d\n", n, f.lines[n])
			hit += int(min(f.lines[n], 1))
		}
		fmt.Fprintf(b, "LF:%d\nLH:%d\nend_of_record\n", len(f.lines), hit)
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
