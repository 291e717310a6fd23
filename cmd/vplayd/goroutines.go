package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"vplay/dwarf"
	"vplay/replay/debug"
	"vplay/replay/debug/text"
)

// The verb goroutines: the goroutines of a Go program at a moment. They are read in
// package dwarf and looked up in replay/debug.

// goroutineFlags are the flags of goroutines.
type goroutineFlags struct {
	serveFlags
	asJSON, stacks bool
}

func newGoroutines() *cobra.Command {
	var f goroutineFlags
	c := &cobra.Command{
		Use:   "goroutines [flags] [RECORDING]",
		Short: "list the goroutines of a Go program",
		Long: `Goroutines lists the goroutines of a recorded Go program where the recording
ends, or at another moment with --at: the number, what it does (running on a thread, in
a system call, runnable, or waiting, and for what), where it is in code that is not the
runtime's, the go statement that made it and in which goroutine, and its labels (of
runtime/pprof.Do; Go 1.24 and later). -t adds the stacks.

It takes the program's debug information, which is not in the recording: the
program's file is looked for as serve does, by its build-id, at its path and in the
--symbols folders. Goroutines that have ended are left out. What was not captured is an
error in the place of that goroutine; recordings that were slimmed lack what the
program did not touch in the time they hold.

--at takes what "monitor seek" takes: a position I:N.S, begin, end, 50%, or a number of
an event ("event 100"). In gdb the same list is "monitor goroutines", and Delve debugs
recordings with "dlv replay" (vplayd help rr-compat).`,
		Example: "  vplayd goroutines server-1.vplay\n  vplayd goroutines -t --at 50% server-1.vplay\n  vplayd goroutines --json server-1.vplay | jq 'select(.status == \"waiting\") | .user.function'",
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return goroutines(c, args, &f) },
	}
	f.symbols.add(c)
	addSandboxFlag(c)
	c.Flags().BoolVar(&f.asJSON, "json", false, "one JSON object a line")
	c.Flags().BoolVarP(&f.stacks, "stacks", "t", false, "with the stacks, 64 frames at most of each")
	c.Flags().StringVar(&f.at, "at", "end", "the `MOMENT`")
	c.Flags().Int64Var(&f.memory, "memory", 0, "guest memory kept for going back quickly, in `MiB` (default: a quarter of this machine's)")
	return c
}

func goroutines(c *cobra.Command, args []string, f *goroutineFlags) error {
	path, err := recordingPath(args)
	if err != nil {
		return err
	}
	g, done, err := openAt(c, path, f.at, f.serveFlags)
	if err != nil {
		return err
	}
	defer done()
	list, more, err := g.Goroutines(c.Context(), f.stacks)
	switch {
	case errors.Is(err, dwarf.ErrNoGoroutines):
		return withHint(fmt.Errorf("%s: %w was found", path, err), exitFailed,
			"is it a Go program, built without -ldflags=-w? Name the folder of its file with --symbols FOLDER")
	case err != nil:
		return err
	}
	return printGoroutines(c.OutOrStdout(), list, more, f.asJSON)
}

// printGoroutines writes a goroutine a line, with its stack below it.
func printGoroutines(out io.Writer, list []debug.Goroutine, more int, asJSON bool) error {
	for i := range list {
		if asJSON {
			if err := encodeLine(out, &list[i]); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintln(out, list[i]); err != nil {
			return err
		}
	}
	switch {
	case asJSON:
	case len(list) == 0:
		fmt.Fprintln(out, "there is no goroutine")
	case more > 0:
		fmt.Fprintf(out, "and %s more\n", text.Plural(more, "goroutine"))
	}
	return nil
}
