package e2e

import (
	"encoding/base64"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"vplay/tests/need"
)

// startDAP records the ledger and connects to a server of it.
func startDAP(t *testing.T, flags ...string) (*guest, *dapClient) {
	t.Helper()
	g := compile(t, "ledger", flags...)
	rec := g.record(t)
	return g, dialDAP(t, serve(t, rec, "--dap", "--symbols", g.dir+"/symbols"))
}

// TestDAP drives the server as an editor does, from the crash backwards to the
// store that caused it, and over lines in both directions. Its addresses are fixed: of 85 random
// ones one has a byte already that the culprit stores, which changes nothing then, and is no stop.
func TestDAP(t *testing.T) {
	g, c := startDAP(t, "-O0", "-no-pie")
	at := func(f, mark string) string { return fmt.Sprintf("%s:%d", f, g.line(t, mark)) }
	c.wants("the crash", c.connect(), "exception "+at("sum", "CRASH"))
	info := c.do("exceptionInfo", map[string]any{"threadId": 0})
	if info["exceptionId"] != "SIGSEGV" {
		t.Errorf("the exception is %v", info)
	}
	frames := c.frames()
	if len(frames) < 2 || fmt.Sprintf("%s:%v", frames[1]["name"], frames[1]["line"]) != at("main", "ASKS-SUM") {
		t.Errorf("the caller is %v", frames)
	}
	if src := frames[0]["source"].(map[string]any); src["name"] != "ledger.c" || !strings.HasSuffix(src["path"].(string), "guest/ledger.c") {
		t.Errorf("the source is %v", src)
	}
	vars := c.locals(0)
	if vars["total"]["value"] == nil || vars["a"]["type"] != "struct account *" {
		t.Errorf("the variables are %v", vars)
	}
	for expr, want := range map[string]string{
		"deposits": "50", "handled": "100", "accounts[2].name": `"overlong`, "sizeof(struct account)": "24", "&accounts[1] == accounts[0].next": "1",
		"a->balance": "<error: nothing is mapped", "*a": "{name = ", "accounts[0].name[1]": "108 'l'", "nonsense": "error: there is no nonsense",
		"$rip == 0": "0", "(long)accounts[3].next": "0", "accounts + 1": "0x",
	} {
		if got := c.eval(0, expr); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s, want %s", expr, got, want)
		}
	}
	culprit(t, g, c, at)
	lines(t, g, c, at)
	conditions(t, g, c, at)
	memory(t, c)
	c.do("disconnect", map[string]any{})
	c.await("terminated")
}

