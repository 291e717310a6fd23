package differential

import (
	"testing"

	"vplay/replay/x86"
)

// TestBlocksLikeSteps: cases of each row, and sequences, come to the same by blocks as
// instruction by instruction, with cold and with warm translations.
func TestBlocksLikeSteps(t *testing.T) {
	eachReference(t, func(t *testing.T, id *x86.CPUIdentity) {
		steps, blocks := NewEmulator(id), NewEmulator(id)
		steps.SetEngine(x86.StepEngine{})
		likeSteps(t, steps, blocks, 30, 4000)
	})
}

// likeSteps compares the cases of testdata, n of each row, and sequences by blocks with those by
// steps.
func likeSteps(t *testing.T, steps, blocks *Emulator, n, sequences int) {
	t.Helper()
	g := NewGenerator(21, steps.ID())
	check := func(k *Case) {
		want := steps.Run(k)
		for i, got := range blocks.RunBlocks(k, 3) {
			if d := Diff(k, &want, &got); d != "" {
				t.Errorf("time %d: %s\n\t%s", i, k.Line(&want), d)
			}
		}
	}
	for _, r := range references {
		if r.id != steps.ID() {
			continue
		}
		for _, line := range r.lines(t) {
			k, _, err := ParseLine(line)
			if err != nil {
				t.Fatal(err)
			}
			check(k)
		}
	}
	for i := range x86.Rows() {
		if i == 0 || WhyNotRun(&x86.Rows()[i]) != "" {
			continue
		}
		for range n {
			check(g.Case(i))
		}
		if t.Failed() {
			return
		}
	}
	body, readers := SequenceRows()
	for range sequences {
		check(g.Sequence(body, readers))
		if t.Failed() {
			return
		}
	}
}
