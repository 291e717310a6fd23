package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"vplay/replay"
	"vplay/replay/x86"
	"vplay/replay/x86/jit"
)

// Replay by generated code: the flag --jit, and what doctor finds.

const jitFlag = "jit"

// addJITFlag adds --jit to all verbs. $VPLAY_JIT=1 is the same, for tests and scripts.
func addJITFlag(root *cobra.Command) {
	on, _ := strconv.ParseBool(os.Getenv("VPLAY_JIT"))
	root.PersistentFlags().Bool(jitFlag, on, "replay by code of this machine's own, where that can be made (or $VPLAY_JIT=1; experimental)")
}

// engines returns what makes the engines of a session: those of generated code, where the command line
// says so, else nil. It must be called before the sandbox is entered, which allows no
// executable memory. $VPLAY_JIT_MAX bounds how much is translated, to find out what is
// translated wrongly.
func engines(c *cobra.Command) (replay.EngineMaker, error) {
	if on, _ := c.Flags().GetBool(jitFlag); !on {
		return nil, nil
	}
	pool, err := jit.Open()
	if err != nil {
		return nil, withHint(err, exitMachine, "without --%s the interpreter replays it, more slowly", jitFlag)
	}
	if v := os.Getenv("VPLAY_JIT_MAX"); v != "" {
		if pool.Max, err = strconv.ParseUint(v, 10, 64); err != nil {
			return nil, usageError{fmt.Errorf("VPLAY_JIT_MAX: %w", err)}
		}
	}
	log := logger(c, "jit")
	return func(cpu *x86.CPU) (x86.Engine, func()) {
		e := pool.Engine(cpu)
		if e == nil {
			return nil, nil
		}
		return e, func() {
			for _, f := range e.Faults {
				log.Error().Str("pc", fmt.Sprintf("%#x", f.PC)).Hex("bytes", f.Bytes).
					Msg("internal error: generated code faulted, and was interpreted instead; please report it")
			}
			log.Debug().Any("counts", e.Stats).Msg("generated code")
			e.Close()
		}
	}, nil
}

// jitFinding says whether this machine can execute generated code.
func jitFinding() finding {
	if _, err := jit.Open(); err != nil {
		return ok(jitFlag, "none, the interpreter replays: %v", err)
	}
	return ok(jitFlag, "replay can execute generated code (--%s)", jitFlag)
}
