package tool

import (
	"fmt"
	"os"

	"vplay/replay"
	"vplay/replay/x86/jit"
)

// Replay by generated code, for tests that are the same with every engine.

// Translated returns what makes engines that translate all code at first sight. report is called for each fault in
// such code, which is a mistake of the translator. The error says why this machine has none.
func Translated(report func(format string, args ...any)) (replay.EngineMaker, error) {
	return translated(report, true)
}

func translated(report func(format string, args ...any), all bool) (replay.EngineMaker, error) {
	pool, err := jit.Open()
	if err != nil {
		return nil, err
	}
	return pool.Maker(all, func(e *jit.Engine) {
		for _, f := range e.Faults {
			report("generated code faulted at %#x: % x", f.PC, f.Bytes)
		}
	}), nil
}

// chosen returns what makes the engines of a test, as VPLAY_JIT says it to vplayd: 0 is the interpreter, with "all" all
// code is translated at first sight, and else what is hot is, where this machine can.
func chosen(report func(format string, args ...any)) (replay.EngineMaker, error) {
	choice := os.Getenv("VPLAY_JIT")
	if choice == "0" {
		return nil, nil
	}
	m, err := translated(report, choice == "all")
	if err != nil && choice != "all" {
		return nil, nil //nolint:nilerr // as vplayd does without it
	}
	if err != nil {
		return nil, fmt.Errorf("VPLAY_JIT: %w", err)
	}
	return m, nil
}
