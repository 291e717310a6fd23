package export

import (
	"context"
	"fmt"
	"io"

	"vplay/replay"
)

// The formats, each of which is in a file of its own.

// Format is one of the formats.
type Format struct {
	Name   string
	Suffix string // of a file's name
	About  string // one line
	Binary bool   // it is nothing for a terminal
	write  func(w *walk, out io.Writer) error
}

// Formats are all that there are.
var Formats = []Format{
	{"pprof", ".pb.gz", "for go tool pprof: instructions, calls, allocations by stack", true, writePprof},
	{"flamegraph", ".svg", "a flame graph of instructions: one SVG file that can zoom", false, writeFlamegraph},
	{"callgrind", ".callgrind", "for callgrind_annotate, kcachegrind: instructions by line, calls", false, writeCallgrind},
	{"lcov", ".info", "how often each source line was executed, for genhtml", false, writeLcov},
	{"perfetto", ".perfetto-trace", "a trace for ui.perfetto.dev: threads, calls, system calls, signals, the heap", true, writePerfetto},
	{"strace", ".strace", "system calls and signals as strace -f prints them", false, writeStrace},
	{"csv", ".csv", "a table of calls, system calls, signals or functions (--table)", false, writeCSV},
	{"lackey", ".lackey", "each instruction and access to memory, as valgrind's lackey lists them", false, writeLackey},
	{"folded", ".folded", "stacks, one a line, with the instructions executed there", false, writeFolded},
}

// Find returns the format of a name.
func Find(name string) (f Format, ok bool) {
	for _, f := range Formats {
		if f.Name == name {
			return f, true
		}
	}
	return f, false
}

// Result is what there is to say of an export.
type Result struct {
	Instructions uint64   // executed in what was exported
	Notes        []string // what was left out, and why
}

// Write exports the recording of a session to out. Errors: those of observe.Run, of out, and of bounds of the format.
func (f Format) Write(ctx context.Context, s *replay.Session, o Options, out io.Writer) (Result, error) {
	if o.Table == "" {
		o.Table = tables[0].name
	}
	w, err := newWalk(ctx, s, &o)
	if err != nil {
		return Result{}, err
	}
	err = f.write(w, out)
	if n := w.tree.folded; n > 0 {
		w.note("%d calls deeper than %d are beside their callers", n, maxDepth)
	}
	if limit := w.limit.Load(); limit != nil {
		w.note("names are missing: %v (--limit gives more)", *limit)
	}
	return Result{w.sum, w.notes}, err
}

func (w *walk) note(format string, args ...any) {
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}
