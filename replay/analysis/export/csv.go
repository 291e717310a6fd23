package export

import (
	"encoding/csv"
	"io"
	"regexp"
	"strconv"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// Tables as CSV (RFC 4180), for notebooks and spreadsheets: a line of names, and a row for each call, system call, signal or function.

// tables are the tables, in the order in which they are named.
var tables = []struct {
	name    string
	columns []string
	write   func(w *walk, t *table) error
}{
	{"calls", []string{"thread", "depth", "function", "module", "begin", "begin_instruction", "instructions", "complete"}, (*walk).listTable},
	{"syscalls", []string{"thread", "position", "instruction", "name", "call", "result", "value"}, (*walk).listTable},
	{"signals", []string{"thread", "position", "instruction", "signal"}, (*walk).listTable},
	{"functions", []string{"function", "module", "file", "line", "calls", "self_instructions", "total_instructions", "allocations", "allocated_bytes"}, (*walk).functionTable},
}

// Tables are the tables that the format csv can be asked for.
func Tables() (out []string) {
	for _, t := range tables {
		out = append(out, t.name)
	}
	return out
}

// table is one that is written.
type table struct {
	w    *walk
	out  *csv.Writer
	name string
	only *regexp.Regexp
}

func writeCSV(w *walk, out io.Writer) error {
	for _, x := range tables {
		if x.name != w.o.Table {
			continue
		}
		t := &table{w: w, out: csv.NewWriter(out), name: x.name, only: regexp.MustCompile(w.o.Functions)}
		t.row(x.columns...)
		if err := x.write(w, t); err != nil {
			return err
		}
		t.out.Flush()
		return t.out.Error()
	}
	return w.o.Check()
}

// row writes a row; its error is kept for the end.
func (t *table) row(fields ...string) { _ = t.out.Write(fields) }

func decimal[T int32 | int64](n T) string { return strconv.FormatInt(int64(n), 10) }

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// listTable writes what happens one after the other.
func (w *walk) listTable(t *table) error { return w.follow(t) }

// cell is a name as a field. One that a spreadsheet would take for a formula has an apostrophe in front, as is usual.
func cell(s string) string {
	if s = printable(s); s != "" && (s[0] == '=' || s[0] == '+' || s[0] == '-' || s[0] == '@') {
		return "'" + s
	}
	return s
}

// called implements list.
func (t *table) called(int32, *listed) {}

// returned implements list.
func (t *table) returned(tid int32, c *listed, now uint64) { t.call(tid, c, now, !c.isOld) }

func (t *table) call(tid int32, c *listed, now uint64, complete bool) {
	f := &t.w.code.functions[c.fn]
	if t.name != "calls" || t.w.o.Depth != 0 && int(c.depth) > t.w.o.Depth || !t.only.MatchString(f.name) {
		return
	}
	t.row(decimal(tid), decimal(c.depth), cell(f.name), cell(t.w.code.modules[f.module].path), c.at.String(), number(c.begin), number(now-c.begin), strconv.FormatBool(complete))
}

// syscall implements list.
func (t *table) syscall(tid int32, s *syscall, _ uint64) {
	if t.name == "syscalls" {
		t.row(decimal(tid), s.at.String(), number(s.begin), s.name, cell(s.text), cell(s.result), decimal(s.value))
	}
}

// signal implements list.
func (t *table) signal(tid int32, e *checkpoint.Event, at checkpoint.Position, now uint64) {
	if t.name == "signals" {
		t.row(decimal(tid), at.String(), number(now), abi.Signal(e.Signo).String())
	}
}

func (t *table) running(int32, uint64) {}
func (t *table) heap(uint64, uint64)   {}
func (t *table) mapped(uint64, uint64) {}
func (t *table) ended(int32, uint64)   {}

// functionTable writes the functions with their sums.
func (w *walk) functionTable(t *table) error {
	if err := w.count(); err != nil {
		return err
	}
	type sums struct{ calls, self, total, blocks, bytes uint64 }
	of := make([]sums, len(w.code.functions))
	inclusive := make([]uint64, len(w.tree.nodes))
	for k, times := range w.totals {
		n := times * uint64(k.n)
		inclusive[k.node] += n
		of[w.tree.nodes[k.node].fn].self += n
	}
	for i := len(inclusive) - 1; i > 0; i-- {
		n := &w.tree.nodes[i]
		inclusive[n.parent] += inclusive[i]
		x := &of[n.fn]
		x.calls += n.calls
		x.blocks += n.blocks
		x.bytes += n.bytes
		if !w.isInside(n.parent, n.fn) { // else it is in that of the outer call
			x.total += inclusive[i]
		}
	}
	for i := range of {
		f, x := &w.code.functions[i], &of[i]
		if x.total > 0 && t.only.MatchString(f.name) {
			t.row(cell(f.name), cell(w.code.modules[f.module].path), cell(f.file), strconv.Itoa(f.line), number(x.calls), number(x.self), number(x.total), number(x.blocks), number(x.bytes))
		}
	}
	return nil
}

// isInside reports whether a node is in a call of a function.
func (w *walk) isInside(n, fn int32) bool {
	for ; n != 0; n = w.tree.nodes[n].parent {
		if w.tree.nodes[n].fn == fn {
			return true
		}
	}
	return false
}
