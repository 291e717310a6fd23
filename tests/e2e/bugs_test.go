package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// bugs has a program for each class of bug: from the crash, which is far from
// the cause, gdb goes back to the line that is marked CULPRIT. "LINE:MARK" in a
// pattern stands for the place of the marked line.
var bugs = []struct {
	name     string
	guest    string
	flags    []string
	commands []string
	want     []string
}{
	{
		"stack smash found by the protector", "smash",
		[]string{"-O0", "-fstack-protector-all"},
		[]string{"bt", "frame function fill", "watch -l *(long *)($rbp - 8)", "reverse-continue", "bt"},
		[]string{`SIGABRT|raise|abort`, `__stack_chk_fail`, `fill .* at .*LINE:END`, `Hardware watchpoint`, `Old value`, `fill .*LINE:CULPRIT`, `main`},
	},
	{
		"stack smash and a wild return", "wildreturn",
		[]string{"-O0", "-fno-stack-protector"},
		[]string{"p/x *(long *)$rsp", "watch -l *(long *)$rsp", "reverse-continue", "bt"},
		[]string{`= 0x4141414141414141`, `New value = 93|New value = 94|New value = `, `fill .*LINE:CULPRIT`, `main`},
	},
	{
		"global overflow", "global",
		[]string{"-O0"},
		[]string{"bt", "p g.title", "watch g.title", "reverse-continue", "info line", "bt", "p i"},
		[]string{`main .*global.c`, `0x[0-9a-f]+48 .*Cannot access memory`, `New value = 0x[0-9a-f]+ "title"`, `set .*LINE:CULPRIT`, `main`, `= 8`},
	},
	{
		"global overflow, optimised", "global",
		[]string{"-O1", "-fno-inline"},
		[]string{"watch g.title", "reverse-continue", "bt"},
		[]string{`New value = 0x[0-9a-f]+ "title"`, `set .*LINE:CULPRIT`, `main`},
	},
	{
		"heap overflow", "heap",
		[]string{"-O0"},
		[]string{"bt", "frame function main", "watch -l *(unsigned long *)(p + 24)", "reverse-continue", "p i", "reverse-continue", "p i", "bt"},
		[]string{`abort`, `malloc`, `main`, `copy .*LINE:CULPRIT`, `= 31`, `= 30`, `copy .*LINE:CULPRIT`, `main`},
	},
	{
		"use after free that ends in abort", "useafter",
		[]string{"-O0"},
		[]string{"bt", "watch -l shared->count", "reverse-continue", "bt"},
		[]string{`abort`, `free`, `main`, `New value = 0`, `free`, `drop .*LINE:CULPRIT`, `main`},
	},
	{
		"NULL dereference", "nullptr",
		[]string{"-O0"},
		[]string{"bt", "p current", "watch current", "reverse-continue", "bt"},
		[]string{`main .*LINE:CRASH`, `= .*0x0`, `New value = .*0x[0-9a-f]+ <c>`, `advance .*LINE:CULPRIT`, `main`},
	},
	{
		"NULL dereference, optimised", "nullptr",
		[]string{"-O1"},
		[]string{"watch current", "reverse-continue", "bt"},
		[]string{`New value = .*0x[0-9a-f]+ <c>`, `(advance|main) .*LINE:CULPRIT`},
	},
	{
		"wild jump", "jump",
		[]string{"-O0"},
		[]string{"p g.handler == twice", "reverse-stepi", "frame", "watch g.handler", "reverse-continue", "p i", "bt"},
		[]string{`= 0`, `main .*LINE:CRASH`, `New value = .*<twice>`, `count .*LINE:CULPRIT`, `= 4`, `main`},
	},
	{
		"division by zero", "divide",
		[]string{"-O0"},
		[]string{"bt", "p divisor", "reverse-step", "reverse-step", "watch divisor", "reverse-continue", "bt"},
		[]string{`main .*LINE:CRASH`, `= 0`, `work .*divide.c`, `New value = 1`, `shrink .*LINE:CULPRIT`},
	},
	{
		"division by zero, optimised", "divide",
		[]string{"-O1"},
		[]string{"watch divisor", "reverse-continue", "bt"},
		[]string{`New value = 1`, `(shrink|main) .*LINE:CULPRIT`},
	},
	{
		"stack exhaustion", "recursion",
		[]string{"-O0"},
		[]string{"bt 3", "frame 1", "p n > 1000", "break descend if n == 1", "reverse-continue", "reverse-finish", "up", "watch limit", "reverse-continue", "bt"},
		[]string{`#0 .*descend`, `= 1`, `Breakpoint 1, descend \(n=1\)`, `descend \(n=0\)`, `main`, `New value = 100`, `misconfigure .*LINE:CULPRIT`, `main`},
	},
}

func TestBugs(t *testing.T) {
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			g := compile(t, b.guest, b.flags...)
			rec := g.record(t)
			out := gdb(t, serve(t, rec, "--symbols", g.dir+"/symbols"), b.commands...)
			expect(t, out, places(t, g, b.guest, b.want)...)
		})
	}
}

// places puts file and line for the marks in patterns.
func places(t *testing.T, g *guest, name string, patterns []string) []string {
	out := make([]string, len(patterns))
	for i, p := range patterns {
		before, mark, found := strings.Cut(p, "LINE:")
		if found {
			p = fmt.Sprintf(`%s\b%s\.cc?:%d\b`, before, name, g.line(t, mark))
		}
		out[i] = p
	}
	return out
}

// TestNoSymbols has no file of the program anywhere: names come from what the
// program exports, and the unwinder works all the same.
func TestNoSymbols(t *testing.T) {
	t.Parallel()
	g := compile(t, "nullptr", "-O0", "-rdynamic")
	addr := serve(t, g.record(t))
	out := gdb(t, addr, "bt", "watch *(long *)&current", "reverse-continue", "bt", "x/i $pc", "info symbol $pc", "stepi", "p $pc > (long)&advance")
	expect(t, out, `#0 .* main \(\)`, `watchpoint`, `Old value = 0`, `New value = [1-9]`, `#0 .* advance \(\)`, `#1 .* main \(\)`, `mov +%rax,`, `advance \+ \d+`, `= 1`)
	if strings.Contains(out, "nullptr.c") {
		t.Errorf("a source line came from somewhere:\n%s", out)
	}
}
