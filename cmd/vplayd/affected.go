package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"vplay/replay"
	"vplay/replay/analysis/taint"
	"vplay/replay/debug"
)

// The verb affected: what a value reached, as a list or as JSON.

type affectedFlags struct {
	serveFlags
	values, asJSON bool
	thread, rows   int
}

func newAffected() *cobra.Command {
	var f affectedFlags
	c := &cobra.Command{
		Use:   "affected [flags] RECORDING EXPR",
		Short: "what a value reached: lines, branches, outputs, and the crash (taint)",
		Long: `Affected goes forward from a value through everything that was made of it, by
registers, flags, memory, system calls, threads and signal handlers, up to the end of
the recording. It is the other way round than slice.

EXPR is a C expression (a variable as x or p->next, in the innermost frame that knows
it), a register as $rax, an address and a length as 0x7ffe1000,8, or input: what the
first call of read(2), recv(2) and their like brought, or input:3: all that was read
from descriptor 3; what the dynamic linker reads is left out.

With --at the value is followed from that moment on. Without it the expression is
evaluated at the end of the recording, and what is in memory is followed from where it
was written last; a register needs --at. Input is looked for from the beginning.

Rows are in the order in which they were reached first. Each has its number, a
position that "seek" and --at take, and how often it was reached, with the last time:

  input     a call that brought what is followed
  code      a source line, or an instruction where no line is known, and what it made
  branch    a conditional jump that depended on the value
  target    an indirect jump or call that went where the value said
  output    bytes of the value that a system call was handed, as those of write(1)
  argument  a system call's argument
  crash     registers, or memory, that the program died of

An instruction's result depends on what it computed with and on what the address was
made of that it loaded from or stored to; --values leaves out the addresses, which is
less where the value is an index or a pointer. Bits that cannot change are left out: x
& 1 depends on one bit of x. The stack pointer, and the frame pointer, are taken as
known. What was executed because of a branch, and not otherwise, is not counted as
made of the value.

Exit codes: 0 done, 1 the value is not known, or it reached more than memory holds, 2
wrong use, 3 replay and recording differ, 4 the recording is damaged, 130 Ctrl-C.`,
		Example: `  vplayd affected --symbols build server-1.vplay input
  vplayd affected --values --at 3:1200.0 server-1.vplay 'req->length'
  vplayd affected --json server-1.vplay 0x7ffe1000,16`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return runAffected(c, args, &f) },
	}
	f.symbols.add(c)
	addSandboxFlag(c)
	addProcessFlag(c, "the one that the recording is about")
	c.Flags().StringVar(&f.at, "at", "", "the `MOMENT` from which the value is followed, as \"monitor seek\" takes it (default: where it was written last)")
	c.Flags().IntVar(&f.thread, "thread", 0, "the thread whose registers and variables are meant, by its `NUMBER` (default: the one that runs there)")
	c.Flags().BoolVar(&f.values, "values", false, "leave out what was only loaded or stored through an address that is affected")
	c.Flags().IntVarP(&f.rows, "rows", "n", 100, "how many rows are shown; of code the first ones")
	c.Flags().BoolVar(&f.asJSON, "json", false, "one JSON object")
	c.Flags().Int64Var(&f.memory, "memory", 0, "guest memory kept for going back quickly, in `MiB` (default: a quarter of this machine's)")
	return c
}

func runAffected(c *cobra.Command, args []string, f *affectedFlags) error {
	if f.rows < 1 || f.rows > maxSliceRows {
		return usageError{withHint(fmt.Errorf("--rows %d", f.rows), exitUsage, "1 to %d", maxSliceRows)}
	}
	at := f.at
	if at == "" {
		at = "end"
	}
	g, done, err := openAt(c, args[0], at, f.serveFlags)
	if err != nil {
		return err
	}
	defer done()
	line := newProgress(false)
	a, err := g.Affected(c.Context(), debug.AffectedQuery{
		Expr: args[1], TID: f.thread, Here: f.at != "", Values: f.values, Most: f.rows,
		Progress: func(s string) { line.show("following: %s", s) },
	})
	line.done()
	switch {
	case c.Context().Err() != nil:
		return c.Context().Err()
	case err != nil:
		return affectedError(err)
	case f.asJSON:
		return encodeLine(c.OutOrStdout(), a)
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), a)
	return err
}

// affectedError gives an error its advice.
func affectedError(err error) error {
	switch {
	case replay.Unmatched(err), isDamage(err):
		return err
	case errors.Is(err, debug.ErrMoment):
		return withHint(err, exitFailed, pastHint)
	case errors.Is(err, debug.ErrNoValue):
		return withHint(err, exitUsage, "EXPR is a C expression, a register as '$rax', ADDRESS,LENGTH, input or input:FD")
	case errors.Is(err, taint.ErrTooMuch):
		return withHint(err, exitFailed, "--values follows less, and so does a smaller value")
	}
	return withHint(err, exitFailed, "EXPR is a C expression of the innermost frame, a register as '$rax', ADDRESS,LENGTH, input or input:FD")
}
