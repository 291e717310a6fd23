package e2e

import (
	"fmt"
	"strings"
	"testing"

	"vplay/checkpoint"
)

// TestExec follows a process through execve, which makes another program of it twice:
// gdb is told, both ways, and moves its breakpoints to where they belong; seek goes
// from one program to the other.
func TestExec(t *testing.T) {
	t.Parallel()
	g := compile(t, "become", "-O0")
	rec := g.record(t, "--keep", "always")
	addr := serve(t, rec, "--symbols", g.dir+"/symbols")
	out := gdb(t, addr, loadCommands, "vplay seek 0:0", "info sharedlibrary", "break step", "continue", "continue", "info proc", "delete",
		"catch exec", "continue", "continue", "reverse-continue", "bt 3", "reverse-continue", "bt 3", "reverse-continue", "delete", "echo @\\n",
		"tbreak step", "reverse-continue", "p n", "vplay seek crash", "bt", "tbreak step", "reverse-continue", "p n")
	expect(t, out, places(t, g, "become", []string{
		`executing new program: .*/become`, `Program stopped`, `ld-linux`, `Breakpoint 1.*, step \(n=1\) at .*LINE:STEP`,
		`executing new program: .*/become`, `Breakpoint 1.*, step \(n=2\) at .*LINE:STEP`, `exe = '.*/become'`,
		`Catchpoint 2 \(exec'd .*sh\)`, `Catchpoint 2 \(exec'd .*/become\)`,
		`back before the execve of .*/become`, `Catchpoint 2 \(exec'd .*sh\)`, `#0 .*execve`, `back before the execve of .*sh`,
		`Catchpoint 2 \(exec'd .*/become\)`, `#0 .*execve.*\n#1 .*\n#2 .*main .*LINE:SECOND`, `back before the execve of .*/become`, `^@`,
		`step \(n=1\) at .*LINE:STEP`, `= 1`, `executing new program`, `#\d .*main .*LINE:END`, `step \(n=10\) at .*LINE:STEP`, `= 10`,
	})...)
	// What cannot be told of an execve stays in the last program.
	out = gdb(t, addr, "set remote exec-event-feature-packet off", "disconnect", "target remote "+addr, "delete", "reverse-continue", "monitor seek 0:0", "info proc")
	expect(t, out, `No more reverse-execution history`, `executes another program on the way`, `become a b'|become`)
	if strings.Contains(out, "executing new program") {
		t.Errorf("gdb is told of an execve that it does not want to know of:\n%s", out)
	}
	// Each program is listed once.
	r, err := checkpoint.Open(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n := len(r.Images()); n != 4 {
		t.Errorf("%d images, want 4", n)
	}
}

// TestServeAt begins in the first program that a process was, and follows it forward.
func TestServeAt(t *testing.T) {
	t.Parallel()
	g := compile(t, "become", "-O0")
	addr := serve(t, g.record(t, "--keep", "always"), "--symbols", g.dir+"/symbols", "--at", "interval 0")
	out := gdb(t, addr, "info proc", "tbreak step", "continue", "p n", "tbreak step", "continue", "p n")
	expect(t, out, places(t, g, "become", []string{
		`exe = '.*/become'`, `Temporary breakpoint 1.*, step \(n=1\) at .*LINE:STEP`, `= 1`,
		`executing new program: .*/become`, `Temporary breakpoint 2.*, step \(n=2\) at .*LINE:STEP`, `= 2`,
	})...)
}

// TestDAPExec goes over execves as an editor: breakpoints on lines and
// functions hold in each program, and the editor is told which it is.
func TestDAPExec(t *testing.T) {
	t.Parallel()
	g := compile(t, "become", "-O0")
	rec := g.record(t, "--keep", "always")
	c := dialDAP(t, serve(t, rec, "--dap", "--symbols", g.dir+"/symbols"))
	at := func(f, mark string) string { return fmt.Sprintf("%s:%d", f, g.line(t, mark)) }
	c.wants("the crash", c.connect(), "exception ")
	first := c.await("process")["name"]
	set := c.do("setBreakpoints", map[string]any{"source": map[string]any{"path": "/x/become.c"}, "breakpoints": []any{map[string]any{"line": g.line(t, "STEP"), "condition": "n < 10"}}})
	id := set["breakpoints"].([]any)[0].(map[string]any)["id"]
	ran := func(command, reason, n string) {
		t.Helper()
		c.wants(command, c.run(command), reason+" "+at("step", "STEP"))
		if got := c.eval(0, "n"); got != n {
			t.Errorf("%s stops where n is %s, want %s", command, got, n)
		}
	}
	ran("reverseContinue", "breakpoint", "3")
	ran("reverseContinue", "breakpoint", "2")
	if name := c.await("process")["name"]; name != first {
		t.Errorf("the program is %v, want %v", name, first)
	}
	if b := c.await("breakpoint")["breakpoint"].(map[string]any); b["id"] != id || b["verified"] != true {
		t.Errorf("the breakpoint is %v", b)
	}
	ran("reverseContinue", "breakpoint", "1")
	// A step over the call of execve ends in the next program, and back.
	c.do("setBreakpoints", map[string]any{"source": map[string]any{"path": "/x/become.c"}, "breakpoints": []any{map[string]any{"line": g.line(t, "FIRST")}}})
	c.wants("the first execve", c.run("continue"), "breakpoint "+at("main", "FIRST"))
	c.do("setBreakpoints", map[string]any{"source": map[string]any{"path": "/x/become.c"}, "breakpoints": []any{}})
	c.wants("a step over it", c.run("next"), "entry ")
	c.wants("back", c.run("reverseContinue"), "entry ")
	c.do("setFunctionBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"name": "step"}}})
	for _, n := range []string{"1", "2", "3", "10"} {
		ran("continue", "function breakpoint", n)
	}
	// The shell has no function of that name; in it the breakpoint waits.
	seek := func(where string) map[string]any {
		t.Helper()
		body := c.do("evaluate", map[string]any{"expression": "seek " + where, "context": "repl"})
		c.stop()
		return body
	}
	if body := seek("0:0"); !strings.HasPrefix(body["result"].(string), "0:0") {
		t.Errorf("seek says %v", body)
	}
	ran("continue", "function breakpoint", "1")
	if body := seek("crash"); body["result"] == "" {
		t.Errorf("seek says %v", body)
	}
	ran("reverseContinue", "function breakpoint", "10")
}
