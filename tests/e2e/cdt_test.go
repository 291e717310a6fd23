package e2e

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	realgdb "vplay/tests/gdb"
	"vplay/tests/need"
)

// cdtAdapter is the adapter of the npm package cdt-gdb-adapter, where tests/run.sh
// puts it. It drives gdb over MI as VS Code's C++ extension does, which is no free
// software that a test could install.
func cdtAdapter(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	p := filepath.Join(cache, "vplay-tests", "node_modules", "cdt-gdb-adapter", "dist", "debugTargetAdapter.js")
	if err == nil {
		_, err = os.Stat(p)
	}
	need.Machine(t, "cdt-gdb-adapter, which tests/run.sh installs where npm is", err == nil)
	_, err = exec.LookPath("node")
	need.Machine(t, "node", err == nil)
	return p
}

// TestCDTAdapter has an editor's adapter and gdb debug a recording on the GDB
// server, with no file of the program.
func TestCDTAdapter(t *testing.T) {
	need.Program(t, "gdb")
	adapter := cdtAdapter(t)
	g := compile(t, "ledger", "-O0")
	rec := g.record(t)
	addr := serve(t, rec, "--at", "begin", "--symbols", filepath.Join(g.dir, "symbols"))
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	cmd := exec.CommandContext(limited(t, 60*time.Second), "node", adapter)
	cmd.Stdin, cmd.Stdout, cmd.Dir, cmd.WaitDelay = theirs, theirs, t.TempDir(), 5*time.Second
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "LC_ALL=C")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ours.Close()
		theirs.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	c := &dapClient{t: t, conn: ours, r: bufio.NewReader(ours), limit: 30 * time.Second}
	c.do("initialize", map[string]any{"adapterID": "cdt", "linesStartAt1": true, "pathFormat": "path"})
	attach := c.send("attach", map[string]any{
		"program": "", "gdb": need.Program(t, "gdb"), "gdbArguments": realgdb.Flags,
		"target": map[string]any{"type": "remote", "host": "127.0.0.1", "port": port},
	})
	c.await("initialized")
	if m := c.reply(attach); m["success"] != true {
		t.Fatalf("attach: %v", m)
	}
	source, err := filepath.Abs(filepath.Join("..", "guest", "ledger.c"))
	if err != nil {
		t.Fatal(err)
	}
	set := c.do("setBreakpoints", map[string]any{
		"source": map[string]any{"path": source}, "breakpoints": []any{map[string]any{"line": g.line(t, "BALANCE")}},
	})
	if b := set["breakpoints"].([]any)[0].(map[string]any); b["verified"] != true {
		t.Errorf("the breakpoint is %v", b)
	}
	c.do("configurationDone", map[string]any{})
	c.drain("stopped")
	for i := range 3 {
		if i > 0 {
			c.run2("continue")
		}
		f := c.frames()
		if got := fmt.Sprintf("%v:%v %v", f[0]["name"], f[0]["line"], f[1]["name"]); got != fmt.Sprintf("deposit:%d main", g.line(t, "BALANCE")) {
			t.Errorf("stop %d is at %s", i, got)
		}
		if got := c.eval(0, "amount"); got != strconv.Itoa(i) {
			t.Errorf("amount is %s, want %d", got, i)
		}
	}
	if v := c.anyLocals(); v["before"] == nil || v["amount"] == nil {
		t.Errorf("the variables are %v", v)
	}
	c.run2("next")
	if f := c.frames()[0]; int(f["line"].(float64)) != g.line(t, "COUNT") {
		t.Errorf("after next it is at %v", f)
	}
	c.do("disconnect", map[string]any{})
	if out := gdb(t, addr, "bt"); !strings.Contains(out, "deposit") {
		t.Errorf("the server has lost its place:\n%s", out)
	}
}

// drain waits for an event among responses that nobody asked about.
func (c *dapClient) drain(name string) {
	c.t.Helper()
	for {
		for i, m := range c.left {
			if m["event"] == name {
				c.left = append(c.left[:i:i], c.left[i+1:]...)
				return
			}
		}
		if m := c.read(); m["type"] == "event" {
			c.left = append(c.left, m)
		}
	}
}

// run2 is run for adapters whose stop may come before their response.
func (c *dapClient) run2(command string) {
	c.t.Helper()
	tid := c.do("threads", nil)["threads"].([]any)[0].(map[string]any)["id"]
	c.do(command, map[string]any{"threadId": tid})
	c.drain("stopped")
}

// anyLocals returns the variables of the first scope of the innermost frame.
func (c *dapClient) anyLocals() map[string]map[string]any {
	c.t.Helper()
	s := c.do("scopes", map[string]any{"frameId": c.frames()[0]["id"]})["scopes"].([]any)[0].(map[string]any)
	return c.variables(s["variablesReference"])
}
