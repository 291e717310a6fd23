package differential

import (
	"testing"

	"vplay/replay/x86"
)

// TestModesAgree runs the same sequences in the emulator in one go, one
// instruction a call, and by Step: blocks, limits and single steps must come
// to the same state and the same count.
func TestModesAgree(t *testing.T) {
	n := 20000
	if testing.Short() {
		n = 2000
	}
	eachReference(t, func(t *testing.T, id *x86.CPUIdentity) {
		e := NewEmulator(id)
		g := NewGenerator(3, id)
		body, readers := SequenceRows()
		for range n / len(references) {
			k := g.Sequence(body, readers)
			whole, count := e.runBy(k, runWhole)
			for name, how := range map[string]runner{"one at a time": runSingly, "Step": runSteps} {
				o, c := e.runBy(k, how)
				if d := Diff(k, &whole, &o); d != "" || c != count {
					t.Fatalf("%s: %d instructions, Run: %d\n\t%s\n\t%s", name, c, count, k.Line(&whole), d)
				}
			}
		}
	})
}

// runner executes up to n instructions.
type runner func(c *x86.CPU, n uint64) x86.Exit

func runWhole(c *x86.CPU, n uint64) x86.Exit { return c.Run(n) }

func runSingly(c *x86.CPU, n uint64) x86.Exit {
	for c.Retired < n {
		if x := c.Run(c.Retired + 1); x != x86.ExitLimit {
			return x
		}
	}
	return x86.ExitLimit
}

func runSteps(c *x86.CPU, n uint64) x86.Exit {
	for c.Retired < n {
		if x := c.Step(); x != x86.ExitNone {
			return x
		}
	}
	return x86.ExitLimit
}

// runBy is Run with another way to execute; count is what has retired.
func (e *Emulator) runBy(k *Case, how runner) (o Outcome, count uint64) {
	placed := e.prepare(k)
	e.interpret(how(e.cpu, uint64(k.Steps)), &o)
	count = e.cpu.Retired
	e.finish(k, &o, placed)
	return o, count
}
