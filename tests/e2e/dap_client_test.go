package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	godap "github.com/google/go-dap"
)

// dapClient is an editor as vplayd sees one: it knows the protocol and nothing of
// the server.
type dapClient struct {
	t     testing.TB
	conn  net.Conn
	r     *bufio.Reader
	seq   int
	left  []map[string]any // events not looked at yet
	limit time.Duration
	boxes []string // errors that VS Code shows in a box of their own
}

func dialDAP(t testing.TB, addr string) *dapClient {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &dapClient{t: t, conn: conn, r: bufio.NewReader(conn), limit: 30 * time.Second}
}

// send sends a request and returns its number.
func (c *dapClient) send(command string, args any) int {
	c.t.Helper()
	c.seq++
	b, err := json.Marshal(map[string]any{"seq": c.seq, "type": "request", "command": command, "arguments": args})
	if err != nil {
		c.t.Fatal(err)
	}
	if err := godap.WriteBaseMessage(c.conn, b); err != nil {
		c.t.Fatalf("%s: %v", command, err)
	}
	return c.seq
}

// read reads one message.
func (c *dapClient) read() map[string]any {
	c.t.Helper()
	if err := c.conn.SetReadDeadline(time.Now().Add(c.limit)); err != nil {
		c.t.Fatal(err)
	}
	b, err := godap.ReadBaseMessage(c.r)
	if err != nil {
		c.t.Fatalf("reading: %v", err)
	}
	if testing.Verbose() {
		c.t.Logf("<- %.600s", b)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		c.t.Fatal(err)
	}
	return m
}

// reply waits for the response to a request.
func (c *dapClient) reply(seq int) map[string]any {
	c.t.Helper()
	for {
		m := c.read()
		if m["type"] == "event" {
			c.left = append(c.left, m)
			continue
		}
		if n, _ := m["request_seq"].(float64); int(n) != seq {
			c.t.Fatalf("response to %v, wanted to %d: %v", m["request_seq"], seq, m)
		}
		return m
	}
}

// try sends a request and returns its body, or the error's text.
func (c *dapClient) try(command string, args any) (map[string]any, string) {
	c.t.Helper()
	m := c.reply(c.send(command, args))
	body, _ := m["body"].(map[string]any)
	if ok, _ := m["success"].(bool); !ok {
		text, _ := m["message"].(string)
		if e, _ := body["error"].(map[string]any); e["showUser"] == true {
			c.boxes = append(c.boxes, command+": "+text)
		}
		return body, text
	}
	return body, ""
}

// do is try for requests that must succeed.
func (c *dapClient) do(command string, args any) map[string]any {
	c.t.Helper()
	body, fault := c.try(command, args)
	if fault != "" {
		c.t.Fatalf("%s %v: %s", command, args, fault)
	}
	return body
}

// await waits for an event.
func (c *dapClient) await(name string) map[string]any {
	c.t.Helper()
	for {
		for i, m := range c.left {
			if m["event"] == name {
				c.left = append(c.left[:i:i], c.left[i+1:]...)
				body, _ := m["body"].(map[string]any)
				return body
			}
		}
		m := c.read()
		if m["type"] != "event" {
			c.t.Fatalf("waiting for the event %s: %v", name, m)
		}
		c.left = append(c.left, m)
	}
}

// stop waits for a stop and returns "REASON FUNCTION:LINE" of the innermost frame.
func (c *dapClient) stop() string {
	c.t.Helper()
	body := c.await("stopped")
	return fmt.Sprintf("%s %s", body["reason"], c.where())
}

// where is the innermost frame.
func (c *dapClient) where() string {
	f := c.frames()[0]
	return fmt.Sprintf("%s:%v", f["name"], f["line"])
}

// frames returns the stack.
func (c *dapClient) frames() []map[string]any {
	c.t.Helper()
	threads := c.do("threads", nil)["threads"].([]any)
	tid := threads[0].(map[string]any)["id"]
	var out []map[string]any
	for _, f := range c.do("stackTrace", map[string]any{"threadId": tid})["stackFrames"].([]any) {
		out = append(out, f.(map[string]any))
	}
	return out
}

// run sends a request that moves the program and waits for the stop.
func (c *dapClient) run(command string) string {
	c.t.Helper()
	tid := c.do("threads", nil)["threads"].([]any)[0].(map[string]any)["id"]
	c.do(command, map[string]any{"threadId": tid})
	return c.stop()
}

// variables returns what a reference holds, "NAME=VALUE" by name.
func (c *dapClient) variables(ref any) map[string]map[string]any {
	c.t.Helper()
	out := map[string]map[string]any{}
	for _, v := range c.do("variables", map[string]any{"variablesReference": ref})["variables"].([]any) {
		v := v.(map[string]any)
		out[v["name"].(string)] = v
	}
	return out
}

// locals returns the variables of frame n.
func (c *dapClient) locals(n int) map[string]map[string]any {
	c.t.Helper()
	for _, s := range c.do("scopes", map[string]any{"frameId": c.frames()[n]["id"]})["scopes"].([]any) {
		if s := s.(map[string]any); s["name"] == "Locals" {
			return c.variables(s["variablesReference"])
		}
	}
	c.t.Fatal("there is no scope Locals")
	return nil
}

// eval evaluates an expression in frame n.
func (c *dapClient) eval(n int, expr string) string {
	c.t.Helper()
	body, fault := c.try("evaluate", map[string]any{"expression": expr, "frameId": c.frames()[n]["id"], "context": "watch"})
	if fault != "" {
		return "error: " + fault
	}
	return body["result"].(string)
}

// connect goes through what a client does at first.
func (c *dapClient) connect(breakpoints ...func()) string {
	c.t.Helper()
	caps := c.do("initialize", map[string]any{"adapterID": "test", "linesStartAt1": true, "columnsStartAt1": true, "pathFormat": "path"})
	for _, want := range []string{"supportsStepBack", "supportsDataBreakpoints", "supportsReadMemoryRequest", "supportsDisassembleRequest", "supportsConditionalBreakpoints"} {
		if caps[want] != true {
			c.t.Errorf("%s is %v", want, caps[want])
		}
	}
	c.do("launch", map[string]any{"name": "x", "type": "cppdbg", "program": "whatever"})
	c.await("initialized")
	for _, f := range breakpoints {
		f()
	}
	c.do("configurationDone", nil)
	return c.stop()
}

// wants fails when a stop is not the one that is wanted.
func (c *dapClient) wants(what, got, want string) {
	c.t.Helper()
	if !strings.HasPrefix(got, want) {
		c.t.Fatalf("%s: %s, want %s", what, got, want)
	}
}
