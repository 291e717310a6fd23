package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The slice of a crash, on programs whose cause is known: tests/guest/slice.

// sliceAnswer is what vplayd slice --json prints.
type sliceAnswer struct {
	Of   string
	Rows []struct {
		Kind, Source, Result string
		Address, Control     bool
		At                   struct {
			File, Function string
			Line           int
		}
		Controls  []int
		Decisions []struct {
			Instruction, Compared string
			Ways                  []struct {
				Taken bool
				Count int
			}
		}
	}
	Left                                     int
	Instructions, Values, Controls, Executed uint64
}

// slice runs vplayd slice on a recording of g.
func (g *guest) slice(t *testing.T, rec string, args ...string) *sliceAnswer {
	t.Helper()
	cmd := exec.Command(vplayd, append([]string{"slice", "--json", "-n", "5000", "--symbols", filepath.Join(g.dir, "symbols"), rec}, args...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, errs.String())
	}
	a := &sliceAnswer{}
	if err := json.Unmarshal(out, a); err != nil {
		t.Fatal(err)
	}
	return a
}

// has reports whether a line of the guest's source is in the slice.
func (a *sliceAnswer) has(g *guest, line int) bool {
	for _, r := range a.Rows {
		if r.At.Line == line && filepath.Base(r.At.File) == filepath.Base(g.name)+".c" {
			return true
		}
	}
	return false
}

// begins holds that a begins with the rows that the slice of values has, and has the same instructions for them.
func (a *sliceAnswer) begins(t *testing.T, values *sliceAnswer) {
	t.Helper()
	if a.Values != values.Instructions || values.Values != values.Instructions {
		t.Errorf("%d instructions made the value, of the slice of values %d of %d", a.Values, values.Values, values.Instructions)
	}
	for i, r := range a.Rows {
		if r.Address != (i >= len(values.Rows)) {
			t.Errorf("row %d of %d is for an address: %v; the slice of values has %d rows", i, len(a.Rows), r.Address, len(values.Rows))
		}
	}
}

// TestSliceNamesTheInput: what a system call brought is named with the file that it is of, and the
// forms of the answer agree.
func TestSliceNamesTheInput(t *testing.T) {
	t.Parallel()
	g := compile(t, "slice/byteorder")
	rec := g.record(t)
	a := g.slice(t, rec)
	found := false
	for _, r := range a.Rows {
		found = found || r.Kind == "call" && strings.HasPrefix(r.Source, "memory of read(3): openat(") && strings.Contains(r.Source, "byteorder")
	}
	if !found {
		t.Errorf("the file is not named: %+v", a.Rows)
	}
	for _, k := range []struct{ expr, flag, want string }{
		{"", "--values", "the crash: $"}, {"", "-n1", "more; -n says"}, {"header", "--dot", "digraph slice {"}, {"header", "--origin", "memory of read(3)"},
	} {
		args := append([]string{"slice", k.flag, "--symbols", filepath.Join(g.dir, "symbols"), rec}, strings.Fields(k.expr)...)
		out, err := exec.Command(vplayd, args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), k.want) {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

// TestSliceRefuses: what cannot be explained is an error with a hint.
func TestSliceRefuses(t *testing.T) {
	t.Parallel()
	g := compile(t, "slice/divide")
	rec := g.record(t)
	for _, k := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"$nosuch"}, 1, "there is no register $nosuch"},
		{[]string{"nosuch"}, 1, "nosuch"},
		{[]string{"0x10,8"}, 1, "nothing is mapped at 0x10"},
		{[]string{"0x10,0"}, 1, "bad length"},
		{[]string{"count", "--thread", "1"}, 1, "there is no thread 1 here"},
		{[]string{"--at", "begin"}, 2, "say what to explain"},
		{[]string{"--at", "9:1"}, 2, "--at takes a position"},
		{[]string{"--json", "--dot"}, 2, "give one of them"},
		{[]string{"-n", "0"}, 2, "1 to"},
		{[]string{"--control", "--origin"}, 2, "through copies alone"},
	} {
		cmd := exec.Command(vplayd, append([]string{"slice", rec}, k.args...)...)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != k.code || !strings.Contains(string(out), k.want) || !strings.Contains(string(out), "vplayd: hint: ") {
			t.Errorf("%v: exit code %d, want %d\n%s", k.args, code, k.code, out)
		}
	}
}

// TestSliceFindsTheCause: the slice of the crash holds the line that is to blame and not one that has
// nothing to do with it, and it is small.
func TestSliceFindsTheCause(t *testing.T) {
	for _, name := range []string{
		"overwrite", "index", "divide", "truncated", "reused", "callback", "negative", "thread", "handler", "byteorder", "rounding", "table",
	} {
		for _, level := range []string{"-O0", "-O1"} {
			t.Run(name+level, func(t *testing.T) {
				t.Parallel()
				g := compile(t, "slice/"+name, level, "-pthread")
				rec := g.record(t)
				a := g.slice(t, rec)
				t.Logf("%s: %d of %d instructions, %d rows", a.Of, a.Instructions, a.Executed, len(a.Rows))
				if !a.has(g, g.line(t, "cause")) {
					t.Errorf("the cause is not in the slice of %s", a.Of)
				}
				if a.has(g, g.line(t, "unrelated")) {
					t.Errorf("what is unrelated is in the slice of %s", a.Of)
				}
				if 3*a.Instructions > a.Executed {
					t.Errorf("the slice has %d of %d instructions", a.Instructions, a.Executed)
				}
				a.begins(t, g.slice(t, rec, "--values"))
			})
		}
	}
}

