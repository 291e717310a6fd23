package e2e

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

// What an editor changes: variables, registers and memory, and functions that it calls. All
// of it happens in a copy, which is dropped when the program moves.

// set sets a variable of a group and returns what it is then, or the error.
func (c *dapClient) set(ref any, name, value string) string {
	c.t.Helper()
	body, fault := c.try("setVariable", map[string]any{"variablesReference": ref, "name": name, "value": value})
	if fault != "" {
		return "error: " + fault
	}
	return body["value"].(string)
}

// scope returns the reference of a scope of frame n.
func (c *dapClient) scope(n int, name string) any {
	c.t.Helper()
	for _, s := range c.do("scopes", map[string]any{"frameId": c.frames()[n]["id"]})["scopes"].([]any) {
		if s := s.(map[string]any); s["name"] == name {
			return s["variablesReference"]
		}
	}
	c.t.Fatalf("there is no scope %s", name)
	return nil
}

// said returns what the console was told so far.
func (c *dapClient) said() string {
	var b strings.Builder
	for _, m := range c.left {
		if body, ok := m["body"].(map[string]any); ok && m["event"] == "output" {
			b.WriteString(body["output"].(string))
		}
	}
	return b.String()
}

// TestDAPSet sets variables of several types, which the copy has and the recording has not.
func TestDAPSet(t *testing.T) {
	g, c := startDAP(t, "-O0")
	c.wants("the crash", c.connect(), "exception ")
	line := fmt.Sprintf("%d", g.line(t, "COUNT"))
	c.do("setBreakpoints", map[string]any{"source": map[string]any{"name": "ledger.c"}, "breakpoints": []any{map[string]any{"line": g.line(t, "COUNT")}}})
	c.wants("going back", c.run("reverseContinue"), "breakpoint deposit:"+line)
	before := c.eval(0, "amount")
	locals := c.scope(0, "Locals")
	if got := c.set(locals, "amount", "before + 7"); got == before || strings.Contains(got, "error") {
		t.Errorf("amount becomes %s", got)
	}
	want := c.eval(0, "before + 7")
	if got := c.eval(0, "amount"); got != want {
		t.Errorf("amount is %s, want %s", got, want)
	}
	if got := c.variables(locals)["amount"]["value"]; got != want {
		t.Errorf("in the group amount is %v, want %s", got, want)
	}
	if got := c.set(locals, "a", "&accounts[0]"); !strings.Contains(got, "0x") {
		t.Errorf("a becomes %s", got)
	}
	for _, set := range [][2]string{
		{"accounts[0].name", `"short"`}, {"deposits", "-5"}, {"handled", "1 << 4"}, {"accounts[1].balance", "0x10"}, {"accounts[3]", "accounts[1]"}, {"a->next", "0"},
	} {
		expr, value := set[0], set[1]
		body, fault := c.try("setExpression", map[string]any{"expression": expr, "value": value, "frameId": c.frames()[0]["id"]})
		if fault != "" {
			t.Errorf("%s = %s: %s", expr, value, fault)
			continue
		}
		if got := c.eval(0, expr); got != body["value"] {
			t.Errorf("%s is %s, setExpression says %v", expr, got, body["value"])
		}
	}
	for expr, want := range map[string]string{
		"accounts[0].name": `"short"`, "deposits": "-5", "handled": "16", "accounts[1].balance": "16", "accounts[3].balance": "16", "a == &accounts[0]": "1", "a->next": "0x0",
	} {
		if got := c.eval(0, expr); got != want {
			t.Errorf("%s is %s, want %s", expr, got, want)
		}
	}
	for _, s := range [][2]string{
		{"deposits += 10", "5"}, {"deposits++", "6"}, {"deposits", "6"}, {"accounts[0].name[1] = 'a'", "97 'a'"}, {"accounts[0].name", `"saort`}, {"deposits == 6", "1"},
		{"deposits <= 6", "1"}, {"$rax = 77", "77"}, {"$rax", "77"}, {"1 = 2", "error: "}, {`accounts[0].name = "much too long"`, "error: there is room for 8 bytes"},
		{"nonsense = 3", "error: there is no nonsense"}, {"deposits = nonsense", "error: there is no nonsense"}, {"accounts[0] = 5", "error: it is no struct account"},
	} {
		if got := c.repl(0, s[0]); !strings.HasPrefix(got, s[1]) {
			t.Errorf("%s: %s, want %s", s[0], got, s[1])
		}
	}
	if got := c.set(c.scope(0, "Registers"), "rbx", "0x1234"); got != "4660" && got != "0x1234" {
		t.Errorf("rbx becomes %s", got)
	}
	if got := c.set(c.scope(1, "Locals"), "round", "3"); got != "3" {
		t.Errorf("the caller's round becomes %s", got)
	}
	ref := c.do("evaluate", map[string]any{"expression": "&deposits", "context": "watch"})["memoryReference"]
	c.do("writeMemory", map[string]any{"memoryReference": ref, "data": base64.StdEncoding.EncodeToString([]byte{9, 0, 0, 0})})
	if got := c.eval(0, "deposits"); got != "9" {
		t.Errorf("deposits are %s, want 9", got)
	}
	inOrder(t, c.said(), "a copy of the process")
	c.wants("going on", c.run("stepBack"), "step deposit:")
	inOrder(t, c.said(), "a copy of the process", "what was changed is dropped")
	c.wants("and forward", c.run("next"), "breakpoint deposit:"+line)
	for expr, want := range map[string]string{"amount": before, "deposits": "49", "accounts[0].name": `"plain`, "handled": "98"} {
		if got := c.eval(0, expr); !strings.HasPrefix(got, want) {
			t.Errorf("afterwards %s is %s, want %s", expr, got, want)
		}
	}
	c.do("setBreakpoints", map[string]any{"source": map[string]any{"name": "ledger.c"}, "breakpoints": []any{}})
	c.wants("the crash is as it was", c.run("continue"), "exception ")
	if len(c.boxes) > 0 {
		t.Errorf("the editor shows boxes: %q", c.boxes)
	}
}

