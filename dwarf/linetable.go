package dwarf

import (
	"cmp"
	"slices"
)

// Optimized code has several rows of the line table for one address, rows that are
// no place to stop at (is_stmt is off), and lines of inlined functions in between.
// What line an address belongs to is then a matter of convention, and the convention
// is gdb's: each source file has a table of its own, a row of another file closes it, and
// of the files' rows before an address the nearest counts (gdb 13: dwarf2/read.c,
// lnp_state_machine::record_line; buildsym.c, record_line; symtab.c,
// find_pc_sect_line).

// fileTable is the lines of one source file of a unit, sorted by address. A row with
// line 0 says that what follows belongs to another file, or to none.
type fileTable struct {
	name string
	rows []line
}

// lineTables reads the rows of one unit into the tables of its files.
type lineTables struct {
	files []*fileTable
	index map[string]*fileTable

	// Of the sequence that is read:
	last       *fileTable // of the row before
	lastNum    int        // line of the last row that was taken
	num        int        // line of the row before, taken or not
	addr       uint64     // of the row before
	stmtAtAddr bool       // a row for addr is a place to stop at
	divided    bool       // the line has discriminators: its rows are parts of it
}

// read reads all rows of a unit, at most limit.
func (t *lineTables) read(p *lineProgram, limit int) {
	for range limit {
		row, ok, err := p.next()
		if err == nil && ok {
			err = p.m.meter.take(lineRowBytes)
		}
		if err != nil {
			t.finish(t.addr)
		}
		if err != nil || !ok {
			break
		}
		t.row(&row)
	}
	for _, f := range t.files {
		slices.SortStableFunc(f.rows, func(a, b line) int {
			if c := cmp.Compare(a.addr, b.addr); c != 0 || (a.num == 0) == (b.num == 0) {
				return c
			}
			if a.num == 0 {
				return -1
			}
			return 1
		})
	}
}

// file returns the table of a source file.
func (t *lineTables) file(name string) *fileTable {
	if t.last != nil && t.last.name == name {
		return t.last
	}
	f := t.index[name]
	if f == nil {
		f = &fileTable{name: name}
		t.index[name] = f
		t.files = append(t.files, f)
	}
	return f
}

// row takes one row of the line number program.
func (t *lineTables) row(e *lineRow) {
	if e.isEnd {
		t.finish(e.addr)
		t.last, t.lastNum, t.num, t.addr, t.stmtAtAddr, t.divided = nil, 0, 0, 0, false, false
		return
	}
	t.divided = e.divided || t.divided && e.line == t.num
	t.num = e.line
	f := t.file(e.file)
	changed := f != t.last
	isIgnored := e.line == 0 || changed && t.addr == e.addr && !e.isStmt && t.stmtAtAddr
	if !isIgnored {
		if changed {
			t.finish(e.addr)
		}
		if e.line != t.lastNum || changed || !t.divided {
			f.rows = append(f.rows, line{addr: e.addr, file: f.name, num: e.line, stmt: e.isStmt})
			t.lastNum = e.line
		}
		t.last = f
	}
	if t.addr != e.addr {
		t.stmtAtAddr, t.addr = false, e.addr
	}
	t.stmtAtAddr = t.stmtAtAddr || e.isStmt
}

// finish ends what the last file has at an address. Rows without code go.
func (t *lineTables) finish(addr uint64) {
	if t.last == nil {
		return
	}
	rows := t.last.rows
	for len(rows) > 0 && rows[len(rows)-1].addr == addr {
		rows = rows[:len(rows)-1]
	}
	if len(rows) > 0 && rows[len(rows)-1].num != 0 {
		rows = append(rows, line{addr: addr, file: t.last.name, stmt: true})
	}
	t.last.rows = rows
}

// joined is a row that begins to count, in the table of a file.
type joined struct {
	line
	file int
}

// join makes one table of those of the files: each row holds from its address to the
// next one's.
func (t *lineTables) join() (out []line) {
	var all []joined
	for i, f := range t.files {
		for j := range f.rows {
			if j+1 < len(f.rows) && f.rows[j+1].addr == f.rows[j].addr {
				continue
			}
			all = append(all, joined{f.chosen(j), i})
		}
	}
	// At one address the first file counts: it comes last, on top of the stack.
	slices.SortStableFunc(all, func(a, b joined) int { return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(b.file, a.file)) })
	current := make([]int, len(t.files)) // by file: 1 + the index in all of its last row
	var stack []int                      // rows that hold until their file has another
	best := -1
	for i := 0; i < len(all); {
		addr := all[i].addr
		for ; i < len(all) && all[i].addr == addr; i++ {
			current[all[i].file] = i + 1
			if all[i].num != 0 {
				stack = append(stack, i)
			}
		}
		for len(stack) > 0 && current[all[stack[len(stack)-1]].file] != stack[len(stack)-1]+1 {
			stack = stack[:len(stack)-1]
		}
		if len(stack) == 0 {
			if best >= 0 {
				out = append(out, line{addr: addr, end: true})
			}
			best = -1
			continue
		}
		if top := stack[len(stack)-1]; top != best {
			l := all[top].line
			l.stmt, l.addr = l.stmt && l.addr == addr, addr
			out = append(out, l)
			best = top
		}
	}
	return out
}

// chosen is the row that counts at the address of row j, the last one there: a row
// that is a place to stop at before one that is not.
func (f *fileTable) chosen(j int) line {
	for k := j; k >= 0 && f.rows[k].addr == f.rows[j].addr && f.rows[k].num != 0; k-- {
		if f.rows[k].stmt {
			return f.rows[k]
		}
	}
	return f.rows[j]
}

// stops returns the rows that are places to stop at.
func (t *lineTables) stops() (out []line) {
	for _, f := range t.files {
		for i := range f.rows {
			if l := &f.rows[i]; l.stmt && l.num != 0 {
				out = append(out, *l)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b line) int { return cmp.Compare(a.addr, b.addr) })
	return out
}
