package differential

import (
	"testing"

	"vplay/replay/x86"
	"vplay/replay/x86/jit"
)

// translated returns an engine for the length of a test that translates all code of e at first sight.
func translated(t testing.TB, e *Emulator) *jit.Engine {
	t.Helper()
	pool, err := jit.Open()
	if err != nil {
		t.Fatal(err)
	}
	g := pool.Engine(e.cpu)
	g.Eager()
	t.Cleanup(func() {
		for _, f := range g.Faults {
			t.Errorf("generated code faulted at %#x: % x", f.PC, f.Bytes)
		}
		t.Logf("%+v", g.Stats)
		g.Close()
	})
	return g
}

// TestTranslatedLikeSteps: cases of each row, and sequences, come to the same in generated code
// as instruction by instruction, with cold and with warm translations; for a CPU of the
// host's kind and for others.
func TestTranslatedLikeSteps(t *testing.T) {
	run := func(t *testing.T, id *x86.CPUIdentity) {
		steps, blocks := NewEmulator(id), NewEmulator(id)
		steps.SetEngine(x86.StepEngine{})
		blocks.SetEngine(translated(t, blocks))
		likeSteps(t, steps, blocks, 30, 4000)
	}
	eachReference(t, run)
	t.Run("host", func(t *testing.T) { run(t, hostIdentity(t)) })
}

// TestTranslatedDivision: divisions as compilers make them, which generated code executes itself, and
// those it must not.
func TestTranslatedDivision(t *testing.T) {
	id := hostIdentity(t)
	steps, blocks := NewEmulator(id), NewEmulator(id)
	steps.SetEngine(x86.StepEngine{})
	e := translated(t, blocks)
	blocks.SetEngine(e)
	r := newRandom(9, 9)
	codes := [][]byte{
		{0x31, 0xd2, 0xf7, 0xf1}, {0x31, 0xd2, 0x48, 0xf7, 0xf1}, {0x99, 0xf7, 0xf9}, {0x48, 0x99, 0x48, 0xf7, 0xf9}, // by ecx, rcx
		{0x31, 0xd2, 0x49, 0xf7, 0xf5}, {0x48, 0x99, 0x49, 0xf7, 0xfd}, {0x99, 0xf7, 0xf8}, {0x99, 0xf7, 0xfa}, // by r13, eax, edx
		{0x31, 0xd2, 0x48, 0xf7, 0x36}, {0x99, 0xf7, 0x3e}, // by memory at rsi
	}
	const n = 20000
	for range n {
		k := &Case{Row: -1, In: DefaultRegs(), Offset: 0x800, Steps: 2}
		k.Code = codes[r.IntN(len(codes))]
		k.In.RIP = CodeBase + uint64(k.Offset)
		for _, x := range []int{x86.RAX, x86.RCX, x86.R13} {
			k.In.R[x] = []uint64{r.Uint64(), r.Uint64() >> 33, uint64(r.IntN(3)) - 1, 1 << 63, 1 << 31}[r.IntN(5)]
		}
		k.In.R[x86.RSI] = pageAddress(0) + 8*uint64(r.IntN(500))
		want := steps.Run(k)
		for i, got := range blocks.RunBlocks(k, 2) {
			if d := Diff(k, &want, &got); d != "" {
				t.Fatalf("time %d: %s\n\t%s", i, k.Line(&want), d)
			}
		}
	}
	if e.Stats.Handled > n {
		t.Errorf("%+v", e.Stats)
	}
}
