package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/cmd/vplayd/internal/sandbox"
	"vplay/replay"
	"vplay/replay/analysis/windows"
	"vplay/replay/debug/text"
)

// The verb windows: what must be traced of a program so that no moment is further than so
// many instructions of replay away, and what a log of first loads would take. What is
// counted, and how, is in package replay/analysis/windows.

// windowsFlags are the flags of windows.
type windowsFlags struct {
	lengths       []string
	scan          string
	points        uint64
	firstLoads    bool
	asJSON, asCSV bool
}

func newWindows() *cobra.Command {
	var f windowsFlags
	c := &cobra.Command{
		Use:     "windows [flags] [RECORDING]",
		Short:   "what must be traced so that replay of any moment is short",
		Long:    windowsHelp,
		Example: "  vplayd windows sort-1.vplay\n  vplayd windows --length 50k,500k --scan 5k sort-1.vplay\n  vplayd windows --csv sort-1.vplay > sort.csv\n  vplayd windows --first-loads sort-1.vplay",
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return runWindows(c, args, &f) },
	}
	c.Flags().StringSliceVar(&f.lengths, "length", []string{"10k", "100k", "1M", "10M", "100M"}, "the bounds T, in instructions, a `LIST` with commas")
	c.Flags().StringVar(&f.scan, "scan", "10%", "how far back a cut is looked for, `M`: in instructions, or a share of T")
	c.Flags().Uint64Var(&f.points, "points", windows.DefaultPoints, "the `NUMBER` of places in a window of T where it may be cut")
	c.Flags().BoolVar(&f.firstLoads, "first-loads", false, "measure logs of first loads instead, and compare them with the file")
	c.Flags().BoolVar(&f.asJSON, "json", false, "one JSON object")
	c.Flags().BoolVar(&f.asCSV, "csv", false, "a line for each T, with commas")
	addProcessFlag(c, "the one that the recording is about")
	addSandboxFlag(c)
	return c
}

const windowsHelp = `Windows replays a recording and counts what a tracer would have to keep of the
program's reads, so that each moment of it can be replayed from a trace and at most
T instructions of execution. It is the analysis of Netzer and Weaver ("Optimal Tracing
and Incremental Reexecution for Debugging Long-Running Programs", PLDI 1994).

The execution is cut into windows of at most T instructions. A window can be replayed
by itself when each byte is traced that it reads before it has written it: the unique
spanning reads. What system calls stored is in the log in any case and is not counted.
Where the cuts are decides how much that is. For each T a line has

  windows    how many there are with M = 0; each needs the registers besides
  M = 0      bytes traced where each window has T instructions
  M = ...    where a full window is cut at the place, among its last M instructions,
             with the fewest bytes for each instruction; --scan sets M
  M = T      the same, looking over the whole window
  optimum    the cheapest cuts there are (a shortest path)
  writes     bytes that each window of M = 0 writes, each once: an incremental checkpoint
  pages read, pages written
             the same by pages of 4,096 bytes: pages that a window of M = 0 needs of
             what was before it, which is what a recording holds at the start of each
             interval, and those that it writes

Cuts are at each hundredth of T, or as many as --points says (1 to 1000), and at each
instruction where T is not greater. Numbers may end in k, M or G, for 1000, 1000^2
and 1000^3. T can be anything from 1 instruction on, and up to 16 can be given. It
takes 8 to 32 KiB of memory for each page that the program accessed; --limit bounds it.

Threads count as one execution, in the order of the recording. Behind a call whose
effects are not in the log (a gap), and behind execve, memory is taken as unknown.

With --first-loads it measures another design on the same accesses: BugNet's log of
first loads (ISCA 2005), with a dictionary of 64 values, for each interval by itself and
for the recording as one; as its bits, and compressed as a recording is. A load is
logged when a byte of it was neither loaded nor stored before in the interval, nor
stored by a system call. Code is counted apart: the bytes of all instructions that were
executed, once. Beside it stands what pages take: those that replay needs, each content
once, and those of this file, which has what debuggers read besides.

Once the file is open, windows can open no other file and start no other program, where
the kernel has Landlock and seccomp (vplayd doctor tells).

Exit codes: 0 done, 1 it could not be done, 2 wrong use, 3 replay and recording differ,
4 the recording is damaged, or more memory is needed than --limit allows, 130 Ctrl-C.`

// runWindows counts and prints.
func runWindows(c *cobra.Command, args []string, f *windowsFlags) error {
	o, err := f.options(c)
	if err != nil {
		return err
	}
	s, path, done, err := openSession(c, args)
	if err != nil {
		return err
	}
	defer done()
	pid, err := processOf(c, s.Rec)
	if err != nil {
		return err
	}
	if err := wantPast(s.Rec, "be counted"); err != nil {
		return err
	}
	freeHeap()
	if err := enterSandbox(c, sandbox.Access{}); err != nil {
		return err
	}
	line := newProgress(false)
	var insns uint64
	o.Progress = func(n uint64) {
		insns += n
		line.show("counting accesses: %.0f million instructions", float64(insns)/1e6)
	}
	if f.firstLoads {
		r, err := firstLoads(c.Context(), s, path, pid, o.Progress)
		line.done()
		if err != nil {
			return err
		}
		return r.write(c.OutOrStdout(), f.asJSON)
	}
	o.Intervals = intervalsOf(s.Rec, pid)
	r := &windowsReport{File: path, PID: pid, CPUSeconds: cpuSeconds(s, pid)}
	r.Report, err = windows.Of(c.Context(), s, o)
	line.done()
	if err != nil {
		return err
	}
	return r.write(c.OutOrStdout(), f)
}

