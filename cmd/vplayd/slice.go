package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"vplay/replay"
	"vplay/replay/analysis/slice"
	"vplay/replay/debug"
)

// The verb slice: where a value came from, as a tree, as JSON, or for Graphviz. With
// --origin it stops where the value was made.

type sliceFlags struct {
	serveFlags
	values, origin bool
	control        bool
	asJSON, asDot  bool
	thread, rows   int
	table          bool
}

func newSlice() *cobra.Command {
	var f sliceFlags
	c := &cobra.Command{
		Use:   "slice [flags] RECORDING [EXPR] | slice --table RECORDING...",
		Short: "what a value was made of: the dynamic backward slice",
		Long: `Slice goes back from a value through everything it was made of: each instruction
that wrote something of it, what that read, and so on, through memory, registers, flags,
threads and signal handlers, to what came in by system calls and to what was there when
the recording began. Of millions of executed instructions it shows those that mattered.

EXPR is a C expression (a variable as x or p->next, in the innermost frame that knows
it), a register as $rax or $xmm0, or an address and a length as 0x7ffe1000,8. Without
EXPR it is what the program died of: the registers of the address that could not be
accessed, the operands of a division, or where the address came from that it jumped to;
where the program caught that fault, and ended itself, the same at the fault; where the C
library aborted because of it, the stack guard or the header of a heap block that was
overwritten. The moment is the end, or that of --at.

The value stands first, and below it what it was made of. A chain is not indented; where
something was made of several things, each has a branch. A row is a source line, or an
instruction where no line is known: its number, its position, which "seek" and --at take,
the place, the instruction that was executed there last, what that made, and how often it
is in the slice where that is more than once. What was shown before is named by its
number.

An instruction depends on what it computed with, and on what the address was made of that
it loaded from or stored to. What the value itself was made of comes first; behind it, row
by row, what decided where that was loaded from or stored to. --values leaves the latter
out (a thin slice). The stack pointer, and the frame pointer, are taken as known.

--control follows control dependences too: which branch of its function decided that an
instruction of the slice was executed, of those the one that was executed last before it
in the same call, else the call itself; what the branch compared; and so on from there. A
row ends with the rows that led to it ("by #7"). A row of branches says what was compared
the last time and which way each went, and how often where it went several ways. Of a
crash, what led there is part of it. Such a slice has most of what the program did before.
-n shows what is nearest to the value, where an address or a branch counts as three rows.
The recording is replayed once more for it, to see where calls and jumps through
registers lead.

--origin goes on only as long as the value is copied: to the instruction that made it, or
the call that brought it.

--table prints a line for each of several recordings instead, as BugNet's authors did
for known bugs: how many instructions were recorded, how many lie between the origin
of what the program died of and the crash (the window), and how large the slices are,
with addresses and without: rows, executed instructions, and their share of the
window. The origin is the last row of --origin that is an instruction or a call. Slices
go back beyond it, so the share can be more than 100%. With --json each line is an
object. A recording without a crash to explain has the error in its line; the exit code
is that of the first one.

Names and lines take debug information, which is looked for as serve does. Where --limit
does not allow to read all of it, the last line says so.

Exit codes: 0 done, 1 the value is not known, or more is needed for it than memory
holds, 2 wrong use, 3 replay and recording differ, 4 the recording is damaged, 130
Ctrl-C.`,
		Example: `  vplayd slice server-1.vplay
  vplayd slice --symbols build server-1.vplay 'req->length'
  vplayd slice --control --values server-1.vplay
  vplayd slice --origin --at 3:1200.0 server-1.vplay '$rdi'
  vplayd slice --dot server-1.vplay total | dot -Tsvg > total.svg
  vplayd slice --table bug1.vplay bug2.vplay`,
		Args: func(c *cobra.Command, args []string) error {
			if f.table {
				return cobra.MinimumNArgs(1)(c, args)
			}
			return cobra.RangeArgs(1, 2)(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error { return runSlice(c, args, &f) },
	}
	f.symbols.add(c)
	addSandboxFlag(c)
	addProcessFlag(c, "the one that the recording is about")
	c.Flags().StringVar(&f.at, "at", "end", "the `MOMENT` at which the value is wanted, as \"monitor seek\" takes it")
	c.Flags().IntVar(&f.thread, "thread", 0, "the thread whose registers and variables are meant, by its `NUMBER` (default: the one that runs there)")
	c.Flags().BoolVar(&f.values, "values", false, "leave out what only decided where something was loaded or stored")
	c.Flags().BoolVar(&f.control, "control", false, "add the branches that led to the rows, and what they compared")
	c.Flags().BoolVar(&f.origin, "origin", false, "only to where the value was made, through copies")
	c.Flags().IntVarP(&f.rows, "rows", "n", 100, "how many rows are shown, those nearest to the value")
	c.Flags().BoolVar(&f.asJSON, "json", false, "one JSON object")
	c.Flags().BoolVar(&f.table, "table", false, "a line for each of several recordings: how far the crash is from its origin, and sizes of slices")
	c.Flags().BoolVar(&f.asDot, "dot", false, "a graph for Graphviz")
	c.Flags().Int64Var(&f.memory, "memory", 0, "guest memory kept for going back quickly, in `MiB` (default: a quarter of this machine's)")
	return c
}

func runSlice(c *cobra.Command, args []string, f *sliceFlags) error {
	if err := f.check(c); err != nil {
		return err
	}
	if f.table {
		return sliceTable(c, args, f)
	}
	g, done, err := openAt(c, args[0], f.at, f.serveFlags)
	if err != nil {
		return err
	}
	defer done()
	line := newProgress(false)
	q := debug.SliceQuery{TID: f.thread, Values: f.values, Copies: f.origin, Control: f.control, Most: f.rows, Progress: func(s string) { line.show("slicing: %s", s) }}
	if len(args) > 1 {
		q.Expr = args[1]
	}
	s, err := g.Slice(c.Context(), q)
	line.done()
	if ctxErr := c.Context().Err(); ctxErr != nil {
		return ctxErr
	}
	if err != nil {
		return sliceError(err)
	}
	return printSlice(c.OutOrStdout(), s, f)
}

// check refuses flags that make no sense.
func (f *sliceFlags) check(c *cobra.Command) error {
	if f.table {
		for _, name := range []string{"at", "thread", "values", "control", "origin", "rows", "dot"} {
			if c.Flags().Changed(name) {
				return usageError{withHint(fmt.Errorf("--table and --%s", name), exitUsage, "the table is about crashes, with all slices that there are")}
			}
		}
	}
	switch {
	case f.control && f.origin:
		return usageError{withHint(errors.New("--control and --origin"), exitUsage, "the origin of a value is followed through copies alone; give one of them")}
	case f.asJSON && f.asDot:
		return usageError{withHint(errors.New("--json and --dot are two forms of the same answer"), exitUsage, "give one of them")}
	case f.rows < 1 || f.rows > maxSliceRows:
		return usageError{withHint(fmt.Errorf("--rows %d", f.rows), exitUsage, "1 to %d", maxSliceRows)}
	}
	return nil
}

// maxSliceRows bounds --rows: each row is looked up in the recording.
const maxSliceRows = 10_000

// sliceError gives an error its advice.
func sliceError(err error) error {
	switch {
	case replay.Unmatched(err), isDamage(err):
		return err
	case errors.Is(err, debug.ErrMoment):
		return withHint(err, exitFailed, pastHint)
	case errors.Is(err, debug.ErrNoCriterion):
		return withHint(err, exitUsage, "vplayd info tells what the program died of; --control shows the branches that led to an instruction that raised a signal; --at chooses another moment")
	case errors.Is(err, slice.ErrTooMany):
		return withHint(err, exitFailed, "--values follows less, and so does a moment nearer to the value's making (--at)")
	}
	return withHint(err, exitFailed, "EXPR is a C expression of the innermost frame, a register as '$rax', or ADDRESS,LENGTH")
}

// printSlice writes the answer in the form asked for.
func printSlice(out io.Writer, s *debug.Slice, f *sliceFlags) error {
	var err error
	switch {
	case f.asJSON:
		err = encodeLine(out, s)
	case f.asDot:
		_, err = io.WriteString(out, s.Dot())
	default:
		_, err = fmt.Fprintln(out, s)
	}
	return err
}