// TestDAPCalls calls functions of the program from the console.
func TestDAPCalls(t *testing.T) {
	g, rec, _ := diverted(t)
	c := dialDAP(t, serve(t, rec, "--dap", "--symbols", g.dir+"/symbols"))
	c.connect()
	c.do("setFunctionBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"name": "walk"}, map[string]any{"name": "twice"}}})
	c.wants("a place", c.run("reverseContinue"), "function breakpoint ")
	for _, s := range [][2]string{
		{"twice(21)", "42"}, {"half(3.0)", "1.5"}, {"half(5) + twice(twice(2))", "10.5"}, {"calls", ""}, {"nested(1)", "3"}, {"swapped(1, 2)", "error: swapped returns a struct pair"},
		{"twice()", "error: twice takes 1 arguments"}, {"twice(1, 2)", "error: "}, {"counter = twice(8)", "16"}, {"counter", "16"}, {`say("hello")`, "0"}, {"refused()", "-1"},
		{"hurt()", "error: the function got SIGABRT"}, {"twice(2)", "4"}, {"nofunction(1)", "error: there is no nofunction"}, {"words(1)", "error: "}, {"memory()", "20"}, {"quit()", "error: the function ended the program with code 3"},
		{"counter", ""}, {"twice(3)", "6"}, {"(long)counter", ""}, {"poke(0)", "error: the function got SIGSEGV"},
	} {
		if got := c.repl(0, s[0]); !strings.HasPrefix(got, s[1]) {
			t.Errorf("%s: %s, want %s", s[0], got, s[1])
		}
	}
	inOrder(t, c.said(), "a copy of the process", "it says hello, well, 2.50")
	if got := c.eval(0, "twice(1)"); !strings.Contains(got, "not called") {
		t.Errorf("a watch calls: %s", got)
	}
	// A function that does not return is ended by cancel.
	id := c.send("evaluate", map[string]any{"expression": "forever()", "frameId": 0, "context": "repl"})
	time.Sleep(200 * time.Millisecond)
	c.do("cancel", map[string]any{"requestId": id})
	if m := c.reply(id); m["message"] != "cancelled" {
		t.Errorf("a call that was cancelled: %v", m)
	}
	if got := c.repl(0, "twice(5)"); got != "10" {
		t.Errorf("the next call: %s", got)
	}
	if len(c.boxes) > 0 {
		t.Errorf("the editor shows boxes: %q", c.boxes)
	}
}
