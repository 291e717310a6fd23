package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/analysis/export"
	"vplay/replay/debug/text"
)

// The verb export: what a recording executed, in the formats of other tools. They are written by package
// replay/analysis/export; here files are opened, and what was left out is said.

// exportFlags are the flags of export.
type exportFlags struct {
	symbols   symbolFlags
	to, out   string
	intervals string
	functions string
	table     string
	depth     int
	jobs      int
}

func newExport() *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:     "export [flags] RECORDING",
		Short:   "write a recording in the format of another tool: pprof, perfetto, callgrind, ...",
		Long:    exportHelp(),
		Example: exportExamples,
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return runExport(c, args, &f) },
	}
	f.symbols.add(c)
	addSandboxFlag(c)
	addProcessFlag(c, "the one that the recording is about")
	c.Flags().StringVarP(&f.to, "to", "t", "", "the `FORMAT`: "+strings.Join(formatNames(), ", "))
	c.Flags().StringVarP(&f.out, "output", "o", "", "`FILE` to write (default: the recording's name with the format's suffix; -: standard output)")
	c.Flags().StringVar(&f.intervals, "intervals", "", "only the interval `ID`, or those of a range A-B")
	c.Flags().StringVar(&f.functions, "functions", "", "perfetto and csv: only functions whose names match this `PATTERN` (Go's regular expressions)")
	c.Flags().IntVar(&f.depth, "depth", 0, "perfetto and csv: only calls up to this depth, a `NUMBER` (default: 16 for perfetto without --functions)")
	c.Flags().StringVar(&f.table, "table", "calls", "csv: the `TABLE`: "+strings.Join(export.Tables(), ", "))
	c.Flags().IntVarP(&f.jobs, "jobs", "j", 0, "intervals replayed at once (default: one per CPU)")
	return c
}

func runExport(c *cobra.Command, args []string, f *exportFlags) error {
	format, ok := export.Find(f.to)
	if !ok {
		err := fmt.Errorf("there is no format %q", f.to)
		if f.to == "" {
			err = errors.New("no format is named")
		}
		return usageError{withHint(err, exitUsage, "--to takes one of %s", strings.Join(formatNames(), ", "))}
	}
	o := export.Options{Functions: f.functions, Depth: f.depth, Table: f.table, Workers: f.jobs}
	if err := o.Check(); err != nil {
		return usageError{withHint(err, exitUsage, "vplayd help export")}
	}
	var err error
	if f.intervals != "" {
		var first, last uint32
		if first, last, err = intervalRange(f.intervals); err != nil {
			return err
		}
		o.First, o.Last, o.Some = first, last, true
	}
	symbols, err := f.symbols.open()
	if err != nil {
		return err
	}
	s, path, done, err := openSession(c, args)
	if err != nil {
		return err
	}
	defer done()
	if o.PID, err = processOf(c, s.Rec); err != nil {
		return err
	}
	if err := wantPast(s.Rec, "be exported"); err != nil {
		return err
	}
	o.Symbols = symbols.Of(s.Rec)
	freeHeap()
	out, err := openExport(c, f.out, path, &format)
	if err != nil {
		return err
	}
	defer out.discard()
	access := f.symbols.access(symbols, s.Rec)
	if out.name != "" {
		access.Write = []string{filepath.Dir(out.name)}
	}
	if err := enterSandbox(c, access); err != nil {
		return err
	}
	r, err := writeExport(c, s, format, o, out)
	if err != nil {
		if errors.Is(err, checkpoint.ErrNoProcess) {
			err = withHint(err, exitUsage, "%s", processHint(s.Rec))
		}
		return err
	}
	return reportExport(c, r, out)
}

// writeExport writes the file, with a progress line.
func writeExport(c *cobra.Command, s *replay.Session, format export.Format, o export.Options, out *exportFile) (export.Result, error) {
	began, line := time.Now(), newProgress(false)
	defer line.done()
	total := len(intervalsOf(s.Rec, o.PID))
	var through, insns atomic.Uint64
	o.Progress = func(n uint64) {
		line.show("exporting [%s] %d of %d intervals, %.0f M insn/s", bar(float64(through.Load())/float64(max(total, 1))), through.Load(), total,
			float64(insns.Add(n))/1e6/time.Since(began).Seconds())
	}
	o.Done = func() { through.Add(1) }
	b := bufio.NewWriterSize(untilDone{c.Context(), out.w}, 1<<16)
	r, err := format.Write(c.Context(), s, o, b)
	if err == nil {
		err = b.Flush()
	}
	if err == nil {
		err = out.keep()
	}
	return r, err
}

// reportExport says what was written, and what was not.
func reportExport(c *cobra.Command, r export.Result, out *exportFile) error {
	for _, n := range r.Notes {
		fmt.Fprintf(c.ErrOrStderr(), "vplayd: %s\n", n)
	}
	if out.name == "" {
		return nil
	}
	st, err := os.Stat(out.name)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s, %s instructions\n", out.name, size(st.Size()), text.Count(r.Instructions))
	return err
}

// exportFile is where an export is written to: a file, or standard output.
type exportFile struct {
	name string // "": standard output
	w    io.Writer
	f    *outFile
}

// openExport opens it.
func openExport(c *cobra.Command, name, recording string, format *export.Format) (*exportFile, error) {
	if name == "-" {
		if format.Binary {
			if isTerminal(os.Stdout) {
				return nil, usageError{withHint(fmt.Errorf("%s is not for a terminal", format.Name), exitUsage, "-o names a file")}
			}
			return &exportFile{w: raw(c.OutOrStdout())}, nil
		}
		return &exportFile{w: c.OutOrStdout()}, nil
	}
	if name == "" {
		base := filepath.Base(recording)
		name = strings.TrimSuffix(base, filepath.Ext(base)) + format.Suffix
	}
	f, err := createOut(name)
	if err != nil {
		return nil, err
	}
	return &exportFile{name: name, w: f, f: f}, nil
}

// keep gives the file its name.
func (e *exportFile) keep() error {
	if e.f == nil {
		return nil
	}
	return e.f.keep(0o600)
}

// discard removes the file unless it was kept.
func (e *exportFile) discard() {
	if e.f != nil {
		e.f.discard()
	}
}

func formatNames() (out []string) {
	for _, f := range export.Formats {
		out = append(out, f.Name)
	}
	return out
}
