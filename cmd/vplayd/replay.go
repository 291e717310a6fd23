package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/spf13/cobra"

	"vplay/gdbstub"
)

// The verb replay, which serves a recording on a port of its own and starts gdb on it. The
// other debugger that it starts, dlv, is in replaydelve.go.

// maxAttached is how many processes replay lets gdb attach to by itself: each takes gdb
// about as long as a connection.
const maxAttached = 8

// connectGDB returns the arguments with which gdb connects and loads the commands. gdb has
// several processes when it attaches to them, which the extended protocol is for.
func connectGDB(addr string, pids []int) []string {
	if len(pids) == 1 {
		return []string{"-ex", "target remote " + addr, "-ex", loadPython}
	}
	attach := "vplay inferiors"
	if len(pids) > maxAttached {
		attach += fmt.Sprint(" ", pids[0])
	}
	return []string{"-ex", "target extended-remote " + addr, "-ex", loadPython, "-ex", attach}
}

func newReplay() *cobra.Command {
	var f serveFlags
	var gdb string
	c := &cobra.Command{
		Use:   "replay [flags] [RECORDING] [-- GDB-ARGUMENTS...]",
		Short: "start gdb on a recording, or dlv",
		Long: `Replay serves a recording on a port of its own and starts gdb on it. It ends
with gdb. What stands behind -- goes to gdb. $VPLAY_GDB names another gdb. The
commands of "vplayd help gdb-commands" are loaded. Of a recording of several processes
gdb has all as inferiors, up to 8: "info inferiors", "inferior N"; with more, "vplay
inferiors PID" attaches to another one. There is no sandbox here, as around
serve: gdb runs as your own program.

With --debugger dlv it starts Delve on the recording of a Go program, "dlv replay" with
vplayd in the place of rr: see vplayd help rr-compat. Where the kernel keeps performance
counters from users, which rr needs and dlv looks after, dlv gets a mount namespace that
says otherwise.`,
		Example: "  vplayd replay sort-1.vplay\n  vplayd replay sort-1.vplay -- -batch -ex bt\n  vplayd replay --process 4711 make-1.vplay\n  vplayd replay -d dlv server-1.vplay",
		RunE: func(c *cobra.Command, args []string) error {
			n := c.ArgsLenAtDash()
			if n < 0 {
				n = len(args)
			}
			if n > 1 {
				return usageError{withHint(fmt.Errorf("%d recordings named", n), exitUsage, "arguments for gdb stand behind --")}
			}
			if isDelve(gdb) {
				return replayDelve(args[:n], args[n:], gdb, f)
			}
			return replayGDB(c, args[:n], args[n:], gdb, f)
		},
	}
	f.add(c)
	c.Flags().StringVarP(&gdb, "debugger", "d", envOr("VPLAY_GDB", "gdb"), "the `GDB` to start")
	return c
}

func envOr(name, def string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return def
}

func replayGDB(c *cobra.Command, args, gdbArgs []string, gdb string, f serveFlags) error {
	path, err := exec.LookPath(gdb)
	if err != nil {
		return withHint(fmt.Errorf("cannot find %s", gdb), exitMachine, "apt-get install gdb, or name one with --debugger or $VPLAY_GDB")
	}
	rec, err := recordingPath(args)
	if err != nil {
		return err
	}
	g, closeAll, err := openServed(c, rec, f, nil)
	if err != nil {
		return err
	}
	defer closeAll()
	sayNoLines(c, g.Cursor)
	server := gdbstub.New(g, gdbstub.Options{Log: stubLog(c)})
	l, err := listen(c, serveFlags{listen: "127.0.0.1:0"})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = serveOn(ctx, server, l, g.Recording().Budget()) // gdb says what it sees of it
	}()
	cmd := exec.Command(path, slices.Concat([]string{"-q"}, connectGDB(l.Addr().String(), g.PIDs()), gdbArgs)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	cancel()
	<-done
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exitError{exit.ExitCode()}
	}
	return err
}
