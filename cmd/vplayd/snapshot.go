package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
)

// The verb snapshot on every system: its flags and help. What it asks of a recorder is in
// snapshot_linux_amd64.go.

func newSnapshot() *cobra.Command {
	var f recordFlags
	c := &cobra.Command{
		Use:   "snapshot [flags] PID",
		Short: "write what a recorder holds by now, while the program runs on",
		Long: `Snapshot has a running vplayd record or vplayd attach write the last seconds,
which it holds in memory, to a file: a recording of how the program came to where
it is now. The program stands still for some milliseconds, while what it has
changed in memory lately is written, and runs on and is recorded on while the
rest is. PID is the process of the recorder or of the program.

The recorder writes the file, with its privileges. It is asked by a socket in
/run/user/UID/vplay, or /tmp/vplay-UID where there is no such folder, which only
its own user and root may enter. With --keep always there is nothing to ask for:
all is in the file already.

A process is written at the end of a system call, while it waits in one, or, when
it makes none, where its interval is ended for it: some milliseconds later.`,
		Example: `  vplayd snapshot $(pidof redis-server)
  vplayd snapshot -o slow.vplay 1234`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{withHint(errors.New("name one process"), exitUsage, "vplayd snapshot PID, of the recorder or of the program")}
			}
			pid, err := strconv.Atoi(args[0])
			if err != nil || pid <= 0 {
				return usageError{withHint(fmt.Errorf("%q is not the number of a process", args[0]), exitUsage, "pgrep -a NAME finds it")}
			}
			return snapshot(pid, f)
		},
	}
	c.Flags().StringVarP(&f.out, "output", "o", "", "`FILE` to write (default: PROGRAM-N.vplay)")
	c.Flags().BoolVarP(&f.force, "force", "f", false, "replace the recording if it exists")
	c.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "say nothing but errors")
	return c
}
