package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"vplay/cmd/vplayd/internal/sandbox"
	"vplay/replay"
	"vplay/replay/analysis/deviate"
	"vplay/replay/debug"
)

// The verb deviate: where a bad run went wrong, beside good runs of the same program.

type deviateFlags struct {
	serveFlags
	expr         string
	thread, rows int
	asJSON       bool
}

func newDeviate() *cobra.Command {
	var f deviateFlags
	c := &cobra.Command{
		Use:   "deviate [flags] GOOD... BAD",
		Short: "where a bad run went wrong, beside good runs of the same program",
		Long: `Deviate compares a bad run with one or several good ones, of another input or
another build of the program, and prints where it went wrong: the branch that went
where no good run went, or the loop that turned more often, of those that what is wrong
depends on. The bad run is named last.

What is wrong is what the program died of; in a run that did not die, --expr says it, at
the end or at the moment of --at. What differs and did not lead there is left out: it is
not in the dynamic backward slice of the fault (see slice), which has the branches here
that led to its instructions. What any good run did is left out, too; more good runs
leave less.

First comes the likeliest deviation: function and line, what kind it is, its position in
the bad run and in a good one, which "seek" and --at take, where the branch went in both,
what it compared, and where that came from through copies. Below it stand the number of
instructions from there to the fault, and a picture of the whole bad run: how much of
what it did, in each piece of its length, no good run ever did. Then the others, by how
far they are from the fault in the slice, in source lines:

  branch  it went where no good run went
  skip    a good run did there what its counterpart of the fault is made of
  loop    it turned more often than in any good run
  depth   the function called itself more often than in any good run
  pair    it went there behind another branch of the same call, as in no good run
  caller  good runs went there, but not called from the same place
  data    what is wrong was stored there, and not in good runs
  fault   the fault itself: the flow of control did not differ before, or far from it

Those are also the values of "kind" in --json. Of a module with another build-id,
functions and source lines are compared instead of addresses, and what is found is less
sure. Lines take debug information, which is looked for as serve does; without it in the
program the fault itself is all there is.

Exit codes: 0 done, 1 more is needed than memory holds or something was not found, 2
wrong use, also a bad run in which nothing is wrong, 3 replay and recording differ, 4 a
recording is damaged, 130 Ctrl-C.`,
		Example: `  vplayd deviate good-1.vplay good-2.vplay crash-1.vplay
  vplayd deviate --symbols old --symbols new before.vplay after.vplay
  vplayd deviate --expr total --at 3:1200.0 right.vplay wrong.vplay`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return runDeviate(c, args, &f) },
	}
	f.symbols.add(c)
	addSandboxFlag(c)
	c.Flags().StringVar(&f.at, "at", "end", "the `MOMENT` of the bad run at which something is wrong, as \"monitor seek\" takes it")
	c.Flags().StringVar(&f.expr, "expr", "", "what is wrong there: an `EXPR` as slice takes it (default: what the program died of)")
	c.Flags().IntVar(&f.thread, "thread", 0, "the thread of the bad run that is meant, by its `NUMBER` (default: the one that runs there)")
	c.Flags().IntVarP(&f.rows, "rows", "n", 5, "how many deviations are shown, the likeliest")
	c.Flags().BoolVar(&f.asJSON, "json", false, "one JSON object")
	c.Flags().Int64Var(&f.memory, "memory", 0, "guest memory kept of each recording for going back quickly, in `MiB` (default: together a quarter of this machine's)")
	return c
}

func runDeviate(c *cobra.Command, args []string, f *deviateFlags) error {
	if f.rows < 1 || f.rows > maxDeviations {
		return usageError{withHint(fmt.Errorf("--rows %d", f.rows), exitUsage, "1 to %d", maxDeviations)}
	}
	runs, done, err := openRuns(c, args, f.serveFlags)
	if err != nil {
		return err
	}
	defer done()
	bad := runs[len(runs)-1]
	if f.at != "end" {
		if err := bad.Cursor.Monitor(c.Context(), "seek "+f.at, io.Discard); err != nil {
			return withHint(err, exitUsage, "--at takes a position I:N.S, begin, end, 50%%, or \"event N\"")
		}
	}
	line := newProgress(false)
	o := deviate.Options{Good: runs[:len(runs)-1], Bad: bad, Expr: f.expr, TID: f.thread, Most: f.rows, Progress: func(s string) { line.show("%s", s) }}
	r, err := deviate.Find(c.Context(), o)
	line.done()
	if ctxErr := c.Context().Err(); ctxErr != nil {
		return ctxErr
	}
	if err != nil {
		return deviateError(err)
	}
	if f.asJSON {
		return encodeLine(c.OutOrStdout(), r)
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), r)
	return err
}

// maxDeviations bounds --rows: each is looked up in the recordings.
const maxDeviations = 100

// openRuns opens recordings, the bad run's last, and enters the sandbox once all are open.
func openRuns(c *cobra.Command, args []string, f serveFlags) (runs []deviate.Run, done func(), err error) {
	var closers []func()
	done = func() {
		for i := len(closers) - 1; i >= 0; i-- {
			closers[i]()
		}
	}
	if f.memory == 0 {
		f.memory = max(1, f.budget()>>20/int64(len(args)))
	}
	var all sandbox.Access
	for i, path := range args {
		g, closeOne, err := openTarget(c, []string{path}, f, func(_ *replay.Session, a sandbox.Access) error {
			all.Read = append(all.Read, a.Read...)
			if i < len(args)-1 {
				return nil
			}
			return enterSandbox(c, all)
		})
		if err != nil {
			done()
			return nil, nil, err
		}
		closers = append(closers, closeOne)
		runs = append(runs, deviate.Run{Name: path, Cursor: g})
	}
	return runs, done, nil
}

// deviateError gives an error its advice.
func deviateError(err error) error {
	switch {
	case replay.Unmatched(err), isDamage(err):
		return err
	case errors.Is(err, deviate.ErrNoFault), errors.Is(err, debug.ErrNoCriterion):
		return withHint(err, exitUsage, "--at and --expr say when and what is wrong in it; the bad run is named last")
	}
	return sliceError(err)
}