// cpuSeconds returns the CPU time of a process in the recording.
func cpuSeconds(s *replay.Session, pid int32) (sum float64) {
	for _, image := range s.Rec.ImagesOf(pid) {
		for i := range image {
			sum += image[i].CPUTime.Seconds()
		}
	}
	return sum
}

// options reads the flags.
func (f *windowsFlags) options(c *cobra.Command) (o windows.Options, err error) {
	switch {
	case f.asJSON && f.asCSV:
		return o, usageError{withHint(errors.New("--json and --csv are two forms of the same answer"), exitUsage, "give one of them")}
	case f.points < 1 || f.points > windows.MaxPoints:
		return o, usageError{withHint(fmt.Errorf("--points %d", f.points), exitUsage, "1 to %d", windows.MaxPoints)}
	case len(f.lengths) < 1 || len(f.lengths) > windows.MaxBounds:
		return o, usageError{withHint(fmt.Errorf("--length with %d bounds", len(f.lengths)), exitUsage, "1 to %d", windows.MaxBounds)}
	}
	if f.firstLoads {
		for _, name := range []string{"length", "scan", "points", "csv"} {
			if c.Flags().Changed(name) {
				return o, usageError{withHint(fmt.Errorf("--first-loads and --%s", name), exitUsage, "first loads are those of the recording's intervals; --json is there")}
			}
		}
	}
	o.Points = f.points
	for _, l := range f.lengths {
		n, err := parseCount(l)
		if err != nil {
			return o, usageError{withHint(err, exitUsage, "--length takes numbers of instructions: 10k,1M")}
		}
		o.Bounds = append(o.Bounds, n)
	}
	o.Scan, err = parseScan(f.scan)
	return o, err
}

// parseScan reads M: a share of the window, or instructions.
func parseScan(s string) (m windows.Scan, err error) {
	if share, ok := strings.CutSuffix(s, "%"); ok {
		p, err := strconv.ParseFloat(share, 64)
		if err == nil && p >= 0 && p <= 100 {
			return windows.Scan{Share: p / 100}, nil
		}
	} else if s == "0" {
		return m, nil
	} else if m.Instructions, err = parseCount(s); err == nil {
		return m, nil
	}
	return m, usageError{withHint(fmt.Errorf("--scan %s", s), exitUsage, "it takes a number of instructions, or a share of T from 0%% to 100%%")}
}

// countUnits are the units of a number of instructions.
var countUnits = map[string]uint64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}

// parseCount reads a number of at least 1, and k, M or G for the powers of 1000.
func parseCount(s string) (uint64, error) {
	digits := strings.TrimRight(s, "kKMG")
	unit, ok := countUnits[s[len(digits):]]
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || !ok || n == 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("bad number %q", s)
	}
	return n * unit, nil
}

// windowsReport is what is printed.
type windowsReport struct {
	File       string  `json:"file"`
	PID        int32   `json:"pid"`
	CPUSeconds float64 `json:"cpu_seconds"`
	*windows.Report
}

// write writes the report in the form asked for.
func (r *windowsReport) write(out io.Writer, f *windowsFlags) error {
	switch {
	case f.asJSON:
		return encodeLine(out, r)
	case f.asCSV:
		return r.csv(out)
	}
	fmt.Fprintf(out, "%s: %s instructions in %s, %.3f s of CPU time\n", text.Printable(filepath.Base(r.File)), text.Count(r.Instructions), text.Plural(r.Intervals, "interval"), r.CPUSeconds)
	fmt.Fprintf(out, "%s reads of %s, %s writes of %s; system calls stored %s; %s read that nothing in the recording had written\n\n", text.Count(r.Reads), size(int64(r.ReadBytes)),
		text.Count(r.Writes), size(int64(r.WriteBytes)), size(int64(r.LogBytes)), size(int64(r.Outside)))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "T\twindows\tM = 0\tM = %s\tM = T\toptimum\twrites\tpages read\tpages written\t\n", text.Printable(f.scan))
	for i := range r.Bounds {
		b := &r.Bounds[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", text.Count(b.Bound), text.Count(b.Fixed.Windows), size(int64(b.Fixed.Bytes)), size(int64(b.Scanned.Bytes)),
			size(int64(b.Unbounded.Bytes)), size(int64(b.Optimal.Bytes)), size(int64(b.UniqueWrites)), pagesSize(b.PagesRead), pagesSize(b.PagesWritten))
	}
	return w.Flush()
}

// pagesSize writes what so many pages take.
func pagesSize(n uint64) string { return size(int64(n) * checkpoint.PageSize) }

// csv writes a line for each bound, in bytes.
func (r *windowsReport) csv(out io.Writer) error {
	w := csv.NewWriter(out)
	err := w.Write([]string{"file", "instructions", "bound", "length", "scan", "fixed_windows", "fixed_bytes", "scanned_windows", "scanned_bytes", "unbounded_windows", "unbounded_bytes",
		"optimal_windows", "optimal_bytes", "unique_writes", "pages_read", "pages_written"})
	if err != nil {
		return err
	}
	for i := range r.Bounds {
		b := &r.Bounds[i]
		row := []string{r.File}
		for _, n := range []uint64{r.Instructions, b.Bound, b.Length, b.Scan, b.Fixed.Windows, b.Fixed.Bytes, b.Scanned.Windows, b.Scanned.Bytes, b.Unbounded.Windows, b.Unbounded.Bytes,
			b.Optimal.Windows, b.Optimal.Bytes, b.UniqueWrites, b.PagesRead, b.PagesWritten} {
			row = append(row, strconv.FormatUint(n, 10))
		}
		if err := w.Write(row); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
