package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// finding is one thing that doctor has looked at.
type finding struct {
	Name string `json:"name"`
	// State is ok, lack (less comfort, or slower), or fail (recording does not
	// work).
	State string `json:"state"`
	Value string `json:"value"`
	Hint  string `json:"hint,omitempty"`
}

func ok(name, format string, args ...any) finding {
	return finding{Name: name, State: "ok", Value: fmt.Sprintf(format, args...)}
}

func lack(name, value, hint string) finding {
	return finding{Name: name, State: "lack", Value: value, Hint: hint}
}

func fail(name, value, hint string) finding {
	return finding{Name: name, State: "fail", Value: value, Hint: hint}
}

func newDoctor() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "tell what this machine can do, and what helps where it cannot",
		Long: `Doctor looks at what recording and replaying need: the kernel, whether ptrace
is allowed, for a program that is started and for one that runs already (vplayd
attach), whether RDTSC and CPUID can be trapped, what the page map tells, gdb,
the space in this folder, and whether replay is by code generated for this
machine or by the interpreter.
Then it records a tiny program and replays the recording, which is the proof.
Each lack comes with what can be done.

Replay needs none of it: it works wherever vplayd runs.

When a recorder is killed outright (SIGKILL), no recording is written. A second
process of vplayd, the guardian, then lets the program go on by itself. Where the
program has set its own action for SIGSEGV, a thread that executes RDTSC or CPUID at
that very moment dies all the same.

Exit codes: 0 recording works here, 5 it does not.`,
		Example: "  vplayd doctor\n  vplayd doctor --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return doctor(c.Context(), c.OutOrStdout(), asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return c
}

func doctor(ctx context.Context, out io.Writer, asJSON bool) error {
	found := append([]finding{ok("vplayd", "%v, %d CPUs", thisBuild(), runtime.NumCPU())}, machineFindings(ctx)...)
	found = append(found, sandboxFinding(), jitFinding(), gdbFinding(ctx), terminalFinding())
	works := true
	for _, f := range found {
		works = works && f.State != "fail"
	}
	if asJSON {
		if err := encodeLine(out, map[string]any{"records": works, "replays": true, "findings": found}); err != nil {
			return err
		}
	} else {
		printFindings(out, found, works)
	}
	if !works {
		return exitError{exitMachine}
	}
	return nil
}

func printFindings(out io.Writer, found []finding, works bool) {
	for _, f := range found {
		fmt.Fprintf(out, "%-5s %-15s %s\n", f.State, f.Name, f.Value)
		if f.Hint != "" {
			fmt.Fprintf(out, "      %-15s hint: %s\n", "", f.Hint)
		}
	}
	if works {
		fmt.Fprintln(out, "recording and replay work here")
	} else {
		fmt.Fprintln(out, "replay works here, recording does not")
	}
}

// gdbFinding looks for gdb and asks for its version.
func gdbFinding(ctx context.Context) finding {
	path, err := exec.LookPath(envOr("VPLAY_GDB", "gdb"))
	if err != nil {
		return lack("gdb", "not found", "apt-get install gdb; or debug from another machine over ssh -L 1234:127.0.0.1:1234")
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	b, err := exec.CommandContext(ctx, path, "-nx", "--version").Output()
	if err != nil {
		return lack("gdb", fmt.Sprintf("%s does not run: %v", path, err), "name another with $VPLAY_GDB")
	}
	first, _, _ := strings.Cut(string(b), "\n")
	return ok("gdb", "%s (%s)", first, path)
}

func terminalFinding() finding {
	if !isTerminal(os.Stderr) {
		return ok("terminal", "none on standard error: no progress bars, logs as JSON")
	}
	return ok("terminal", "%s", envOr("TERM", "of an unknown kind"))
}
