package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// What else is asked of a recording of a core file: by editors, and by vplay's own commands in gdb.

// TestCoreMomentDAP: an editor sees the crash, and each movement ends where it began.
func TestCoreMomentDAP(t *testing.T) {
	t.Parallel()
	g := compile(t, "core/sorted", "-Wl,--no-as-needed", "-lm")
	rec := importCore(t, gdbCore(t, g, ""))
	c := dialDAP(t, serve(t, rec, "--dap"))
	crash := fmt.Sprintf("exception by_next:%d", g.line(t, "CRASH"))
	c.wants("the crash", c.connect(), crash)
	for expr, want := range map[string]string{"compared": "4", "x->next == 0": "1", "orders[0].number": "1"} {
		if got := c.eval(0, expr); got != want {
			t.Errorf("%s is %s, want %s", expr, got, want)
		}
	}
	for _, move := range []string{"continue", "next", "stepIn", "stepOut", "reverseContinue", "stepBack"} {
		if got := c.run(move); !strings.HasSuffix(got, strings.TrimPrefix(crash, "exception")) {
			t.Errorf("%s leads to %s", move, got)
		}
	}
}

// TestCoreMomentQueries: vplay's own commands answer in gdb, and say what is not known.
func TestCoreMomentQueries(t *testing.T) {
	t.Parallel()
	g := compile(t, "core/sorted", "-Wl,--no-as-needed", "-lm")
	core := gdbCore(t, g, "")
	out := gdb(t, serve(t, importCore(t, core, "--no-local-files")), "monitor why 0x555555556000", "monitor why 0x555555558000", "monitor why 0")
	expect(t, out, `was not captured: its page was not in the core file, nor in a file that was found`, `the byte at 0x555555558000 is known`, `nothing is mapped at 0x0`)
	out = gdb(t, serve(t, importCore(t, core)), "monitor last-write compared 4", "monitor writes compared", "monitor calls by_next", "monitor first-exec by_next",
		"monitor seek begin", "monitor seek end", "monitor when", "monitor events", "monitor threads", "monitor modules",
		`echo CALL\n`, "p compared * 2", "p compared = 7", "p compared", "p ((long(*)(long))labs)(-5)", "x/i $pc", "info proc mappings", "generate-core-file again")
	t.Logf("%s", out)
	expect(t, out, `1:0\.0`, `1:0\.0`, `1:0\.0`, `no event before here`, `sorted +runs`, `/sorted`, `^CALL$`, `= 8$`, `= 7$`, `= 7$`, `= 5$`, `^=> 0x`, `r.xp +/.*/sorted`, `Saved corefile again`)
}

// TestCoreMomentHasNoPast: what is about the past is refused, and not answered as if nothing had happened.
func TestCoreMomentHasNoPast(t *testing.T) {
	t.Parallel()
	rec := importCore(t, gdbCore(t, compile(t, "core/sorted", "-Wl,--no-as-needed", "-lm"), ""))
	for _, args := range [][]string{{"slice", rec}, {"slice", rec, "$rax"}, {"affected", rec, "input"}, {"run", "heap", rec}, {"run", "locks", rec}, {"export", "--to", "csv", "-o", "-", rec}, {"windows", rec}} {
		out, err := exec.Command(vplayd, args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "the recording holds one moment") || !strings.Contains(string(out), "vplayd: hint: ") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

// TestCoreGoroutines: the goroutines of a Go program's core file are listed without the program's file.
func TestCoreGoroutines(t *testing.T) {
	t.Parallel()
	c := coreGuests["go"]
	g := c.build(t)
	rec := importCore(t, gdbCore(t, g, c.env))
	if err := os.Remove(g.bin); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(vplayd, "goroutines", "--no-local-files", rec).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	expect(t, string(out), `^1 +\[running on thread \d+\]`, `\[waiting \(force gc \(idle\)\)\]`, `runtime\.gcenable at .*mgc\.go:\d+`)
}

// TestCoreAgain: the core file that gdb writes of a recording of a core file is imported again, to the same answers.
func TestCoreAgain(t *testing.T) {
	t.Parallel()
	g := compile(t, "core/four", "-pthread")
	first := importCore(t, gdbCore(t, g, ""))
	again := t.TempDir() + "/again"
	ask := []string{`echo BEGIN\n`, "bt", "info threads", "info registers", "p/x $ymm3", "info auxv", "thread apply all bt 3"}
	want := answers(gdb(t, serve(t, first), append([]string{"generate-core-file " + again}, ask...)...))
	got := answers(gdb(t, serve(t, importCore(t, again)), ask...))
	compareCore(t, got, want)
	if out, err := exec.Command(vplayd, "verify", first).CombinedOutput(); err != nil || !strings.Contains(string(out), "0 divergences") {
		t.Errorf("verify: %v\n%s", err, out)
	}
}
