package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"vplay/cmd/vplayd/internal/sandbox"
)

// A verb that reads a recording opens what it needs, enters a sandbox, and works in it.
// Those that start another program (replay, demo with gdb) or trace one (verify
// --lockstep) cannot.

const noSandbox = "no-sandbox"

func addSandboxFlag(c *cobra.Command) {
	c.Flags().Bool(noSandbox, false, "do not give up the rights that reading a recording does not need")
}

// enterSandbox gives up all but a, unless the command line says otherwise. Where this
// system has no sandbox, or a part of one, it goes on without: doctor says so.
func enterSandbox(c *cobra.Command, a sandbox.Access) error {
	if off, _ := c.Flags().GetBool(noSandbox); off {
		return nil
	}
	log := logger(c, "sandbox")
	state, err := sandbox.Enter(a)
	if err != nil {
		return withHint(err, exitMachine, "vplayd doctor says what this machine has; --%s does without", noSandbox)
	}
	log.Debug().AnErr("landlock", state.Landlock).AnErr("seccomp", state.Seccomp).Strs("read", a.Read).Strs("write", a.Write).Msg("sandbox entered")
	return nil
}

// sandboxFinding says what doctor has found of it.
func sandboxFinding() finding {
	const name = "sandbox"
	s := sandbox.Check()
	var why []string
	for _, err := range []error{s.Landlock, s.Seccomp} {
		if err != nil {
			why = append(why, err.Error())
		}
	}
	switch {
	case len(why) == 0:
		return ok(name, "Landlock and seccomp surround the replay of recordings")
	case s.Landlock == nil:
		return lack(name, "Landlock alone surrounds the replay of recordings: "+why[0], "")
	case s.Seccomp == nil:
		return lack(name, "seccomp alone surrounds the replay of recordings: "+why[0], "Landlock is in Linux 5.13 and later, with landlock among the lsm= of the boot")
	}
	return lack(name, fmt.Sprintf("nothing surrounds the replay of recordings: %s", strings.Join(why, "; ")), "replay recordings of strangers in a container or as a user of their own")
}
