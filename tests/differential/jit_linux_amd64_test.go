package differential

import (
	"slices"
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
// host's kind and for others, and as on a host whose code may not set the base of GS.
func TestTranslatedLikeSteps(t *testing.T) {
	run := func(t *testing.T, id *x86.CPUIdentity, noGS bool) {
		steps, blocks := NewEmulator(id), NewEmulator(id)
		steps.SetEngine(x86.StepEngine{})
		e := translated(t, blocks)
		e.NoGS = e.NoGS || noGS
		blocks.SetEngine(e)
		likeSteps(t, steps, blocks, 30, 4000)
	}
	eachReference(t, func(t *testing.T, id *x86.CPUIdentity) { run(t, id, false) })
	t.Run("host", func(t *testing.T) { run(t, hostIdentity(t), false) })
	t.Run("host without GS", func(t *testing.T) { run(t, hostIdentity(t), true) })
}

// TestTranslatedExceptions: a floating-point exception that the program does not mask is raised by the host in generated code, and
// told as the interpreter tells it.
func TestTranslatedExceptions(t *testing.T) {
	id := hostIdentity(t)
	steps, blocks := NewEmulator(id), NewEmulator(id)
	steps.SetEngine(x86.StepEngine{})
	e := translated(t, blocks)
	blocks.SetEngine(e)
	g := NewGenerator(4, id)
	raised, cases := 0, 0
	for i := range x86.Rows() {
		r := &x86.Rows()[i]
		if i == 0 || WhyNotRun(r) != "" || !slices.ContainsFunc(r.Implied, func(o x86.Implied) bool { return o.Name == "mxcsr" }) {
			continue
		}
		for range 40 {
			k := g.Case(i)
			k.In.MXCSR &^= 0x1f80 // the masks
			want := steps.Run(k)
			if cases++; want.Trap.Taken && want.Trap.Vector == 19 { // #XM
				raised++
			}
			for n, got := range blocks.RunBlocks(k, 3) {
				if d := Diff(k, &want, &got); d != "" {
					t.Fatalf("time %d: %s\n\t%s", n, k.Line(&want), d)
				}
			}
		}
	}
	t.Logf("%d of %d cases fault", raised, cases)
	if raised < cases/10 || id.Vendor == x86.VendorAMD && e.Stats.Raised == 0 { // Intel's vectors are the interpreter's
		t.Errorf("%d of %d cases fault, %d of them in generated code", raised, cases, e.Stats.Raised)
	}
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
