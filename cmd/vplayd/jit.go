package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"vplay/replay"
	"vplay/replay/mem"
	"vplay/replay/x86/jit"
)

// What executes a recording's instructions: code generated for this machine where that can be made, else the
// interpreter. The flag --no-jit, and what doctor, info and the monitor say of it.

const noJIT = "no-jit"

// The variable that chooses the engine, for scripts and tests, and what it may be: "0" is as --no-jit, and
// with "all" each instruction is translated when it is first executed, and a machine that
// cannot is an error.
const (
	jitVariable = "VPLAY_JIT"
	jitAll      = "all"
)

// addJITFlag adds --no-jit to all verbs.
func addJITFlag(root *cobra.Command) {
	root.PersistentFlags().Bool(noJIT, false, "replay by the interpreter alone, not by code generated for this machine (or $"+jitVariable+"=0)")
}

// engine is what executes the instructions of a session.
type engine struct {
	maker replay.EngineMaker // nil: the interpreter
	why   string             // that it is the interpreter
	pool  *jit.Pool
}

// chooseEngine returns the engine for what the command replays. It must be called before the sandbox is entered, which
// allows no executable memory. $VPLAY_JIT_MAX bounds how much is translated, to find out
// what is translated wrongly.
func chooseEngine(c *cobra.Command) (engine, error) {
	collectLater()
	chosen := os.Getenv(jitVariable)
	off, _ := c.Flags().GetBool(noJIT)
	if on, err := strconv.ParseBool(chosen); off || err == nil && !on {
		return engine{why: "as --" + noJIT + " wants it"}, nil
	}
	mem.Prepare()
	pool, err := jit.Open()
	if err != nil {
		if chosen == jitAll {
			return engine{}, withHint(err, exitMachine, "without $%s=%s the interpreter replays it", jitVariable, jitAll)
		}
		log := logger(c, "jit")
		log.Debug().Err(err).Msg("the interpreter replays")
		return engine{why: err.Error()}, nil
	}
	if v := os.Getenv("VPLAY_JIT_MAX"); v != "" {
		if pool.Max, err = strconv.ParseUint(v, 10, 64); err != nil {
			return engine{}, usageError{fmt.Errorf("VPLAY_JIT_MAX: %w", err)}
		}
	}
	return engine{maker: translators(c, pool, chosen == jitAll), pool: pool}, nil
}

// translators returns what makes engines of pool, for c's log.
func translators(c *cobra.Command, pool *jit.Pool, all bool) replay.EngineMaker {
	log := logger(c, "jit")
	return pool.Maker(all, func(e *jit.Engine) {
		for _, f := range e.Faults {
			log.Error().Str("pc", fmt.Sprintf("%#x", f.PC)).Hex("bytes", f.Bytes).
				Msg("internal error: generated code faulted, and was interpreted instead; please report it")
		}
		log.Debug().Any("counts", e.Stats).Msg("generated code")
	})
}

// use has s execute by e.
func (e engine) use(s *replay.Session) { s.Engine, s.EngineText = e.maker, e.String }

// String says which engine it is, and what it takes.
func (e engine) String() string {
	if e.maker == nil {
		return "the interpreter: " + e.why
	}
	n, most, bytes, each := e.pool.Usage()
	return fmt.Sprintf("generated code: %.1f MiB of it for %d of at most %d machines (%d MiB each); the interpreter where it is cold", float64(bytes)/(1<<20), n, most, each>>20)
}

// kind says which engine it is.
func (e engine) kind() string {
	if e.maker == nil {
		return e.String()
	}
	return "generated code (--" + noJIT + " has the interpreter do it)"
}

// jitFinding says whether this machine can execute generated code.
func jitFinding() finding {
	const name = "replay by"
	if off, err := strconv.ParseBool(os.Getenv(jitVariable)); err == nil && !off {
		return ok(name, "the interpreter: $%s is %s", jitVariable, os.Getenv(jitVariable))
	}
	if _, err := jit.Open(); err != nil {
		return lack(name, "the interpreter, which takes two to six times as long: "+err.Error(), "")
	}
	return ok(name, "code generated for this machine (--%s: by the interpreter)", noJIT)
}