// TestSliceOfTrap: an instruction without operands has no slice of values, but branches led to it.
func TestSliceOfTrap(t *testing.T) {
	t.Parallel()
	g := compile(t, "slice/unreachable", "-O0")
	rec := g.record(t)
	out, err := exec.Command(vplayd, "slice", rec).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the instruction has no operand") || !strings.Contains(string(out), "--control") {
		t.Errorf("%v\n%s", err, out)
	}
	a := g.slice(t, rec, "--control")
	for _, mark := range []string{"decision", "cause"} {
		if !a.has(g, g.line(t, mark)) {
			t.Errorf("the line of the %s is not in the slice: %+v", mark, a)
		}
	}
}

// TestTableOfInput: of a call through a table the crash is the entry, and which entry that is: the slice leads to the
// request that said so, but where values alone are asked for, and what was read reached the crash.
func TestTableOfInput(t *testing.T) {
	t.Parallel()
	g := compile(t, "slice/table", "-O1")
	rec := g.record(t)
	if a := g.slice(t, rec, "--values"); a.has(g, g.line(t, "cause")) {
		t.Errorf("the slice of values alone has what the address was made of")
	}
	for args, want := range map[string]string{"slice": "where that was loaded from:", "affected": `crash SIGSEGV: \$\w+ .*table\.c`} {
		list := []string{args, "--symbols", filepath.Join(g.dir, "symbols"), rec}
		if args == "affected" {
			list = append(list, "input")
		}
		out, err := exec.Command(vplayd, list...).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
		expect(t, string(out), want)
	}
}

// TestSliceFollowsDecisions: a pointer that is a constant of the wrong arm of a branch has a slice without the cause; with control dependences
// it has it, the branch says what it compared, and what is unrelated stays out.
func TestSliceFollowsDecisions(t *testing.T) {
	t.Parallel()
	g := compile(t, "slice/decided")
	rec := g.record(t)
	data, a := g.slice(t, rec), g.slice(t, rec, "--control")
	cause, decision := g.line(t, "cause"), g.line(t, "decision")
	t.Logf("%s: %d of %d instructions, %d rows; with control dependences %d, %d rows", a.Of, data.Instructions, data.Executed, len(data.Rows), a.Instructions, len(a.Rows))
	if !data.has(g, g.line(t, "value")) || data.has(g, cause) || data.has(g, decision) {
		t.Errorf("the slice without control dependences has the cause, or not the value")
	}
	if !a.has(g, cause) || a.has(g, g.line(t, "unrelated")) {
		t.Errorf("the cause is not in the slice, or what is unrelated is")
	}
	if a.Values != data.Values || a.Instructions-a.Controls != data.Instructions || data.Controls != 0 {
		t.Errorf("%d values of %d, %d for decisions; without control dependences %d of %d, %d", a.Values, a.Instructions, a.Controls, data.Values, data.Instructions, data.Controls)
	}
	for _, k := range []struct {
		line     int
		compared string
		ways     int
	}{{decision, "0 with 0", 1}, {g.line(t, "here"), "3 with 2", 1}, {g.line(t, "cause") - 1, "108 with 108", 2}} {
		found := false
		for i, r := range a.Rows {
			if r.At.Line != k.line || len(r.Decisions) == 0 || filepath.Base(r.At.File) != "decided.c" {
				continue
			}
			found = true
			if d := r.Decisions[0]; d.Compared != k.compared || len(d.Ways) != k.ways || r.Kind != "branch" || !r.Control {
				t.Errorf("row %d: %+v, want %q", i, r, k.compared)
			}
		}
		if !found {
			t.Errorf("no branch of line %d is in the slice", k.line)
		}
	}
	at := func(mark, more string) string { return fmt.Sprintf(`decided\.c:%d  %s`, g.line(t, mark), more) }
	expect(t, gdb(t, serve(t, rec, "--symbols", filepath.Join(g.dir, "symbols")), loadCommands, "vplay slice --control -n 30", "monitor affected --control $rax"),
		`the crash: \$\w+  at 0:\d+\.0  by #\d`, at("value", `.*  by #\d+`), `why #\d+ was executed:`, at("decision", `je .*0 with 0: taken`), `for decisions`, `there is no option --control`)
}

// TestSliceInGDB: the commands of gdb find variables, wherever they are.
func TestSliceInGDB(t *testing.T) {
	t.Parallel()
	g := compile(t, "slice/overwrite", "-O1")
	addr := serve(t, g.record(t), "--symbols", filepath.Join(g.dir, "symbols"))
	expect(t, gdb(t, addr, loadCommands, "vplay slice -n 10", "vplay slice --values a", "vplay origin a", "vplay origin accounts[1].next",
		"vplay slice $nosuch", "vplay slice nosuch", "monitor slice --json $rdx", "monitor slice --what"),
		places(t, g, "overwrite", []string{
			`the crash: \$\w+  at 0:\d+`, `#\d+  0:\d+\.\d+ .*LINE:cause`, `instructions of [\d,]+ executed, back to 0:0\.0`,
			`\ba  at 0:`, `LINE:cause`, `memory as it was where the recording begins`,
			`\ba  at 0:`, `LINE:cause`, `instructions of`,
			`0x\w+, 8 bytes  at 0:`, `LINE:cause`,
			`there is no register \$nosuch`, `nosuch`, `\{"of":"\$rdx","rows":\[\{"number":0,"kind":"value"`, `there is no option --what`,
		})...)
}
