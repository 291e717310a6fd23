package differential

import (
	"testing"

	"vplay/replay/x86"
	"vplay/replay/x86/jit"
)

// TestTranslatedLikeSteps: cases of each row, and sequences, come to the same in generated code
// as instruction by instruction, with cold and with warm translations; for a CPU of the
// host's kind and for others.
func TestTranslatedLikeSteps(t *testing.T) {
	pool, err := jit.Open()
	if err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, id *x86.CPUIdentity) {
		steps, blocks := NewEmulator(id), NewEmulator(id)
		steps.SetEngine(x86.StepEngine{})
		e := pool.Engine(blocks.cpu)
		defer e.Close()
		e.Threshold, e.All = 0, true
		blocks.SetEngine(e)
		likeSteps(t, steps, blocks, 30, 4000)
		for _, f := range e.Faults {
			t.Errorf("generated code faulted at %#x: % x", f.PC, f.Bytes)
		}
		t.Logf("%+v", e.Stats)
	}
	eachReference(t, run)
	t.Run("host", func(t *testing.T) { run(t, hostIdentity(t)) })
}
