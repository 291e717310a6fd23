package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"vplay/tests/need"
)

// Breakpoints of an editor with conditions, hit counts and messages, in both directions, and
// data breakpoints as wide as what they are on.

// TestDAPBreak stops at the same places going back as going forward.
func TestDAPBreak(t *testing.T) {
	for _, level := range []string{"-O0", "-O1"} {
		t.Run(level, func(t *testing.T) {
			g, c := startDAP(t, level, "-fno-inline")
			c.wants("the crash", c.connect(), "exception ")
			at := fmt.Sprintf("breakpoint deposit:%d", g.line(t, "COUNT"))
			set := func(b map[string]any) {
				b["line"] = g.line(t, "COUNT")
				c.do("setBreakpoints", map[string]any{"source": map[string]any{"name": "ledger.c"}, "breakpoints": []any{b}})
			}
			clear := func() {
				c.do("setBreakpoints", map[string]any{"source": map[string]any{"name": "ledger.c"}, "breakpoints": []any{}})
			}
			deposits := func() string { return c.eval(0, "deposits") }
			// Forms of a condition that are evaluated in different ways mean the same.
			for _, condition := range []string{
				"deposits == 30", "deposits == 30 ? 1 : 0", "(long)deposits * 2 - 60 == 0", "deposits > 29 && deposits < 31", "30.0 == deposits", "handled == 60",
				"deposits / 10 == 3 && deposits % 10 == 0", "accounts[2].balance + deposits * 0 != 0 && deposits == 30", "*(int *)&deposits == 30", "!(deposits - 30)",
			} {
				set(map[string]any{"condition": condition})
				c.wants(condition+" backwards", c.run("reverseContinue"), at)
				if got := deposits(); got != "30" {
					t.Errorf("%s stops at %s deposits", condition, got)
				}
				clear()
				c.wants("the beginning", c.run("reverseContinue"), "entry ")
				set(map[string]any{"condition": condition})
				c.wants(condition+" forward", c.run("continue"), at)
				if got := deposits(); got != "30" {
					t.Errorf("forward, %s stops at %s deposits", condition, got)
				}
				c.wants("the crash", c.run("continue"), "exception ")
			}
			set(map[string]any{"hitCondition": "7"})
			c.wants("the 7th hit back", c.run("reverseContinue"), at)
			if got := deposits(); got != "43" {
				t.Errorf("the 7th hit back is at %s deposits, want 43", got)
			}
			set(map[string]any{"hitCondition": "%10", "condition": "deposits % 2 == 0"})
			c.wants("each 10th even one", c.run("reverseContinue"), at)
			if got := deposits(); got != "24" {
				t.Errorf("the 10th even one back is at %s deposits, want 24", got)
			}
			set(map[string]any{"logMessage": "{deposits} deposits, {accounts[0].balance >= 0}", "condition": "deposits >= 20"})
			c.wants("the beginning, with messages", c.run("reverseContinue"), "entry ")
			var want string
			for n := 23; n >= 20; n-- {
				want += fmt.Sprintf("%d deposits, 1\n", n)
			}
			if got := c.said(); got != want {
				t.Errorf("going back the messages are %q, want %q", got, want)
			}
			if len(c.boxes) > 0 {
				t.Errorf("the editor shows boxes: %q", c.boxes)
			}
		})
	}
}

// TestDAPWatch watches variables, members and elements of several types: as many bytes as
// they have, with conditions.
func TestDAPWatch(t *testing.T) {
	g, c := startDAP(t, "-O0")
	c.wants("the crash", c.connect(), "exception ")
	frame := c.frames()[1]["id"]
	globals := c.scope(1, "Globals")
	accounts := c.variables(globals)["accounts"]["variablesReference"]
	third := c.variables(accounts)["[2]"]["variablesReference"]
	for _, w := range []struct {
		args map[string]any
		size int
	}{
		{map[string]any{"name": "deposits", "variablesReference": globals}, 4},
		{map[string]any{"name": "accounts", "variablesReference": globals}, 96},
		{map[string]any{"name": "[2]", "variablesReference": accounts}, 24},
		{map[string]any{"name": "next", "variablesReference": third}, 8},
		{map[string]any{"name": "name", "variablesReference": third}, 8},
		{map[string]any{"name": "accounts[1].name[3]", "frameId": frame}, 1},
		{map[string]any{"name": "handled", "frameId": frame}, 4},
		{map[string]any{"name": "*(short *)&deposits", "frameId": frame}, 2},
	} {
		id, _ := c.do("dataBreakpointInfo", w.args)["dataId"].(string)
		if !strings.HasSuffix(id, fmt.Sprintf("/%d", w.size)) {
			t.Errorf("%v is watched as %s, want %d bytes", w.args["name"], id, w.size)
		}
	}
	id := c.do("dataBreakpointInfo", map[string]any{"name": "deposits", "variablesReference": globals})["dataId"]
	c.do("setDataBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"dataId": id, "accessType": "write", "condition": "deposits == 25", "hitCondition": ""}}})
	c.wants("a condition on what is there before the write", c.run("reverseContinue"), fmt.Sprintf("data breakpoint deposit:%d", g.line(t, "COUNT")))
	if got := c.eval(0, "deposits"); got != "25" {
		t.Errorf("there are %s deposits, want 25", got)
	}
}

// TestDAPConditionOften: a condition that comes true after 2 million hits, going back, is found at the same place by both servers. What that
// costs each in processor time is logged: gdb sends agent bytecode, the expression has a quick form in package dwarf.
func TestDAPConditionOften(t *testing.T) {
	need.Program(t, "gdb")
	g := compile(t, "busy", "-O0")
	rec := g.record(t, "--keep", "always")
	const hits, at = 2_000_000, 100_000_000 - 2_000_000
	addr, pid := serveProcess(t, rec, "--symbols", g.dir+"/symbols")
	start := processorTime(t, pid)
	out := gdb(t, addr, fmt.Sprintf("break beat if i == %d", at), "reverse-continue", "print i")
	expect(t, out, fmt.Sprintf(`= %d`, at))
	theirs := processorTime(t, pid) - start

	addr, pid = serveProcess(t, rec, "--dap", "--symbols", g.dir+"/symbols")
	c := dialDAP(t, addr)
	c.limit = 5 * time.Minute
	start = processorTime(t, pid)
	c.connect()
	c.do("setFunctionBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"name": "beat", "condition": fmt.Sprintf("i == %d", at)}}})
	c.run("reverseContinue")
	if got := c.eval(0, "i"); got != strconv.Itoa(at) {
		t.Errorf("i is %s, want %d", got, at)
	}
	ours := processorTime(t, pid) - start
	t.Logf("%d hits: %v of the editor's server, %v of gdb's", hits, ours, theirs)
}
