package x86_test

import (
	"testing"

	"vplay/replay/x86"
	"vplay/replay/x86/jit"
)

// translators gives each processor an engine of its own. At most eight exist at a time.
type translators struct {
	t      *testing.T
	pool   *jit.Pool
	of     map[*x86.CPU]*jit.Engine
	recent []*x86.CPU
	stats  jit.Stats
}

func (l *translators) engine(c *x86.CPU) *jit.Engine {
	if e := l.of[c]; e != nil {
		return e
	}
	if len(l.recent) == 8 {
		l.close(l.recent[0])
		l.recent = l.recent[1:]
	}
	e := l.pool.Engine(c)
	e.Eager()
	l.of[c], l.recent = e, append(l.recent, c)
	return e
}

func (l *translators) close(c *x86.CPU) {
	e := l.of[c]
	for _, f := range e.Faults {
		l.t.Errorf("generated code faulted at %#x: % x", f.PC, f.Bytes)
	}
	l.stats.Units += e.Stats.Units
	l.stats.Instructions += e.Stats.Instructions
	l.stats.Handled += e.Stats.Handled
	e.Close()
	delete(l.of, c)
}

func (l *translators) Run(c *x86.CPU, limit uint64) x86.Exit { return l.engine(c).Run(c, limit) }
func (l *translators) Invalidate(c *x86.CPU, page uint64)    { l.engine(c).Invalidate(c, page) }
func (l *translators) Breakpoint(c *x86.CPU, pc uint64)      { l.engine(c).Breakpoint(c, pc) }
func (l *translators) Reset(c *x86.CPU)                      { l.engine(c).Reset(c) }

// TestTranslated runs the interpreter's tests with every unit translated at first sight.
func TestTranslated(t *testing.T) {
	pool, err := jit.Open()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name string
		test func(*testing.T)
	}{
		{"blocks", x86.TestBlocksAgainstSteps}, {"limit", x86.TestRunLimit},
		{"kernels", x86.TestKernels}, {"breakpoints", x86.TestBreakpoints}, {"attention", x86.TestAttention},
		{"attention of a pair", x86.TestAttentionFused}, {"modified", x86.TestModifiedLoop}, {"indirect", x86.TestIndirect},
		{"interrupt", x86.TestInterrupt}, {"passes", x86.TestPass}, {"code", x86.TestOnCode},
		{"sieve", x86.TestSieve}, {"pages", x86.TestCrossPage}, {"self-modifying", x86.TestSelfModifying},
		{"exits", x86.TestExits},
		{"repeats", x86.TestRepAttention}, {"fault in a repeat", x86.TestRepFault},
	} {
		t.Run(x.name, func(t *testing.T) {
			l := &translators{t: t, pool: pool, of: map[*x86.CPU]*jit.Engine{}}
			defer x86.SetDefaultEngine(l)()
			x.test(t)
			for c := range l.of {
				l.close(c)
			}
			if l.stats.Units == 0 && x.name != "interrupt" {
				t.Error("nothing was translated")
			}
			t.Logf("%d units of %d instructions, %d went to handlers", l.stats.Units, l.stats.Instructions, l.stats.Handled)
		})
	}
}
