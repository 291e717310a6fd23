package main

import (
	_ "embed"
	"io"

	"github.com/spf13/cobra"

	"vplay/replay/debug"
)

// The verb gdb-commands, which prints vplay's commands for gdb. The Python file itself
// is in package replay/debug.

// loadPython is the gdb command that loads the file over the connection.
const loadPython = "python exec(gdb.execute('monitor python', to_string=True))"

func newGDBCommands() *cobra.Command {
	return &cobra.Command{
		Use:   "gdb-commands",
		Short: "print a Python file with vplay's commands for gdb",
		Long: `Gdb-commands prints a Python file that gdb reads with its command "source". It
adds the command vplay, with help and completion for each of these:

  vplay when                  the present position
  vplay seek WHERE            move to a position, an event, 50%, begin, crash
  vplay last-write EXPR       the store that gave EXPR its value
  vplay writes EXPR [N]       the last N stores to it; vplay reads: loads
  vplay calls FUNCTION [N]    the last N calls, with positions and arguments
  vplay first-exec WHERE      the first time that a place was executed
  vplay events [N]            system calls, signals, faults before here
  vplay why EXPR              was this byte captured?
  vplay run SCRIPT [ARG...]   a script over the whole recording: vplayd help run
  vplay goroutines [N]        the goroutines of a Go program; one with its stack
  vplay modules, vplay pages  what is in memory, and what was captured of it

Each answer begins with a position for vplay seek. Ctrl-C ends a long one. For
scripts, "monitor last-write --json ADDRESS" and the others that answer print one JSON
object for each answer. The file also makes gdb's checkpoint, info checkpoints, restart
and delete checkpoint work on recordings. vplayd replay loads it by itself. After a plain
"target remote" this does the same, without any file:

  (gdb) ` + loadPython,
		Example: "  vplayd gdb-commands > vplay.py\n  gdb -ex 'target remote :1234' -ex 'source vplay.py'",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := io.WriteString(c.OutOrStdout(), debug.GDBPython)
			return err
		},
	}
}
