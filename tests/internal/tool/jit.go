package tool

import (
	"fmt"
	"os"
	"strconv"

	"vplay/replay"
	"vplay/replay/x86"
	"vplay/replay/x86/jit"
)

// Replay by generated code, for tests that are the same with every engine.

// Translated returns what makes engines of generated code. report is called for each fault in
// such code, which is a mistake of the translator. The error says why this machine has none.
func Translated(report func(format string, args ...any)) (replay.EngineMaker, error) {
	pool, err := jit.Open()
	if err != nil {
		return nil, err
	}
	return func(c *x86.CPU) (x86.Engine, func()) {
		e := pool.Engine(c)
		if e == nil {
			return nil, nil
		}
		return e, func() {
			for _, f := range e.Faults {
				report("generated code faulted at %#x: % x", f.PC, f.Bytes)
			}
			e.Close()
		}
	}, nil
}

// chosen returns what makes the engines of a test: with VPLAY_JIT=1, as for vplayd, those of generated code.
func chosen(report func(format string, args ...any)) (replay.EngineMaker, error) {
	if on, _ := strconv.ParseBool(os.Getenv("VPLAY_JIT")); !on {
		return nil, nil
	}
	m, err := Translated(report)
	if err != nil {
		return nil, fmt.Errorf("VPLAY_JIT: %w", err)
	}
	return m, nil
}
