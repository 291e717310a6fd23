package dwarf

import (
	"testing"

	"vplay/dwarf/agentexpr"
)

// quickEnv is the machine of a quick expression in a frame.
type quickEnv struct{ e *Env }

func (q quickEnv) GPR(index int) uint64 {
	v, _ := q.e.Regs.get([]uint64{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}[index])
	return v
}

func (q quickEnv) RIP() uint64 { v, _ := q.e.Regs.get(RIP); return v }

func (q quickEnv) ReadMemory(addr uint64, b []byte) (int, error) {
	return q.e.Mem.ReadMemory(addr, b), nil
}

// same compares the quick form of an expression, if it has one, with the expression.
func same(t testing.TB, e *Env, expr string) (isQuick bool) {
	x, err := e.Prepare(expr, 0)
	if err != nil {
		return false
	}
	quick := x.Quick(e)
	if quick == nil {
		return false
	}
	p, err := agentexpr.Parse(quick)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	got, err := p.Eval(quickEnv{e}, nil)
	ok := err == nil
	v, err := x.Eval(e)
	if err == nil {
		var want uint64
		if want, err = v.Uint(); err == nil && (!ok || got != want) {
			t.Errorf("%s is %#x (%v) in its quick form, else %#x", expr, got, ok, want)
		}
	}
	if err != nil && ok {
		t.Errorf("%s is %#x in its quick form, else %v", expr, got, err)
	}
	return true
}

// quickExpressions have a quick form in report of the demonstration.
var quickExpressions = []string{
	"1 + 2 * 3", "-7 / 2", "-7 % 3", "7 - -3", "~0", "1 << 4 >> 2", "1u - 2", "2147483647 + 1", "1 < 2 && 2 < 1", "!5", "'a' + 1", "(char)65", "(unsigned char)-1",
	"$rax == 0x1000", "$sp", "$pc", "*(int *)0x7000", "*(long *)0x7008", "((unsigned char *)0x7000)[7]", "*(unsigned short *)(0x7000 + 2)", "(int *)0x7000 + 1", "(int *)16 - 1",
	"-9223372036854775807 - 1", "(-9223372036854775807 - 1) / -1", "1 << 99", "-1 >> 99", "&*(int *)0x7000", "true", "NULL", "1 == 1 == 1", "5 & 3 == 3", "18446744073709551615",
	"1 / 0", "*(int *)4 + 1", "*(int *)0x7000 < 0 || *(int *)4", "(bool)7", "(_Bool)0x100", "(short)70000", "(unsigned)-1 > 0", "-1 < 1u", "(long)-1 < 1ul",
}

func TestQuick(t *testing.T) {
	e := demoEnv(t)
	for _, expr := range quickExpressions {
		if !same(t, e, expr) {
			t.Errorf("%s has no quick form", expr)
		}
	}
	for _, expr := range []string{"1.5 * 2", "1 / 4.0", "sizeof(int)", "1 || nothing(3)", "nowhere", "1 +", "1 ? 2 : 3", "(float)1"} {
		if same(t, e, expr) {
			t.Errorf("%s has a quick form", expr)
		}
	}
}

// FuzzQuick compares any expression with its quick form.
func FuzzQuick(f *testing.F) {
	for _, s := range quickExpressions {
		f.Add(s)
	}
	e := demoEnv(f)
	f.Fuzz(func(t *testing.T, expr string) { same(t, e, expr) })
}

// BenchmarkQuick evaluates a condition in both forms.
func BenchmarkQuick(b *testing.B) {
	e := demoEnv(b)
	x, err := e.Prepare("*(int *)0x7000 == 5 && $rax > 3", 0)
	if err != nil {
		b.Fatal(err)
	}
	quick, err := agentexpr.Parse(x.Quick(e))
	if err != nil {
		b.Fatal(err)
	}
	m := quickEnv{e}
	b.Run("quick", func(b *testing.B) {
		for b.Loop() {
			if _, err := quick.Eval(m, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("else", func(b *testing.B) {
		for b.Loop() {
			if _, err := x.Eval(e); err != nil {
				b.Fatal(err)
			}
		}
	})
}
