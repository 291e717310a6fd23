package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestInlinedCalls lists the calls of a function that was inlined everywhere: by its
// own name, without arguments that no register has, from where it was inlined.
func TestInlinedCalls(t *testing.T) {
	t.Parallel()
	g := compile(t, "inline", "-O2")
	addr := serve(t, g.record(t), "--symbols", g.dir+"/symbols")
	const at = `^\d+:\d+\.\d+  `
	for _, ask := range []string{"vplay", "monitor"} {
		out := gdb(t, addr, loadCommands, ask+" calls money::Bank::close", ask+" calls money::Bank::open", ask+" first-exec first", "echo @\\n", ask+" calls money::Bank::close 1")
		expect(t, out, places(t, g, "inline", []string{
			at + `money::Bank::close, inlined  from 0x\w+ first\+0x\w+ in inline .*LINE:FIRST`,
			at + `money::Bank::close, inlined  from 0x\w+ first\+0x\w+ in inline .*LINE:FIRST`,
			at + `money::Bank::close, inlined  from 0x\w+ money::Bank::twice, inlined, in inline .*LINE:TWICE`,
			at + `money::Bank::close, inlined  from 0x\w+ money::Bank::twice, inlined, in inline .*LINE:TWICE`,
			at + `money::Bank::open\(0x\w+, 100.*\)  from 0x\w+ main`, at + `0x\w+ first in inline`, `^@`, at + `money::Bank::close, inlined`,
		})...)
		if n := strings.Count(out, "Bank::close, inlined"); n != 5 {
			t.Errorf("%d lines about close, want 5:\n%s", n, out)
		}
	}
}

// TestDAPInlined breaks on a function that was inlined in two places, and in one of
// them twice: the editor sees a frame of it each time.
func TestDAPInlined(t *testing.T) {
	t.Parallel()
	g := compile(t, "inline", "-O2")
	c := dialDAP(t, serve(t, g.record(t), "--dap", "--symbols", g.dir+"/symbols"))
	c.wants("the crash", c.connect(), "exception ")
	body := c.do("setFunctionBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"name": "money::Bank::close"}}})
	if b := body["breakpoints"].([]any)[0].(map[string]any); b["verified"] != true {
		t.Fatalf("the breakpoint is %v", b)
	}
	var callers []string
	for range 4 {
		c.wants("back to close", c.run("reverseContinue"), "function breakpoint money::Bank::close:")
		callers = append(callers, fmt.Sprint(c.frames()[1]["name"]))
	}
	if want := []string{"money::Bank::twice", "money::Bank::twice", "first", "first"}; !slices.Equal(callers, want) {
		t.Errorf("close was inlined into %v, want %v", callers, want)
	}
}