// culprit watches the pointer that is wrong and goes back to the store.
func culprit(t *testing.T, g *guest, c *dapClient, at func(f, mark string) string) {
	t.Helper()
	info := c.do("dataBreakpointInfo", map[string]any{"name": "accounts[2].next", "frameId": c.frames()[0]["id"]})
	id, _ := info["dataId"].(string)
	if !strings.HasSuffix(id, "/8") {
		t.Fatalf("dataBreakpointInfo says %v", info)
	}
	if body := c.do("dataBreakpointInfo", map[string]any{"name": "1 + 2", "frameId": c.frames()[0]["id"]}); body["dataId"] != nil {
		t.Errorf("a sum can be watched: %v", body)
	}
	set := c.do("setDataBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"dataId": id, "accessType": "write"}}})
	if b := set["breakpoints"].([]any)[0].(map[string]any); b["verified"] != true {
		t.Fatalf("the data breakpoint is %v", b)
	}
	c.wants("the last store", c.run("reverseContinue"), "data breakpoint "+at("rename_account", "CULPRIT"))
	if got := c.eval(0, "i") + " " + c.eval(0, "name"); !strings.HasPrefix(got, "12 0x") || !strings.HasSuffix(got, `"overlong name"`) {
		t.Errorf("there i and name are %s", got)
	}
	if got := c.eval(1, "round"); got != "20" {
		t.Errorf("there round is %s", got)
	}
	for i := 11; i >= 8; i-- {
		c.wants("the store before", c.run("reverseContinue"), "data breakpoint "+at("rename_account", "CULPRIT"))
		if got := c.eval(0, "i"); got != strconv.Itoa(i) {
			t.Errorf("there i is %s, want %d", got, i)
		}
	}
	c.wants("the first store", c.run("reverseContinue"), "data breakpoint "+at("main", "LINK"))
	c.wants("before it", c.run("reverseContinue"), "entry ")
	c.do("setDataBreakpoints", map[string]any{"breakpoints": []any{}})
}

// lines sets breakpoints on lines and steps over them, forth and back.
func lines(t *testing.T, g *guest, c *dapClient, at func(f, mark string) string) {
	t.Helper()
	setLines := func(marks ...string) {
		var list []any
		for _, m := range marks {
			list = append(list, map[string]any{"line": g.line(t, m)})
		}
		body := c.do("setBreakpoints", map[string]any{"source": map[string]any{"path": "/elsewhere/guest/ledger.c"}, "breakpoints": list})
		for i, b := range body["breakpoints"].([]any) {
			if b := b.(map[string]any); b["verified"] != true || int(b["line"].(float64)) != g.line(t, marks[i]) {
				t.Fatalf("the breakpoint at %s is %v", marks[i], b)
			}
		}
	}
	setLines("CALL")
	c.wants("the first call", c.run("continue"), "breakpoint "+at("main", "CALL"))
	c.wants("the second call", c.run("continue"), "breakpoint "+at("main", "CALL"))
	setLines()
	for _, s := range []struct{ command, want string }{
		{"stepIn", at("deposit", "DEPOSIT")},
		{"next", at("deposit", "BALANCE")},
		{"next", at("deposit", "COUNT")},
		{"stepBack", at("deposit", "BALANCE")},
		{"stepIn", at("twice", "TWICE")},
		{"next", at("twice", "END-OF-TWICE")},
		{"stepBack", at("twice", "TWICE")},
		{"stepOut", at("deposit", "BALANCE")},
		{"next", at("deposit", "COUNT")},
		{"stepBack", at("deposit", "BALANCE")},
		{"stepBack", at("deposit", "DEPOSIT")},
		{"next", at("deposit", "BALANCE")},
		{"next", at("deposit", "COUNT")},
		{"next", "deposit:"},
		{"next", at("deposit", "END-OF-DEPOSIT")},
		{"next", "main:"},
		{"stepBack", at("main", "CALL")},
		{"next", "main:"},
		{"stepBack", at("main", "CALL")},
	} {
		c.wants(s.command, c.run(s.command), "step "+s.want)
	}
	if got := c.eval(0, "round") + " " + c.eval(0, "deposits"); got != "1 1" {
		t.Errorf("round and deposits are %s, want 1 1", got)
	}
	pc := func() string { return c.frames()[0]["instructionPointerReference"].(string) }
	tid := c.do("threads", nil)["threads"].([]any)[0].(map[string]any)["id"]
	before := pc()
	for _, command := range []string{"stepIn", "stepIn", "stepBack", "stepBack"} {
		c.do(command, map[string]any{"threadId": tid, "granularity": "instruction"})
		c.await("stopped")
	}
	if pc() != before {
		t.Errorf("two instructions forth and back lead from %s to %s", before, pc())
	}
}

// conditions tries breakpoints with conditions, hit counts, messages and names.
func conditions(t *testing.T, g *guest, c *dapClient, at func(f, mark string) string) {
	t.Helper()
	one := func(b map[string]any) {
		b["line"] = g.line(t, "COUNT")
		c.do("setBreakpoints", map[string]any{"source": map[string]any{"name": "ledger.c"}, "breakpoints": []any{b}})
	}
	one(map[string]any{"condition": "amount == 30 && a == &accounts[2]"})
	c.wants("a condition", c.run("continue"), "breakpoint "+at("deposit", "COUNT"))
	if got := c.eval(0, "amount"); got != "30" {
		t.Errorf("amount is %s, want 30", got)
	}
	one(map[string]any{"condition": "amount < 10"})
	c.wants("a condition, backwards", c.run("reverseContinue"), "breakpoint "+at("deposit", "COUNT"))
	if got := c.eval(0, "amount"); got != "9" {
		t.Errorf("amount is %s, want 9", got)
	}
	one(map[string]any{"hitCondition": "5"})
	c.wants("a hit count", c.run("continue"), "breakpoint "+at("deposit", "COUNT"))
	if got := c.eval(0, "amount"); got != "14" {
		t.Errorf("amount is %s, want 14", got)
	}
	one(map[string]any{"logMessage": "put {amount} into {a->name}"})
	c.do("setFunctionBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"name": "rename_account"}, map[string]any{"name": "no_such"}}})
	got := c.run("continue")
	c.wants("a function", got, "function breakpoint rename_account:")
	if out := c.await("output"); out["output"] != "put 15 into \"plain\"\n" {
		t.Errorf("the message is %q", out["output"])
	}
	one(map[string]any{"condition": "no_such_variable"})
	c.wants("a bad condition", c.run("continue"), "breakpoint "+at("deposit", "COUNT"))
	c.do("setBreakpoints", map[string]any{"source": map[string]any{"name": "ledger.c"}, "breakpoints": []any{}})
	c.do("setFunctionBreakpoints", map[string]any{"breakpoints": []any{}})
	c.wants("the end", c.run("continue"), "exception "+at("sum", "CRASH"))
	c.wants("the crash's line", c.run("stepBack"), "step "+at("sum", "CRASH"))
	c.wants("once more", c.run("stepBack"), "step sum:")
	if body := c.do("evaluate", map[string]any{"expression": "when", "context": "repl"}); !strings.Contains(body["result"].(string), ":") {
		t.Errorf("when says %v", body)
	}
	// deposits is an int: the answer has the values of 4 bytes, not of 8.
	body := c.do("evaluate", map[string]any{"expression": "last-write deposits", "context": "repl"})
	if got := body["result"].(string); !strings.HasSuffix(got, " 0x31 -> 0x32") {
		t.Errorf("the last write of deposits is %s", got)
	}
	c.do("evaluate", map[string]any{"expression": "monitor seek begin", "context": "repl"})
	c.wants("after seek", c.stop(), "goto ")
}

// memory reads memory and disassembles.
func memory(t *testing.T, c *dapClient) {
	t.Helper()
	ref := c.do("evaluate", map[string]any{"expression": "&deposits", "context": "watch"})["memoryReference"]
	body := c.do("readMemory", map[string]any{"memoryReference": ref, "count": 4})
	if b, err := base64.StdEncoding.DecodeString(body["data"].(string)); err != nil || len(b) != 4 {
		t.Errorf("the memory is %v", body)
	}
	if _, fault := c.try("readMemory", map[string]any{"memoryReference": "0x10", "count": 4}); !strings.Contains(fault, "nothing is mapped") {
		t.Errorf("reading nothing says %q", fault)
	}
	pc := c.frames()[0]["instructionPointerReference"]
	list := c.do("disassemble", map[string]any{"memoryReference": pc, "instructionOffset": -3, "instructionCount": 8})["instructions"].([]any)
	if len(list) != 8 || list[3].(map[string]any)["address"] != pc {
		t.Errorf("the disassembly is %v", list)
	}
}

// TestDAPOptimized looks at variables and steps through a program as it is shipped.
func TestDAPOptimized(t *testing.T) {
	_, c := startDAP(t, "-O2", "-static-pie", "-fPIE")
	c.wants("the crash", c.connect(), "exception ")
	for n, f := range c.frames() {
		if f["source"] == nil {
			continue
		}
		for name, v := range c.locals(n) {
			if strings.Contains(v["value"].(string), "error") {
				t.Errorf("%s is %v", name, v)
			}
		}
	}
	if got := c.eval(0, "handled"); got != "100" {
		t.Errorf("handled is %s, want 100", got)
	}
	c.do("setFunctionBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"name": "deposit"}}})
	before := map[string]bool{}
	for range 12 {
		got := c.run("stepBack")
		if !strings.HasPrefix(got, "step ") && !strings.HasPrefix(got, "function breakpoint ") {
			t.Fatalf("a step back ends with %s", got)
		}
		before[got] = true
	}
	if len(before) < 3 {
		t.Errorf("12 steps back saw %v", before)
	}
}

// TestDAPServer tries what clients do wrong: a second client, messages that are
// none, requests while the program runs, and gone clients.
func TestDAPServer(t *testing.T) {
	need.LinuxAMD64(t)
	g := compile(t, "busy")
	rec := g.record(t, "--keep", "always")
	addr := serve(t, rec, "--dap")
	c := dialDAP(t, addr)
	c.connect()
	other := dialDAP(t, addr)
	if _, fault := other.try("initialize", map[string]any{}); !strings.Contains(fault, "another client") {
		t.Errorf("a second client is told %q", fault)
	}
	for command, args := range map[string]any{
		"nonsense": nil, "setBreakpoints": "text", "stackTrace": "text", "scopes": map[string]any{"frameId": 99},
		"variables": map[string]any{"variablesReference": -1}, "evaluate": map[string]any{"expression": strings.Repeat("(", 1000)}, "source": nil,
	} {
		if _, fault := c.try(command, args); fault == "" {
			t.Errorf("%s succeeds", command)
		}
	}
	c.do("restart", nil)
	c.await("stopped")
	tid := c.do("threads", nil)["threads"].([]any)[0].(map[string]any)["id"]
	c.do("continue", map[string]any{"threadId": tid})
	c.do("setFunctionBreakpoints", map[string]any{"breakpoints": []any{}}) // while it runs
	start := time.Now()
	c.do("pause", map[string]any{"threadId": tid})
	if c.await("stopped"); time.Since(start) > 500*time.Millisecond {
		t.Errorf("the pause took %v", time.Since(start))
	}
	c.do("continue", map[string]any{"threadId": tid})
	c.conn.Close() // in the middle
	again := dialDAP(t, addr)
	again.connect()
	again.do("disconnect", map[string]any{"terminateDebuggee": true})
	dialDAP(t, addr).connect()
}

// TestDAPStdio speaks on standard input and output.
func TestDAPStdio(t *testing.T) {
	g := compile(t, "ledger")
	rec := g.record(t, "--keep", "always")
	var in strings.Builder
	for i, command := range []string{"initialize", "launch", "configurationDone", "threads", "disconnect"} {
		body := fmt.Sprintf(`{"seq":%d,"type":"request","command":%q}`, i+1, command)
		fmt.Fprintf(&in, "Content-Length: %d\r\n\r\n%s", len(body), body)
	}
	cmd := exec.CommandContext(limited(t, 20*time.Second), vplayd, "serve", "--dap", "--stdio", rec)
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	inOrder(t, string(out), `"supportsStepBack":true`, `"event":"initialized"`, `"event":"stopped"`, `"threads":\[\{`, `"event":"terminated"`)
}

// TestDAPStepBackOverLoop steps back out of a loop, whose head is entered in its middle by a
// jump: Step Back stayed there.
func TestDAPStepBackOverLoop(t *testing.T) {
	g, c := startDAP(t, "-O0")
	c.wants("the crash", c.connect(), fmt.Sprintf("exception sum:%d", g.line(t, "CRASH")))
	var lines []string
	for range 12 {
		at := strings.TrimPrefix(c.run("stepBack"), "step ")
		lines = append(lines, at)
		if at == fmt.Sprintf("main:%d", g.line(t, "ASKS-SUM")) {
			return
		}
	}
	t.Errorf("the lines back from the crash are %v", lines)
}
