package e2e

import (
	"strings"
	"testing"
)

// What an editor sees around its console and with numbers of frames and variables that it
// got before the program moved. Walks over lines and breakpoints are in dap_test.go.

// repl types a line into the console, frame n being selected.
func (c *dapClient) repl(n int, line string) string {
	c.t.Helper()
	body, fault := c.try("evaluate", map[string]any{"expression": line, "frameId": c.frames()[n]["id"], "context": "repl"})
	if fault != "" {
		return "error: " + fault
	}
	return body["result"].(string)
}

// TestDAPConsole asks in the console, which leaves what the editor shows as it is, and moves
// there, after which the numbers of before mean nothing and make no noise.
func TestDAPConsole(t *testing.T) {
	_, c := startDAP(t, "-O0")
	c.wants("the crash", c.connect(), "exception ")
	frame := c.frames()[1]["id"]
	scope := c.do("scopes", map[string]any{"frameId": frame})["scopes"].([]any)[0].(map[string]any)["variablesReference"]
	before := c.variables(scope)
	for _, line := range []string{"when", "last-write deposits", "1 + 2", "nonsense", "writes deposits", "help"} {
		c.repl(0, line)
		if got := c.variables(scope); len(got) != len(before) || got["result"]["value"] != before["result"]["value"] {
			t.Errorf("after %s the variables are %v, before %v", line, got, before)
		}
		if list := c.do("scopes", map[string]any{"frameId": frame})["scopes"].([]any); len(list) == 0 {
			t.Errorf("after %s the frame is gone", line)
		}
	}
	help := c.repl(0, "help")
	for _, bad := range []string{"monitor", "gdb", "maintenance"} {
		if strings.Contains(help, bad) {
			t.Errorf("the help speaks of %s:\n%s", bad, help)
		}
	}
	inOrder(t, help, "An expression", "last-write WHERE", "seek WHERE", "when ")
	if got := c.repl(0, "seek nowhere"); strings.Contains(got, "monitor") || !strings.HasPrefix(got, "error: bad position") {
		t.Errorf("a place that is none: %s", got)
	}
	c.do("evaluate", map[string]any{"expression": "seek 50%", "context": "repl", "frameId": frame})
	c.wants("half way", c.stop(), "goto ")
	if body := c.do("scopes", map[string]any{"frameId": frame}); len(body["scopes"].([]any)) != 0 {
		t.Errorf("a frame of before has %v", body)
	}
	if got := c.variables(scope); len(got) != 0 {
		t.Errorf("a scope of before has %v", got)
	}
	if _, fault := c.try("evaluate", map[string]any{"expression": "deposits", "frameId": frame, "context": "watch"}); fault == "" {
		t.Error("an expression is evaluated in a frame of before")
	}
	if body := c.do("evaluate", map[string]any{"expression": "deposits", "frameId": frame, "context": "repl"}); body["result"] == "50" {
		t.Errorf("typed in the console since: %v", body)
	}
	if body := c.do("dataBreakpointInfo", map[string]any{"name": "total", "variablesReference": scope}); body["dataId"] != nil {
		t.Errorf("a variable of before can be watched: %v", body)
	}
	if len(c.boxes) > 0 {
		t.Errorf("the editor shows boxes: %q", c.boxes)
	}
	tid := c.do("threads", nil)["threads"].([]any)[0].(map[string]any)["id"].(float64)
	if _, fault := c.try("next", map[string]any{"threadId": tid + 1}); fault == "" || len(c.boxes) != 1 {
		t.Errorf("a step of a thread that is not there: %q, boxes %q", fault, c.boxes)
	}
}
