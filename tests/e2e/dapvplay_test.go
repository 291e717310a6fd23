package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestDAPPast asks what the extension for VS Code asks: who wrote a variable, what happened
// when, where the program stands, and to go there.
func TestDAPPast(t *testing.T) {
	g, c := startDAP(t, "-O0", "-no-pie") // as for TestDAP
	c.wants("the crash", c.connect(), fmt.Sprintf("exception sum:%d", g.line(t, "CRASH")))
	if m := c.do("vplay/position", nil); m["position"] != "end" || m["at"] != 1.0 || !strings.HasPrefix(m["place"].(string), "sum ledger.c:") {
		t.Errorf("the moment is %v", m)
	}
	next := map[string]any{"expression": "accounts[2].next"}
	scope := c.scope(0, "Locals")
	locals := c.variables(scope)
	c.do("setExpression", map[string]any{"expression": "deposits", "value": "7", "frameId": c.frames()[0]["id"]})
	list := c.do("vplay/accesses", map[string]any{"expression": "accounts[2].next", "count": 9})["accesses"].([]any)
	if len(list) != 6 {
		t.Fatalf("the writes are %v", list)
	}
	// It is a question: what is shown of the position, and what was changed, stays.
	if got := c.variables(scope); len(got) != len(locals) || c.eval(0, "deposits") != "7" || strings.Contains(c.said(), "what was changed is dropped") {
		t.Errorf("after the question the variables are %v and deposits are %s", got, c.eval(0, "deposits"))
	}
	newest, oldest := list[0].(map[string]any), list[5].(map[string]any)
	if newest["function"] != "rename_account" || int(newest["line"].(float64)) != g.line(t, "CULPRIT") || newest["changed"] != true {
		t.Errorf("the newest write is %v", newest)
	}
	if oldest["function"] != "main" || int(oldest["line"].(float64)) != g.line(t, "LINK") || oldest["before"] != "0x0" {
		t.Errorf("the oldest write is %v", oldest)
	}
	c.do("vplay/seek", map[string]any{"to": newest["position"]})
	c.await("continued")
	c.wants("the write", c.stop(), fmt.Sprintf("goto rename_account:%d", g.line(t, "CULPRIT")))
	before := c.do("vplay/position", nil)
	if before["position"] != newest["position"] || before["at"].(float64) >= 1 {
		t.Errorf("the moment is %v, want %v", before, newest["position"])
	}
	c.do("vplay/watch", next)
	c.wants("the write before", c.run("reverseContinue"), fmt.Sprintf("data breakpoint rename_account:%d", g.line(t, "CULPRIT")))
	c.do("vplay/watch", map[string]any{"expression": "accounts[2].next", "remove": true})
	calls := c.do("vplay/calls", map[string]any{"function": "deposit", "count": 3})["calls"].([]any)
	if len(calls) != 3 || int(calls[0].(map[string]any)["line"].(float64)) < g.line(t, "CALL") {
		t.Errorf("the calls are %v", calls)
	}
	h := c.do("vplay/history", map[string]any{"from": 0, "to": 1, "most": 1000})
	marks := h["marks"].([]any)
	last := marks[len(marks)-1].(map[string]any)
	if !strings.Contains(last["text"].(string), "SIGSEGV") || len(h["threads"].([]any)) != 1 {
		t.Errorf("the history ends with %v, its threads are %v", last, h["threads"])
	}
	c.do("vplay/seek", map[string]any{"to": last["seek"]})
	c.wants("the crash again", c.stop(), fmt.Sprintf("goto sum:%d", g.line(t, "CRASH")))
	if _, fault := c.try("vplay/seek", map[string]any{"to": "yesterday"}); fault == "" {
		t.Error("one can go to yesterday")
	}
}
