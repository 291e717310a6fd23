package dwarf

import (
	"strings"
	"testing"
)

// demoEnv is a frame in report of the demonstration, with the argument of main
// and others nowhere that matters.
func demoEnv(t testing.TB) *Env {
	b, _ := demoSymbols(t)
	m, err := Open(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	at, ok := m.Lookup("report")
	if !ok {
		t.Fatal("there is no report")
	}
	var r Regs
	for i := range r.V {
		r.Set(i, uint64(i+1)<<12)
	}
	r.Set(RIP, at+8)
	return Envs([]Frame{{Regs: r, PC: at + 8, Module: m}}, words{0x7000: 0x1122334455667788, 0x7008: 0xffffffff_fffffffe})[0]
}

func TestEval(t *testing.T) {
	e := demoEnv(t)
	for expr, want := range map[string]string{
		"1 + 2 * 3": "7", "(1 + 2) * 3": "9", "-7 / 2": "-3", "-7 % 3": "-1", "7 - -3": "10", "0x10 | 1": "17", "~0": "-1",
		"1 << 4 >> 2": "4", "1u - 2": "4294967295", "2147483647 + 1": "-2147483648", "2147483648": "2147483648", "1 < 2 && 2 < 1": "0",
		"0 && 1 / 0": "0", "1 || nothing(3)": "1", "1 ? 2 : 3": "2", "!5": "0", "1.5 * 2": "3", "1 / 4.0": "0.25", "'a' + 1": "98",
		"(char)65": "65 'A'", "(unsigned char)-1": "255 '\\377'", "(int)3.9": "3", "(float)0.1": "0.10000000149011612", "sizeof(int)": "4",
		"sizeof(char *)": "8", "sizeof 1.0": "8", "$rax == 0x1000": "1", "$sp": "32768", "*(int *)0x7000": "1432778632",
		"*(long *)0x7008": "-2", "((unsigned char *)0x7000)[7]": "17 '\\021'", "*(unsigned short *)(0x7000 + 2)": "21862",
		"(int *)0x7000 + 1": "0x7004", "(int *)16 - (int *)8": "2", "-9223372036854775807 - 1": "-9223372036854775808",
		"(-9223372036854775807 - 1) / -1": "-9223372036854775808", "1 << 99": "0", "-1 >> 99": "-1", "&*(int *)0x7000": "0x7000",
		"true": "1", "NULL": "0x0", "*(int *)4": "<error: Cannot access memory at address 0x4>", `'\n'`: `10 '\n'`, "1e3": "1000", "(long)-1": "-1",
		"3 == 3.0": "1", "(bool)7": "true", "1 == 1 == 1": "1", "5 & 3 == 3": "1", "18446744073709551615": "18446744073709551615",
	} {
		v, err := e.Eval(expr, 0)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
		} else if got := v.String(); got != want {
			t.Errorf("%s is %s, want %s", expr, got, want)
		}
	}
	for expr, want := range map[string]string{
		"": "no expression", "1 +": "missing", "(1": "missing", "1 2": "not understood", "nowhere": "there is no nowhere", "1 / 0": "division by zero",
		"$foo": "no register", "f(1)": "there is no f", "main(1)": "not called", "*5": "no pointer", "1.a": "no number", "&1": "not in memory",
		"5 % 2.0": "not for floating", "\"text\"": "not understood", "1 = 5": "not understood", "1 ? 2": "missing", "(void)1": "void",
		"*(void *)1": "void", strings.Repeat("(", 200): "too deep", strings.Repeat("-", 200) + "1": "too deep", strings.Repeat("1+", 4000) + "1": "too long",
		"*(int *)4 + 1": "Cannot access memory", "'ab'": "character",
	} {
		if v, err := e.Eval(expr, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v and error %v, want %s", expr, v, err, want)
		}
	}
}

// FuzzEval evaluates any expression.
func FuzzEval(f *testing.F) {
	for _, s := range []string{"a->b[3].c", "(struct reading *)0x7000", "1 ? sizeof(int *) : -'a'", "&readings[$rax + 2].x", "1.5e-3 / 0x1f"} {
		f.Add(s)
	}
	e := demoEnv(f)
	f.Fuzz(func(_ *testing.T, expr string) {
		if v, err := e.Eval(expr, 0); err == nil {
			_ = v.String()
			v.Children(0, 10)
			_ = v.Type().String()
		}
	})
}

// FuzzVariables looks at every variable of a damaged file.
func FuzzVariables(f *testing.F) {
	b, _ := demoSymbols(f)
	m, err := Open(b, nil)
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"report", "main", "collect"} {
		at, _ := m.Lookup(name)
		f.Add(uint32(0), []byte{}, at+9)
		f.Add(uint32(len(b)/2), []byte{1, 2, 3}, at+4)
	}
	f.Fuzz(func(_ *testing.T, at uint32, patch []byte, pc uint64) {
		c := append([]byte(nil), b...)
		copy(c[int(at)%len(c):], patch)
		m, err := Open(c, nil)
		if err != nil {
			return
		}
		var r Regs
		for i := range r.V {
			r.Set(i, 0x7000)
		}
		r.Set(RIP, pc)
		frames := []Frame{{Regs: r, PC: pc, Module: m}, {Regs: r, PC: pc, Module: m}}
		e := Envs(frames, words{0x7000: 0x7000, 0x7008: 1})[0]
		for i, s := range e.Scopes() {
			for _, v := range append(s.Arguments(), s.Locals()...) {
				_ = v.String()
				_ = v.Type().String()
				for _, c := range v.Children(0, 5) {
					_ = c.String()
				}
				_, _ = e.Eval(v.Name+"->next", i)
			}
		}
		for _, v := range e.Globals() {
			_ = v.String()
		}
		m.Functions("main")
		m.CompDir()
	})
}
