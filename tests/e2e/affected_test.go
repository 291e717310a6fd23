package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What a value reached, on tests/guest/affected.c.

// affectedAnswer is what vplayd affected --json prints.
type affectedAnswer struct {
	Rows []struct {
		Kind, Source, Position string
		At                     struct {
			File string
			Line int
		}
	}
	Instructions, Executed uint64
	Crashed                bool
}

// has reports whether there is a row of a kind at a line of the guest.
func (a *affectedAnswer) has(g *guest, kind string, line int) bool {
	for _, r := range a.Rows {
		if r.Kind == kind && r.At.Line == line && filepath.Base(r.At.File) == filepath.Base(g.name)+".c" {
			return true
		}
	}
	return false
}

// source returns what the row of a kind says of a call.
func (a *affectedAnswer) source(kind string) string {
	for _, r := range a.Rows {
		if r.Kind == kind {
			return r.Source
		}
	}
	return ""
}

// affectedGuest records tests/guest/affected.c with a message.
func affectedGuest(t *testing.T, level string) (g *guest, ask func(args ...string) (string, int)) {
	t.Helper()
	g = compile(t, "affected", level, "-pthread")
	message := filepath.Join(g.dir, "message")
	if err := os.WriteFile(message, []byte("PAZ.hello world!"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.args = []string{message}
	rec := g.record(t)
	return g, func(args ...string) (string, int) {
		cmd := exec.Command(vplayd, append([]string{"affected", "--symbols", filepath.Join(g.dir, "symbols"), rec}, args...)...)
		out, _ := cmd.CombinedOutput() // the code says how it ended
		return string(out), cmd.ProcessState.ExitCode()
	}
}

// TestAffected: each byte of the message reaches what is made of it, through a copy and a thread, and
// nothing else.
func TestAffected(t *testing.T) {
	for _, level := range []string{"-O0", "-O1"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			g, ask := affectedGuest(t, level)
			for _, c := range []struct {
				expr                  string
				made, branch, crashed bool // the letter's line, the limit's branch
				output                string
			}{
				{"input", true, true, true, "write(1), bytes 4 to 4"},
				{"input:3", true, true, true, "write(1), bytes 4 to 4"},
				{"input.letter", true, false, false, "write(1), bytes 4 to 4"},
				{"input.limit", false, true, false, ""},
				{"input.index", false, false, true, ""},
				{"input.unused", false, false, false, ""},
				{"unrelated", false, false, false, ""},
			} {
				out, code := ask("--json", "-n", "2000", c.expr)
				var a affectedAnswer
				if err := json.Unmarshal([]byte(out), &a); err != nil || code != 0 {
					t.Fatalf("%s: %d %v\n%s", c.expr, code, err, out)
				}
				if a.has(g, "code", g.line(t, "letter: made")) != c.made || a.has(g, "branch", g.line(t, "limit: branch")) != c.branch ||
					a.Crashed != c.crashed || a.has(g, "crash", g.line(t, "index: crash")) != c.crashed || a.source("output") != c.output {
					t.Errorf("%s: %s", c.expr, out)
				}
				if a.has(g, "code", g.line(t, "unrelated")) {
					t.Errorf("%s reaches what it has nothing to do with: %s", c.expr, out)
				}
				if strings.HasPrefix(c.expr, "input:") && a.source("input") != "read(3)" {
					t.Errorf("%s: input is %q", c.expr, a.source("input"))
				}
			}
		})
	}
}

// TestAffectedFromAMoment: a register is followed from --at on, and a position of a row can be gone to.
func TestAffectedFromAMoment(t *testing.T) {
	t.Parallel()
	g, ask := affectedGuest(t, "-O1")
	out, _ := ask("--json", "input.index")
	var a affectedAnswer
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	made := ""
	for _, r := range a.Rows {
		if made == "" && r.Kind == "code" && (r.At.Line == g.line(t, "index: made") || r.At.Line == g.line(t, "index: crash")) {
			made = r.Position // the load of the index
		}
	}
	out, code := ask("--at", made, "--values", "$rdi")
	if code != 0 || strings.Contains(out, "it reached what the program died of") {
		t.Errorf("the address of the message is not part of the index: %d\n%s", code, out)
	}
	out, code = ask("--at", made, "$rdi")
	if code != 0 || !strings.Contains(out, "crash SIGSEGV: $") || !strings.Contains(out, "it reached what the program died of") {
		t.Errorf("what is loaded through the address depends on it: %d\n%s", code, out)
	}
}

// TestAffectedInGDB: the command of gdb finds variables and knows input, and the monitor's prints JSON.
func TestAffectedInGDB(t *testing.T) {
	t.Parallel()
	g := compile(t, "affected", "-O1", "-pthread")
	message := filepath.Join(g.dir, "message")
	if err := os.WriteFile(message, []byte("PAZ.hello world!"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.args = []string{message}
	addr := serve(t, g.record(t), "--symbols", filepath.Join(g.dir, "symbols"))
	expect(t, gdb(t, addr, loadCommands, "vplay affected input.limit", "vplay affected -n 50 input", "vplay affected --here $rdi", "vplay affected",
		"monitor affected --json input:3", "monitor affected --what", "monitor affected"),
		places(t, g, "affected", []string{
			`0x\w+, 1 bytes  from 0:`, `branch .*LINE:limit: branch`, `instructions of [\d,]+ executed, up to 0:\d+`,
			`\binput  from 0:0\.0`, `input read\(3\)`, `output write\(1\), bytes 4 to 4`, `crash SIGSEGV: \$\w+`, `it reached what the program died of`,
			`\$rdi  from 0:`, `vplay affected EXPR: help vplay affected`, `\{"of":"input:3","from":`, `there is no option --what`, `say which value`,
		})...)
}

// TestAffectedRefuses: what cannot be followed is an error with a hint.
func TestAffectedRefuses(t *testing.T) {
	t.Parallel()
	_, ask := affectedGuest(t, "-O1")
	for _, k := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"$nosuch"}, 1, "there is no register $nosuch"},
		{[]string{"nosuch"}, 1, "nosuch"},
		{[]string{"0x10,8"}, 1, "nothing is mapped at 0x10"},
		{[]string{"input:x"}, 1, "bad descriptor"},
		{[]string{""}, 2, "say which value"},
		{[]string{"input", "--thread", "1"}, 1, "there is no thread 1 here"},
		{[]string{"input", "--at", "9:1"}, 2, "--at takes a position"},
		{[]string{"input", "-n", "0"}, 2, "1 to"},
	} {
		out, code := ask(k.args...)
		if code != k.code || !strings.Contains(out, k.want) || !strings.Contains(out, "vplayd: hint: ") {
			t.Errorf("%v: exit code %d, want %d\n%s", k.args, code, k.code, out)
		}
	}
}
